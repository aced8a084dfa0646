"""Tables of benchmarks on pages are those of the stored runs, and say what the runs say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bench import pages, plan, routing, simulation
from bench.support import repair_tables
from knotless.results import page_parts
from knotless.results.page_parts import PartError
from knotless_experiments.reproduction.inserts import INSERTS
from tests import measure_page
from tests.support import REPOSITORY

DOCS = REPOSITORY / "docs"


def stored(name: str) -> dict[str, Any]:
    run: dict[str, Any] = json.loads((DOCS / "benchmarks" / f"{name}.json").read_text())
    return run


@pytest.mark.parametrize("name", pages.PAGES)
def test_tables_are_those_of_the_stored_runs(name: str) -> None:
    text = (DOCS / name).read_text()
    assert pages.written(text) == text


def test_every_stored_run_is_on_one_page() -> None:
    files = sorted(path.stem for path in (DOCS / "benchmarks").glob("*.json"))
    parts = [part for name in pages.PAGES for part in page_parts.names((DOCS / name).read_text())]
    shown = [part for part in parts if part not in INSERTS]
    assert sorted(shown) == sorted([*files, pages.HOW_LONG, pages.LIMITS])
    assert files == sorted(pages.TABLES)


@pytest.mark.parametrize("name", pages.TABLES)
def test_stored_runs_measured_programs_of_the_release_profile(name: str) -> None:
    # Runs of before there was another profile do not name theirs.
    assert stored(name).get("versions", {}).get("profile", "release") == "release"


def test_an_unknown_table_is_refused() -> None:
    with pytest.raises(PartError, match="figures 'nothing': there are controller"):
        pages.written("<!-- figures: nothing -->\n<!-- end of figures -->")


def test_runs_have_all_cases() -> None:
    routed = [(row["fabric"], row["engine"]) for row in stored("routing")["rows"]]
    assert routed == [(spec, ours) for spec, pairs in routing.ROWS.items() for ours, _ in pairs]
    assert len(stored("plan")["rows"]) == len(plan.CASES)
    assert len(stored("simulation")["rows"]) == len(simulation.CASES)
    assert set(stored("page-browser")["replay"]) == set(measure_page.CONFIGURATIONS)


def routed(ours_ms: float | None, opensm_ms: float | None, failure: str = "") -> dict[str, Any]:
    ours = {"routing_ms": ours_ms, "vcs": 1, "max_channel_load": 1000}
    theirs = {"routing_ms": opensm_ms, "virtual_lanes": None, "max_channel_load": 7}
    return {
        **{"fabric": "ring,4", "engine": "dor", "load_bound": 3.0, "opensm_engine": "updn"},
        "ours": None if ours_ms is None else ours,
        "opensm": {**theirs, "failure": failure},
    }


def test_rows_in_which_opensm_is_earlier_are_named() -> None:
    host = {"cores": 2, "cpu": "A", "memory_mib": 2048, "system": "Linux", "kernel": "6.1"}
    rows = [
        routed(2.0, 1.0),
        routed(1.0, 12.34),
        routed(2.0, 1.0, "fails"),
        routed(2.0, None, "not finished after 100 s"),
        routed(2.0, None, "crashed by signal 11"),
        routed(None, 1.0),
    ]
    table = routing.table_of({"machine": {**host, "load_1min": 0.1}, "rows": rows})
    assert table[2:8] == [
        "| ring,4 | 3 | dor | 2.00 | 1 | 1,000 | updn | 1.00 |  | 7 |",
        "| ring,4 | 3 | dor | 1.00 | 1 | 1,000 | updn | 12.3 |  | 7 |",
        "| ring,4 | 3 | dor | 2.00 | 1 | 1,000 | updn | 1.00 |  | fails |",
        "| ring,4 | 3 | dor | 2.00 | 1 | 1,000 | updn |  |  | not finished |",
        "| ring,4 | 3 | dor | 2.00 | 1 | 1,000 | updn |  |  | crashed |",
        "| ring,4 | 3 | dor |  |  | refused | updn | 1.00 |  | 7 |",
    ]
    assert table[-1].startswith(
        "Both sides have routes in 2 of 6 rows; OpenSM's are earlier in 1: `updn` on `ring,4`."
    )


def test_kinds_of_repairs_are_counted_in_three_groups() -> None:
    means = {"moved": 0.065, "moved_by_new_plan": 0.5, "stretch": 1.25}
    group = {"kinds": {"none": 1, "repaired": 2, "extended": 4, "replanned": 8, "updown": 16}}
    row = {
        **{"engine": "dor", "default": group, "tree": {"kinds": {}}},
        "known": {"kinds": {"repaired": 1000}, **means, "rules_changed_per_switch": 5.71},
    }
    lines = repair_tables.table_of_proofs({"rows": [row]})
    assert lines[0] == "Repaired plans of 1 engines: 1,031."
    expected = "| `dor` | 3, 4, 24 | 0, 0, 0 | 1000, 0, 0 | 6.5 % | 50.0 % | 1.25 | 5.7 |"
    assert lines[-1] == expected
