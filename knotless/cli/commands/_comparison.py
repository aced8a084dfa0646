"""A comparison of engines, for ``knotless plan --compare`` and ``knotless advise``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.progress import track
from rich.table import Table

from knotless.base.printable import rich_text
from knotless.cli.output import say
from knotless.routing.request import PlanRequest
from knotless.shown import table_cell
from knotless.topologies.fabric import Fabric
from knotless.verification.comparison import Compared, chosen, compare

COLUMNS = {
    "VCs": "vcs",
    "VLANs": "vlans",
    "rules": "rules_max_switch",
    "mean": "mean_switches",
    "most": "max_switches",
    "load": "max_channel_load",
    "bound": "load_bound",
    "minimal": "minimal",
    "flow control": "flow_control",
    "safe": "safe",
    "ms": "routing_ms",
}
"""The columns of a comparison: heading -> key of the plan's summary."""
EXPLANATION = (
    "rules: on the switch with the most; mean, most: switches on a path; load: paths on the"
    " most loaded channel, and its lower bound for shortest paths"
)


def compared(fabric: Fabric, request: PlanRequest, *, quiet: bool) -> list[Compared]:
    """Plan ``fabric`` with the engines of the request, with a progress bar unless ``quiet``."""
    return list(
        track(
            compare(fabric, request.engine, request),
            "Planning",
            total=len(chosen(request.engine)),
            console=Console(stderr=True),
            transient=True,
            disable=quiet,
        )
    )


def print_comparison(
    spec: str, rows: Sequence[Compared], verdicts: Mapping[str, str] | None = None
) -> None:
    """Print a table, then the engines that cannot route the fabric, with the reason.

    ``verdicts`` are lines about the engines with a plan, which follow the table.
    """
    title = f"routing engines on {spec}"
    table = Table(
        title=rich_text(title, "table.title"), title_justify="left", box=None, pad_edge=False
    )
    table.add_column("engine", style="bold", no_wrap=True)
    for heading in COLUMNS:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        if row.summary is not None:
            cells = [table_cell(row.summary.get(key, "-")) for key in COLUMNS.values()]
            name = row.engine.rpartition("/")[2]  # of a file, its name
            table.add_row(*map(rich_text, [name, *cells]))
    Console(width=max(100, Console().width)).print(table)
    say(EXPLANATION)
    for row in rows:
        if row.summary is None:
            named = row.reason.startswith(row.engine)
            say(row.reason if named else f"{row.engine}: {row.reason}")
        elif verdicts is not None:
            say(f"{row.engine}: {verdicts[row.engine]}")
