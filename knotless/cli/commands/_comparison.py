"""A comparison of engines, for ``knotless plan --compare`` and ``knotless advise``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from knotless.base.counting import counted, number_text
from knotless.cli.answer import Answer, Headline, Reason, Several, Table, Tone
from knotless.cli.commands._verdict_answer import engine_name
from knotless.cli.progress import Bar
from knotless.routing.request import PlanRequest
from knotless.topologies.fabric import Fabric
from knotless.verification.comparison import ALL, Compared, chosen, compare

COLUMNS = {
    "load": "max_channel_load",
    "mean": "mean_switches",
    "most": "max_switches",
    "safe": "safe",
    "VCs": "vcs",
    "VLANs": "vlans",
    "rules": "rules_max_switch",
    "minimal": "minimal",
    "under": "flow_control",
}
"""The columns of a comparison: heading -> key of the plan's summary."""
MORE_COLUMNS = {"bound": "load_bound", "ms": "routing_ms"}
"""Columns of ``--details``: one is equal for all engines, the other differs between runs."""


def compared(fabric: Fabric, request: PlanRequest, *, quiet: bool) -> list[Compared]:
    """Plan ``fabric`` with the engines of the request, with a progress bar unless ``quiet``."""
    rows = compare(fabric, request.engine, request)
    if quiet:
        return list(rows)
    done = []
    with Bar("Planning", total=len(chosen(request.engine)), transient=True) as bar:
        for row in rows:
            done.append(row)
            bar.update(completed=len(done))
    return done


def comparison_table(rows: Sequence[Compared], *, details: bool) -> Table:
    """Return the metrics of the engines that have a plan."""
    planned = [(row.engine, row.summary) for row in rows if row.summary is not None]
    columns = COLUMNS | MORE_COLUMNS if details else COLUMNS
    bound = next((summary["load_bound"] for _, summary in planned), 0)
    least = f" (at least {number_text(bound)})" if isinstance(bound, float) and bound else ""
    return Table(
        f"load: paths on the busiest channel{least}; mean, most: switches on a path; rules: on the"
        " switch with the most",
        ["engine", *columns],
        [
            [engine_name(engine), *(summary.get(key) for key in columns.values())]
            for engine, summary in planned
        ],
    )


def without_plan(
    fabric: Fabric, rows: Sequence[Compared], engines: str, *, details: bool
) -> Iterator[Reason]:
    """Yield which engines have no plan, and why if they were named or details are wanted."""
    reasons = [
        row.reason if row.reason.startswith(row.engine) else f"{row.engine}: {row.reason}"
        for row in rows
        if row.summary is None
    ]
    if details or engines != ALL:
        yield Several(reasons, "engines without a plan")
    elif reasons:
        yield f"do not apply to {fabric.name}: {counted(len(reasons), 'engines')} (--details)"


def comparison_answer(
    fabric: Fabric, rows: Sequence[Compared], engines: str, *, details: bool
) -> Answer:
    """Return what to say about plans of several engines."""
    planned = [row.summary for row in rows if row.summary is not None]
    safe = sum(bool(summary["safe"]) for summary in planned)
    tone = Tone.GOOD if safe == len(planned) else Tone.OPEN if safe else Tone.BAD
    return Answer(
        Headline(
            fabric.name, f"{safe} of {counted(len(planned), 'plans')}", "cannot deadlock", tone
        )
        if planned
        else Headline(
            fabric.name, "no plan", f"by any of {counted(len(rows), 'engines')}", Tone.BAD
        ),
        tables=[comparison_table(rows, details=details)] if planned else [],
        remarks=[*without_plan(fabric, rows, engines, details=details)],
    )
