"""Comparing runs, storing them, and the pages that compare the papers' figures with ours."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from knotless.cli.main import main
from knotless.results import stored
from knotless.results.markdown import page as markdown
from knotless.results.spread import Spread
from knotless.results.stored import FOLDER, Stored, StoredError
from knotless_experiments.framework import experiment as catalogue
from knotless_experiments.framework.compare import compare
from knotless_experiments.framework.experiment import EMULATION, ExperimentError
from knotless_experiments.reproduction import left_out, page
from knotless_experiments.reproduction.claim import FITTED, INFERRED, MISSING
from knotless_experiments.reproduction.claims import claims, headlines, paper, papers
from knotless_experiments.reproduction.headlines import claim_of, measured
from knotless_experiments.reproduction.rows import CONDITIONS, condition, rows
from knotless_experiments.reproduction.selectors import (
    best,
    larger,
    losing,
    ratios,
    slope,
    typical,
    where,
)
from knotless_experiments.studies.hops import EXPERIMENT as HOPS

KNOWN = stored.read(FOLDER)
CLAIMS = claims()
RESULTS = {
    name
    for line in (
        "on valid late problems repeat lateness_us_p99 lost_frames deadlock cycle result_sha256",
        "late_attempts stretch slow_down host_wait_us datapath real_time_programs",
        "of_theory theory_mbps flows flows_mbps theory_flows_mbps mean_mbps",
        "mean_switches max_channel_load window_s mbps of_line seconds throughput_ratio barriers",
        "list_means_us mean_us median_us p50_us p99_us min_us max_us predicted_us one_way_us",
        "asked as_predicted delivered_frames drops frozen_after_s iperf3_flows_mbps iperf3_lost",
        "predicted_cycle sent_frames bandwidth_mbps latency_us messages theory_us bytes error",
        "verified acyclic links max_switches minimal rules_max_switch undelivered vlans count",
        "mbit_per_s messages_per_s stages_us",
    )
    for name in line.split()
}
"""Columns that are results. Some are conditions of another experiment."""
RESULTS_ELSEWHERE = {
    "barrier": {"switches"},
    "change": {
        *("seed", "order", "change_s", "deadlock_after_s", "stopped_frames", "delivered_frames"),
        *("tier", "steps", "dropped_pairs", "estimated_drop_s", "dropped_s"),
    },
    "paths": {"hosts", "switches"},
}


def run(name: str, rows: list[dict[str, Any]], **others: Any) -> dict[str, Any]:
    head = {"experiment": name, "id": "x", "seed": 1, "status": "complete", "pid": 1}
    parts: dict[str, Any] = {"parameters": {}, "versions": {}, "machine": {}}
    return {**head, **parts, "rows": rows, **others}


def hop(tagging: str, time_us: float, **others: Any) -> dict[str, Any]:
    case: dict[str, Any] = {"tagging": tagging, "switches": 2, "message_bytes": 16, "repeat": 1}
    case |= {"measure": "messages", "rate_mbps": 10.0}
    figures = {"p50_us": time_us, "theory_us": time_us, "bandwidth_mbps": 1.0}
    return {"on": "emulation", "valid": True, **case, **figures, **others}


def cells(runs: list[dict[str, Any]]) -> list[str]:
    lines = markdown(page.paper_page(Stored(runs), paper("004"))).splitlines()
    (line,) = [line for line in lines if "Time of a message with switch tagging" in line]
    return [cell.strip() for cell in line.split("|")]


def cost(rows: list[dict[str, Any]]) -> str:
    return cells([run("hops", rows)])[4]


def test_figures_come_from_the_rows() -> None:
    assert cost([hop("switch", 110.0), hop("none", 100.0)]) == "1.100"
    assert cost([hop("switch", 120.0), hop("none", 100.0)]) == "1.200"


def test_rows_that_are_not_valid_are_left_out() -> None:
    rows = [hop("switch", 110.0), hop("none", 100.0), hop("switch", 900.0, valid=False)]
    assert cost(rows) == "1.100"
    assert cost([hop("switch", 110.0), hop("none", 100.0, valid=False)]) == MISSING


def test_unavailable_figures_are_dashes_and_missing_ones_are_named() -> None:
    assert cells([run("hops", [])])[3:7] == [
        "no difference: within 0.02 of 1",
        MISSING,
        "-",
        "-",
    ]


def test_repeats_are_shown_with_their_spread() -> None:
    rows = [hop("none", 100.0, repeat=i) for i in (1, 2)]
    rows += [hop("switch", 110.0, repeat=1), hop("switch", 130.0, repeat=2)]
    assert cost(rows) == "1.200 (1.100 to 1.300; 2)"


def test_every_claim_is_of_an_experiment_that_there_is() -> None:
    assert {claim.experiment for claim in CLAIMS} <= set(catalogue.names())
    assert {claim.experiment for claim in CLAIMS} <= set(CONDITIONS)


def test_every_emulated_figure_is_of_a_valid_run() -> None:
    spreads = {
        (c.paper, c.place, c.what): c.compute(rows(KNOWN, c.experiment, EMULATION))
        for c in CLAIMS
        if EMULATION in c.places
    }
    assert len(spreads) > 100
    assert {name for name, spread in spreads.items() if spread is None} == set()


@pytest.mark.parametrize("experiment", CONDITIONS)
def test_every_column_that_can_differ_is_a_condition(experiment: str) -> None:
    columns = {
        name
        for each in KNOWN.runs
        if each["experiment"] == experiment
        for row in each["rows"]
        for name in row
    }
    results = (RESULTS | RESULTS_ELSEWHERE.get(experiment, set())) - set(CONDITIONS[experiment])
    assert columns - results - set(CONDITIONS[experiment]) - DERIVED == set()


DERIVED = {"routes", "hosts", "switches"}
"""Columns that follow from conditions: fabric, engine, virtual channels and selection."""


def test_ratios_pair_rows_that_differ_only_in_the_compared_condition() -> None:
    def row(tagging: str, switches: int, rate_mbps: float, value: float) -> dict[str, Any]:
        case = {"experiment": "hops", "tagging": tagging, "switches": switches}
        return {**case, "rate_mbps": rate_mbps, "v": value}

    examples = [row("a", 1, 5.0, 6.0), row("b", 1, 5.0, 3.0), row("a", 2, 5.0, 5.0)]
    examples += [row("b", 2, 5.0, 5.0), row("a", 3, 5.0, 1.0), row("b", 3, 9.0, 1.0)]
    by_case = ratios(examples, "v", where(tagging="a"), where(tagging="b"), ("tagging",))
    assert list(by_case.values()) == [[2.0], [1.0]]
    assert best(by_case) == Spread(2.0, 2.0, 2.0, 1)
    assert typical(by_case) == Spread(1.5, 1.0, 2.0, 2)
    assert losing({("x",): [0.9, 1.0], ("y",): [1.5]}) == Spread(1.0, 1.0, 1.0, 1)
    assert larger({("x",): [0.5], ("y",): [1.5]}) == Spread(2.0, 2.0, 2.0, 1)
    assert best({}) is None


def test_a_slope_is_by_least_squares() -> None:
    assert slope([(1, 1.0), (2, 3.0), (3, 5.0)]) == pytest.approx(2.0)
    assert slope([(1, 1.0), (1, 3.0)]) == 0.0


def test_settings_of_a_run_are_conditions_of_its_rows() -> None:
    common = {"experiment": "deadlock", "parameters": {"watchdog_us": 1000.0}}
    kept = Stored([run("deadlock", [{"valid": True, "rate_mbps": 1.0}], **common)])
    (row,) = rows(kept, "deadlock", EMULATION)
    assert (row["watchdog_us"], row["rate_mbps"], row["delay_us"]) == (1000.0, 1.0, None)


def test_words_of_a_paper_stay_words() -> None:
    sheet = list(csv.DictReader(io.StringIO(page.table(KNOWN))))
    assert len(sheet) == len(CLAIMS)
    words = {"almost no difference", "hardly matters", "dimension order is best", "higher"}
    words |= {"nearly agree", "no difference", "nearly linear", "linear", "over 0.9 in most"}
    words |= {"markedly worse", "nearly zero"}
    assert words <= {line["printed"] for line in sheet}
    assert page.over(Spread(3.0, 3.0, 3.0, 1), "no difference") == page.NOWHERE
    assert page.over(Spread(3.0, 3.0, 3.0, 1), 2.0) == "1.50"
    assert page.over(Spread(0.0, 0.0, 0.0, 1), 0.001) == page.NOWHERE


def test_fitted_and_inferred_figures_are_marked() -> None:
    fitted = {(c.paper, c.place) for c in CLAIMS if c.mark == FITTED}
    assert ("001", "Figure 2, section 5.1.1") in fitted
    assert ("001", "Barrier of 15 hosts, two networks") in fitted
    (share,) = [c for c in CLAIMS if (c.paper, c.place) == ("003", "Section 4.2")]
    assert (share.mark, share.theirs) == (INFERRED, 0.4625)


def test_a_scan_that_its_text_contradicts_is_no_number() -> None:
    place = ("Table 4, (a) over (b), UDP", "Cyclic over acyclic routes, PAUSE on all links")
    (claim,) = [c for c in CLAIMS if (c.place, c.what) == place]
    assert claim.theirs == "nearly zero"
    assert "209 Mbit/s" in claim.why


def test_what_the_papers_print_is_compared() -> None:
    claimed = [(c.paper, c.place, c.what) for c in CLAIMS]
    assert len(set(claimed)) == len(claimed)

    def count(paper: str, place: str, what: str = "") -> int:
        return sum(
            p == paper and re.match(place, where) is not None and what in words
            for p, where, words in claimed
        )

    assert count("004", "Table [34]", "Lost frames") == 48
    assert count("000", "Table [4567],") == 60
    assert count("002", r"Figure 18, L\d$") == 22
    assert count("003", r"Table 3, \(") == 12
    assert count("004", "Figure 10, transpose", "Mean bandwidth") == 8
    assert count("000", "Figure 8$") == count("000", "Figure 10$") == 1


def test_the_overview_is_one_screen_of_judged_claims() -> None:
    text = markdown(page.overview(KNOWN))
    assert 12 <= len(headlines()) <= 15
    assert len(text.splitlines()) < 70
    for headline in headlines():
        claim = claim_of(headline)
        assert claim is None or not isinstance(claim.theirs, str) or claim.agrees is not None


def test_left_out_rows_are_counted_with_what_they_would_change() -> None:
    def spoilt(each: Mapping[str, Any]) -> Mapping[str, Any]:
        if each["experiment"] != "hops" or each["parameters"].get("on") != EMULATION:
            return each
        tagged = [row for row in each["rows"] if row["tagging"] == "switch"]
        bad = [{**row, "valid": False, "p50_us": 2 * row["p50_us"]} for row in tagged]
        return {**each, "rows": bad + each["rows"]}

    changed = Stored([spoilt(each) for each in KNOWN.runs])
    invalid = sum(not row["valid"] for each in changed.runs for row in each["rows"])
    assert invalid > 0
    text = "\n".join(left_out.lines(changed))
    assert f"{invalid:,} rows are not valid" in text
    (claim,) = [c for c in CLAIMS if c.what.startswith("Time of a message with switch tagging")]
    good = measured(changed, claim)[EMULATION]
    every = measured(changed, claim, valid=False)[EMULATION]
    assert good is not None
    assert every is not None
    assert (good, round(every.mean / good.mean, 3)) == (measured(KNOWN, claim)[EMULATION], 2.0)
    figures = f"{good.mean:.3f} ({good.count}) | {every.mean:.3f} ({every.count})"
    assert f"| 004 | {claim.place} | {claim.what} | {figures} |" in text


def test_every_plot_is_shown_with_its_caption() -> None:
    for each in papers():
        text = " ".join(markdown(page.paper_page(KNOWN, each)).split())
        for section in each.sections:
            assert section.title in text
            for plot in section.plots:
                assert f"](images/{plot.name}.svg) {plot.caption}" in text


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
    from knotless.results.results import Results

    with Results("hops", {"on": "emulation"}, 1, HOPS.columns.sample_types, tmp_path) as results:
        results.add(hop("none", 1.0), [])
    path = stored.keep(results.directory, tmp_path / "kept")
    assert json.loads(path.read_text())["rows"] == [hop("none", 1.0)]
    broken = Results("hops", {}, 1, HOPS.columns.sample_types, tmp_path)
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


@pytest.mark.parametrize("experiment", CONDITIONS)
def test_simulations_of_equal_conditions_have_equal_results(experiment: str) -> None:
    seen: dict[tuple[Any, ...], set[str]] = {}
    for each in KNOWN.runs:
        for row in rows(Stored([each]), experiment, "simulation"):
            key = (each["seed"], *condition(row, ()))
            if hash_of := row.get("result_sha256"):
                seen.setdefault((*key, row.get("window_s")), set()).add(hash_of)
            elif "mean_us" in row:
                seen.setdefault((*key, row.get("barriers")), set()).add(str(row["mean_us"]))
    assert [key for key, results in seen.items() if len(results) > 1] == []
