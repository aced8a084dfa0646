"""Tables in docs are those of stored runs."""

from __future__ import annotations

import json
from pathlib import Path

from bench import controller, failover, simulation
from bench.plan import table_of
from tests import measure_page

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_table_is_that_of_the_stored_run() -> None:
    rows = table_of(json.loads((DOCS / "benchmarks" / "plan.json").read_text())["rows"])
    assert len(rows) == 8
    assert "\n".join(rows) in (DOCS / "performance.md").read_text()


def test_the_table_of_simulations_is_that_of_the_stored_run() -> None:
    held = json.loads((DOCS / "benchmarks" / "simulation.json").read_text())
    rows = simulation.table_of(held)
    assert len(rows) == len(simulation.CASES) + 2
    assert "\n".join(rows) in (DOCS / "performance.md").read_text()


def test_the_table_of_backups_is_that_of_the_stored_run() -> None:
    rows = failover.table_of(
        json.loads((DOCS / "benchmarks" / "failover.json").read_text())["rows"]
    )
    assert len(rows) == 2 * len(failover.FABRICS) + 2
    assert "\n".join(rows) in (DOCS / "failures.md").read_text()


def test_the_table_of_the_controller_is_that_of_the_stored_run() -> None:
    held = json.loads((DOCS / "benchmarks" / "controller.json").read_text())
    rows = controller.table_of(held["rows"])
    assert len(rows) == 4
    assert "\n".join(rows) in (DOCS / "performance.md").read_text()


def test_the_table_of_the_page_is_that_of_the_stored_run() -> None:
    rows = measure_page.table_of(
        json.loads((DOCS / "benchmarks" / "page-browser.json").read_text())
    )
    assert len(rows) == len(measure_page.CONFIGURATIONS) + 4
    assert "\n".join(rows) in (DOCS / "web.md").read_text()
