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

from bench import controller, instructions, plan, proofs, routing, scale, session, simulation, since
from bench.support import repair_tables
from bench.support.entry import run_benchmark
from knotless.base.files import read_text, write_all
from knotless.results.page_parts import PartError, rewritten
from knotless_experiments.reproduction.inserts import INSERTS
from tests import measure_page, prove_changes
from tests.seeded import limits, summary
from tests.support import endpoint_overloads, session_edits

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = (
    "check-changes.md",
    "controller-failures.md",
    "decisions/repair.md",
    "endpoints.md",
    "explanation/proof.md",
    "explanation/verdicts.md",
    "performance.md",
    "seeded-controllers.md",
    "web.md",
)
TABLES: Mapping[str, Callable[[Any], Sequence[str]]] = {
    "controller": controller.table_of,
    "endpoint-overloads": endpoint_overloads.table_of,
    "instructions": instructions.table_of,
    "page-browser": measure_page.table_of,
    "plan": plan.table_of,
    "proofs": proofs.table_of,
    "prove-changes": prove_changes.table_of,
    "repair": repair_tables.table_of_cuts,
    "repairs": repair_tables.table_of_proofs,
    "routing": routing.table_of,
    "scale": scale.table_of,
    "seeded": summary.table_of,
    "session": session.table_of,
    "session-edits": session_edits.table_of,
    "simulation": simulation.table_of,
    "since": since.table_of,
}
"""Name of a stored run -> the lines of its table."""
LIMITS = "limits"
"""The name of the tables of limits of simulated controllers, which are no stored run."""
HOW_LONG = "how-long"
"""The name of the second table of the run of repairs."""


def lines_of(name: str) -> Sequence[str]:
    """Return the lines of a stored run. Raises PartError if it cannot be read."""
    return TABLES[name](stored(name))


def how_long_lines() -> Sequence[str]:
    """Return how long failures last, of the stored run of repairs; raises PartError likewise."""
    return repair_tables.table_of_durations(stored("repair"))


def stored(name: str) -> Any:
    """Return a stored run. Raises PartError if it cannot be read."""
    return json.loads(read_text(DOCS / "benchmarks" / f"{name}.json", PartError))


def written(text: str) -> str:
    """Return a page with the tables of all stored runs that it names."""
    tables = {name: partial(lines_of, name) for name in TABLES}
    return rewritten(text, {**tables, HOW_LONG: how_long_lines, LIMITS: limits.tables}, INSERTS)


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
