"""Comparing runs, and the page that compares the papers' figures with ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from experiments.framework import experiment as catalogue
from experiments.framework.compare import compare
from experiments.framework.experiment import EMULATION, ExperimentError
from experiments.reproduction import page
from experiments.reproduction.claims import CLAIMS
from experiments.reproduction.figures import best, ratios, typical, where
from experiments.studies.hops import EXPERIMENT as HOPS
from experiments.studies.primitives.stages import STAGES
from knotless.commands.reproduction import DEFAULT_PAGE
from knotless.main import main
from runs import stored
from runs.spread import Spread
from runs.stored import FOLDER, Stored, StoredError


def run(name: str, rows: list[dict[str, Any]], **others: Any) -> dict[str, Any]:
    head = {"experiment": name, "id": "x", "seed": 1, "status": "complete", "pid": 1}
    parts: dict[str, Any] = {"parameters": {}, "versions": {}, "machine": {}}
    return {**head, **parts, "rows": rows, **others}


def hop(tagging: str, time_us: float, **others: Any) -> dict[str, Any]:
    case: dict[str, Any] = {"tagging": tagging, "switches": 2, "message_bytes": 16, "repeat": 1}
    case |= {"measure": "messages"}
    figures = {"p50_us": time_us, "theory_us": time_us, "bandwidth_mbps": 1.0}
    return {"on": "emulation", "valid": True, **case, **figures, **others}


def cost(rows: list[dict[str, Any]]) -> str:
    lines = page.text(Stored([run("hops", rows)])).splitlines()
    (line,) = [line for line in lines if "Time of a message with switch tagging" in line]
    return line.split("|")[4].strip()


def test_figures_come_from_the_rows() -> None:
    assert cost([hop("switch", 110.0), hop("none", 100.0)]) == "1.100"
    assert cost([hop("switch", 120.0), hop("none", 100.0)]) == "1.200"


def test_rows_that_are_not_valid_are_left_out() -> None:
    rows = [hop("switch", 110.0), hop("none", 100.0), hop("switch", 900.0, valid=False)]
    assert cost(rows) == "1.100"
    assert cost([hop("switch", 110.0), hop("none", 100.0, valid=False)]) == page.MISSING


def test_unavailable_figures_are_dashes_and_missing_ones_are_named() -> None:
    (line,) = [
        line
        for line in page.text(Stored([run("hops", [])])).splitlines()
        if "Time of a message with switch tagging" in line
    ]
    assert [cell.strip() for cell in line.split("|")[4:8]] == [page.MISSING, "-", "-", "-"]


def test_a_push_is_compared_with_the_paper_by_its_sending_stage() -> None:
    times = dict(zip(STAGES, range(len(STAGES)), strict=True))
    row = {"on": "emulation", "valid": True, "operation": "stages", "stages_us": times}
    (claim,) = [claim for claim in CLAIMS if claim.experiment == "primitives"]
    assert claim.compute([row]) == Spread(3 / 5, 3 / 5, 3 / 5, 1)


def test_repeats_are_shown_with_their_spread() -> None:
    rows = [hop(kind, us, repeat=i) for i in (1, 2) for kind, us in (("none", 100.0),)]
    rows += [hop("switch", 110.0, repeat=1), hop("switch", 130.0, repeat=2)]
    assert cost(rows) == "1.200 (1.100 to 1.300; 2)"


def test_every_claim_is_of_an_experiment_that_there_is() -> None:
    assert {claim.experiment for claim in CLAIMS} <= set(catalogue.names())


def test_the_page_in_the_repository_matches_its_runs() -> None:
    assert DEFAULT_PAGE.read_text(encoding="utf-8") == page.text(stored.read(FOLDER))


def test_every_emulated_figure_on_the_page_is_of_five_runs() -> None:
    kept = stored.read(FOLDER)
    found = {
        (c.paper, c.place, c.what): c.compute(kept.rows(c.experiment, EMULATION))
        for c in CLAIMS
        if EMULATION in c.places
    }
    assert len(found) > 100
    assert [name for name, spread in found.items() if spread is None or spread.count < 5] == []


def test_ratios_pair_rows_that_differ_only_in_the_compared_value() -> None:
    rows = [
        {"kind": kind, "at": at, "v": v}
        for kind, at, v in (("a", 1, 6.0), ("b", 1, 3.0), ("a", 2, 5.0), ("b", 2, 5.0), ("a", 3, 1))
    ]
    found = ratios(rows, "v", where(kind="a"), where(kind="b"), ("at",))
    assert found == {(1,): [2.0], (2,): [1.0]}
    assert best(found) == Spread(2.0, 2.0, 2.0, 1)
    assert typical(found) == Spread(1.5, 1.0, 2.0, 2)
    assert best({}) is None


def test_runs_are_compared_case_by_case() -> None:
    one = run("hops", [hop("none", 100.0), hop("none", 102.0), hop("none", 9.0, valid=False)])
    two = run("hops", [hop("none", 202.0)])
    (line, _) = compare(HOPS, [one, two])
    assert line.case == {
        "measure": "messages",
        "tagging": "none",
        "switches": 2,
        "message_bytes": 16,
    }
    assert line.spreads == (Spread(101.0, 100.0, 102.0, 2), Spread(202.0, 202.0, 202.0, 1))
    assert line.ratios == (1.0, 2.0)


def test_runs_of_two_experiments_are_not_compared() -> None:
    with pytest.raises(ExperimentError, match="only runs of one experiment"):
        compare(HOPS, [run("hops", []), run("traffic", [])])


def test_only_complete_runs_are_stored(tmp_path: Path) -> None:
    from runs.results import Results

    with Results("hops", {"on": "emulation"}, 1, HOPS.sample_types, tmp_path) as results:
        results.add(hop("none", 1.0, earlier_attempts=[1]), [])
    path = stored.keep(results.directory, tmp_path / "kept")
    assert json.loads(path.read_text())["rows"] == [hop("none", 1.0)]
    broken = Results("hops", {}, 1, HOPS.sample_types, tmp_path)
    with pytest.raises(StoredError, match="only complete ones"):
        stored.keep(broken.directory, tmp_path / "kept")


def test_a_folder_without_runs_is_a_line(tmp_path: Path) -> None:
    asked = ["reproduction", "--stored", str(tmp_path), "--out", str(tmp_path / "page.md")]
    result = CliRunner(mix_stderr=False).invoke(main, asked)
    assert result.exit_code == 2
    assert "there are no stored runs" in result.stderr
    assert not (tmp_path / "page.md").exists()


def test_a_folder_without_a_run_gives_one_line(tmp_path: Path) -> None:
    result = CliRunner(mix_stderr=False).invoke(main, ["report", str(tmp_path)])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
