"""The report of a run: one file, text as text, the same bytes each time."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from experiments.tests.support.deadlock_rows import row, samples
from knotless.results.results import Results
from knotless_experiments.framework import experiment as catalogue
from knotless_experiments.framework import report
from knotless_experiments.framework.experiment import EMULATION, SIMULATION, THE_SIMULATOR
from knotless_experiments.studies.deadlock import EXPERIMENT

ROWS = [
    row("cyclic", "none"),
    row("cyclic", "pause"),
    row("acyclic", "pause"),
    row("dateline", "pfc"),
]


def new(folder: Path) -> Results:
    return Results("deadlock", {"rate_mbps": 10.0}, 7, EXPERIMENT.columns.sample_types, folder)


def filled(folder: Path, rows: list[dict[str, Any]] = ROWS) -> Path:
    lines = samples(rows)
    with new(folder) as kept:
        for index, each in enumerate(rows):
            kept.add(each, [line for line in lines if line["row"] == index])
    return kept.directory


def test_the_report_of_an_interrupted_run_says_so(tmp_path: Path) -> None:
    kept = new(tmp_path)
    with pytest.raises(KeyboardInterrupt), kept:  # noqa: PT012 - the block is what ends
        kept.add(ROWS[0], samples(ROWS[:1]))
        raise KeyboardInterrupt
    path, _ = report.make(kept.directory, EXPERIMENT)
    assert "This run is incomplete" in path.read_text()


def test_the_report_needs_no_other_file(tmp_path: Path) -> None:
    directory = filled(tmp_path)
    path, shown = report.make(directory, EXPERIMENT)
    page = path.read_text()
    assert page.count("<svg") == len(shown.plots) == 4
    # Everything that a browser would fetch: attributes with URLs, style sheets, scripts.
    assert not re.search(r"<(link|script|iframe|img|object|embed)\b", page)
    assert not re.search(r"(src|href)=\"(?!#)", page)
    assert not re.search(r"url\((?!#|&quot;#|\"#)", page)
    assert "@import" not in page
    assert "<!ENTITY" not in page
    for plot in shown.plots:
        assert (directory / f"{plot.name}.svg").read_text().startswith("<svg")
        assert (directory / f"{plot.name}.png").read_bytes().startswith(b"\x89PNG")
    assert "s1:2/0 s2:2/0 s3:2/0 s4:2/0" in page


def test_the_report_shows_text_as_text(tmp_path: Path) -> None:
    bad = row("cyclic", "none", valid=False, problems=["<script>alert(1)</script>"])
    path, _ = report.make(filled(tmp_path, [bad]), EXPERIMENT)
    assert "<script>" not in path.read_text()


def test_one_run_drawn_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    directory = filled(tmp_path)
    report.make(directory, EXPERIMENT)
    before = {p.name: p.read_bytes() for p in directory.iterdir()}
    report.make(directory, EXPERIMENT)
    assert {p.name: p.read_bytes() for p in directory.iterdir()} == before


PARAMETERS = {
    **{"rate_mbps": 10.0, "delay_us": 1.0, "duration_s": 1.0},
    **{"spread_s": 1.0, "begins_s": 1.0, "load": 0.5},
}
EMULATED_ALONE = re.compile("iperf3|Open vSwitch|Open MPI")


def presented(name: str, on: str, **parameters: object) -> tuple[str, dict[str, str]]:
    run = {"rows": [], "seed": 1, "parameters": {**PARAMETERS, "on": on, **parameters}}
    shown = catalogue.load(name).present(run, [], False)
    return shown.lead, dict(shown.notes)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in catalogue.names()
        if SIMULATION in catalogue.load(name).places and name != "agreement"  # it runs on both
    ],
)
def test_the_method_of_a_simulated_run_is_the_simulator(name: str) -> None:
    lead, notes = presented(name, SIMULATION)
    assert "no Open vSwitch" in notes.pop(THE_SIMULATOR[0])
    assert not EMULATED_ALONE.findall(" ".join((lead, *notes.values())))


@pytest.mark.parametrize("name", ["deadlock", "traffic", "hops", "nas"])
def test_the_method_of_an_emulated_run_is_not_the_simulator(name: str) -> None:
    lead, notes = presented(name, EMULATION)
    assert EMULATED_ALONE.search(" ".join((lead, *notes.values())))
    assert THE_SIMULATOR[0] not in notes


def test_a_simulated_report_lists_only_what_was_used(tmp_path: Path) -> None:
    for on, listed in ((EMULATION, True), (SIMULATION, False)):
        parameters, types = {**PARAMETERS, "on": on}, EXPERIMENT.columns.sample_types
        with Results("deadlock", parameters, 1, types, tmp_path) as kept:
            kept.add({**ROWS[0], "on": on}, [])
        path, _ = report.make(kept.directory, EXPERIMENT)
        page = path.read_text()
        assert "<td>python</td>" in page
        assert [f"<td>{name}</td>" in page for name in report.ONLY_EMULATED] == [listed] * 4
