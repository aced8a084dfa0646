"""``knotless advise``: which engine to choose for a fabric, and why."""

from __future__ import annotations

import sys

import click

from knotless.base.switch_settings import SwitchFile
from knotless.cli.commands._comparison import compared, print_comparison
from knotless.cli.commands._plan_options import plan_options
from knotless.cli.commands._switch_settings import judged_switch_options
from knotless.cli.options import fabric_of, json_option, print_json, spec_argument
from knotless.cli.output import say
from knotless.routing.engine import engine_named
from knotless.routing.plan import make_plan
from knotless.routing.request import PlanRequest
from knotless.verification.advice import advise
from knotless.verification.checked_plan import CheckedPlan
from knotless.verification.comparison import ALL


@click.command(name="advise")
@spec_argument
@plan_options(engine=ALL)
@judged_switch_options
@json_option
def command(
    spec: str,
    request: PlanRequest,
    switch_settings: SwitchFile | None,
    packet_bytes: int,
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
    if switch_settings is not None and advice.engine is not None:
        root = request.root if engine_named(advice.engine).has_root else None
        plan = make_plan(fabric, request.but(engine=advice.engine, root=root))
        verdict = CheckedPlan(plan, switch_settings, packet_bytes).verdict
        buffers = {"cycle": verdict.cycle, "losses": verdict.losses, "notes": verdict.notes}
    if as_json:
        more = {} if switch_settings is None else {"buffers": buffers}
        print_json({"fabric": fabric.name, **advice.as_json(), **more})
    else:
        print_comparison(spec, rows, advice.reasons)
        say(advice.reason)
        for line in advice.cheaper:
            say(f"cheaper: {line}")
        for line in (*buffers.get("losses", ()), *buffers.get("notes", ())):
            say(f"buffers: {line}")
    mistaken = buffers.get("cycle") or buffers.get("losses")
    sys.exit(0 if advice.engine is not None and not mistaken else 1)
