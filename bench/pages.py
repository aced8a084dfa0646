"""``python -m bench.pages``: write the tables of stored benchmarks into the pages.

A stored run is ``docs/benchmarks/NAME.json``. Its table is between ``<!-- figures: NAME -->`` and
``<!-- end of figures -->`` on a page.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from bench import (
    bystanders,
    cluster_fabrics,
    controller,
    emulation_time,
    endpoint,
    failover,
    fair_share,
    false_alarms,
    freezing,
    large_repairs,
    load_latency,
    page,
    plan,
    random_faults,
    routing,
    scale,
    seeded,
    simulation,
    simulation_cores,
    since,
    takeover,
    training_step,
    validation,
)
from bench.support import repair_tables
from bench.support.entry import run_benchmark
from knotless.base.files import read_text, write_all
from knotless.results.page_parts import PartError, rewritten
from tests.seeded import limits

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = (
    "attacks.md",
    "check-changes.md",
    "cluster-fabrics.md",
    "controller.md",
    "decisions/probes.md",
    "decisions/repair.md",
    "does-it-freeze.md",
    "emulation.md",
    "failures.md",
    "messages.md",
    "performance.md",
    "seeded-controllers.md",
    "validation.md",
    "web.md",
)
TABLES: Mapping[str, Callable[[Any], Sequence[str]]] = {
    "bystanders": bystanders.table_of,
    "cluster-fabrics": cluster_fabrics.table_of,
    "controller": controller.table_of,
    "emulation-time": emulation_time.table_of,
    "endpoint": endpoint.table_of,
    "failover": failover.table_of,
    "fair-share": fair_share.table_of,
    "false-alarms": false_alarms.table_of,
    "freezing": freezing.table_of,
    "large-repairs": large_repairs.table_of,
    "load-latency": load_latency.table_of,
    "page": page.table_of,
    "page-browser": page.browser_table_of,
    "plan": plan.table_of,
    "random-faults": random_faults.table_of,
    "repair": repair_tables.table_of_cuts,
    "repairs": repair_tables.table_of_proofs,
    "routing": routing.table_of,
    "scale": scale.table_of,
    "seeded": seeded.table_of,
    "simulation": simulation.table_of,
    "simulation-cores": simulation_cores.table_of,
    "since": since.table_of,
    "takeover": takeover.table_of,
    "takeover-normal": takeover.table_of,
    "training-step": training_step.table_of,
    "validation": validation.table_of,
}
"""Name of a stored run -> the lines of its table."""
LIMITS = "limits"
"""The name of the tables of limits of simulated controllers, which are no stored run."""
HOW_LONG = "how-long"
"""The name of the table of two runs."""


def lines_of(name: str) -> Sequence[str]:
    """Return the lines of a stored run. Raises PartError if it cannot be read."""
    return TABLES[name](stored(name))


def how_long_lines() -> Sequence[str]:
    """Return how long failures last, of two stored runs; raises PartError likewise."""
    return repair_tables.table_of_durations({name: stored(name) for name in ("repair", "takeover")})


def stored(name: str) -> Any:
    """Return a stored run. Raises PartError if it cannot be read."""
    return json.loads(read_text(DOCS / "benchmarks" / f"{name}.json", PartError))


def written(text: str) -> str:
    """Return a page with the tables of all stored runs that it names."""
    tables = {name: partial(lines_of, name) for name in TABLES}
    return rewritten(text, {**tables, HOW_LONG: how_long_lines, LIMITS: limits.tables})


@click.command()
def main() -> None:
    """Write the tables of docs/benchmarks into the pages, after a new run is stored there.

    Example: python -m bench.pages
    """
    pages: dict[Path, str | bytes] = {
        DOCS / name: written(read_text(DOCS / name, PartError)) for name in PAGES
    }
    write_all(pages)
    click.echo(f"{', '.join(PAGES)}: from {len(TABLES)} runs")


if __name__ == "__main__":
    run_benchmark(main)
