"""``knotless advise``: which engine to choose for a fabric, and why."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from knotless.base.counting import number_text
from knotless.base.flow_control import FlowControl
from knotless.cli.answer import Answer, Group, Headline, Hint, Reason, Several, Tone, print_answer
from knotless.cli.commands._comparison import compared, comparison_table, without_plan
from knotless.cli.commands._plan_options import PLAN_OPTIONS, plan_options
from knotless.cli.commands._verdict_options import SwitchOptions, judged_switch_options
from knotless.cli.help import Command
from knotless.cli.options import (
    details_option,
    fabric_of,
    given_options,
    json_option,
    print_json,
    spec_argument,
)
from knotless.routing.engine import engine_named
from knotless.routing.plan import make_plan
from knotless.routing.request import PlanRequest
from knotless.topologies.fabric import Fabric
from knotless.verification.advice import Advice, advise
from knotless.verification.checked_plan import CheckedPlan
from knotless.verification.comparison import ALL


@click.command(name="advise", cls=Command)
@spec_argument
@plan_options(engine=ALL)
@judged_switch_options
@details_option
@json_option
def command(
    spec: str,
    request: PlanRequest,
    switches: SwitchOptions,
    details: bool,
    as_json: bool,
) -> None:
    """Plan SPEC with every engine that can route it, and say which to choose and why.

    Advised is, among the plans that cannot deadlock under the flow control, the one whose most
    loaded channel carries the fewest paths; then the one with the shortest paths, the fewest
    virtual channels, VLANs and rules. --engine limits the choice (a,b,c). The exit status is 1 if
    no plan is free of deadlock. With --switch, it also says which buffers of the advised plan can
    lose frames or deadlock, and what to change; the status is 1 then, too.

    Example: knotless advise torus,4,4

    Example: knotless advise random,16 --vcs 1 --flow-control pause

    Example: knotless advise torus,4,4 --switch switch.yaml
    """
    fabric = fabric_of(spec)
    rows = compared(fabric, request, quiet=as_json)
    advice = advise(fabric, rows)
    buffers: dict[str, list[str]] = {}
    switch_settings = switches.switch_settings
    if switch_settings is not None and advice.engine is not None:
        root = request.root if engine_named(advice.engine).has_root else None
        plan = make_plan(fabric, request.but(engine=advice.engine, root=root))
        verdict = CheckedPlan(plan, switch_settings, switches.packet_bytes).verdict
        buffers = {"cycle": verdict.cycle, "losses": verdict.losses, "notes": verdict.notes}
    if as_json:
        more = {} if switch_settings is None else {"buffers": buffers}
        print_json({"fabric": fabric.name, **advice.as_json(), **more})
    else:
        answer = _answer(spec, fabric, advice, buffers, request, details=details)
        print_answer(answer, details=details)
    mistaken = buffers.get("cycle") or buffers.get("losses")
    sys.exit(0 if advice.engine is not None and not mistaken else 1)


def _answer(
    spec: str,
    fabric: Fabric,
    advice: Advice,
    buffers: Mapping[str, Sequence[str]],
    request: PlanRequest,
    *,
    details: bool,
) -> Answer:
    place = {engine: position for position, engine in enumerate(advice.ranking)}
    rows = sorted(advice.rows, key=lambda row: place.get(row.engine, len(place)))
    why: list[Reason] = []
    hints = []
    if advice.engine is None:
        headline = Headline(fabric.name, "no engine", "has a plan that cannot deadlock", Tone.BAD)
    else:
        best: Any = rows[0].summary
        condition = FlowControl(best["flow_control"]).condition
        rest = f", which cannot deadlock {condition}"
        if buffers.get("cycle"):
            rest += ", but by its buffers it can"
        elif buffers.get("losses"):
            rest += ", but lossless frames can be lost"
        tone = Tone.BAD if buffers.get("cycle") or buffers.get("losses") else Tone.GOOD
        headline = Headline(fabric.name, f"choose {advice.engine}", rest, tone)
        load, count = best["max_channel_load"], len(place)
        why.append(
            f"of {count} safe engines with rules, its busiest channel carries the fewest paths,"
            f" {number_text(load)}; no engine gets below {number_text(best['load_bound'])}"
        )
        why += [f"{name} is next: {advice.reasons[name]}" for name in advice.ranking[1:2]]
        why.append(Several([f"cheaper: {line}" for line in advice.cheaper], "cheaper engines"))
        hints = _hints(spec, advice.engine)
    mistakes = [*buffers.get("losses", ()), *buffers.get("notes", ())]
    why.append(Several([f"buffers: {line}" for line in mistakes], "lines about buffers"))
    return Answer(
        headline,
        why=why,
        tables=[comparison_table(rows, details=details)],
        remarks=[*without_plan(fabric, advice.rows, request.engine, details=details)],
        hints=hints,
        details=[Group("why", advice.reasons), Group("advice", [advice.reason])],
    )


def _hints(spec: str, engine: str) -> list[Hint]:
    others = [name for name in PLAN_OPTIONS if name != "engine"]
    given = [spec, "--engine", engine, *given_options(*others)]
    return [
        Hint("write its rules", ["knotless", "flows", *given, "--out", "rules"]),
        Hint("see what it does", ["knotless", "plan", *given, "--explain"]),
    ]
