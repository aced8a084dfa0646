"""What benchmarks share: options, rows that replace others of a stored run, errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from bench.support import entry
from bench.support.entry import (
    Run,
    benchmark,
    case_option,
    machine_line,
    merged,
    run_benchmark,
)
from knotless.base.errors import KnotlessError
from knotless.results.machine import machine


def table_of(run: Mapping[str, Any]) -> list[str]:
    return [f"{row['fabric']}: {row['size']}" for row in run["rows"]]


@benchmark(table_of, keys=("fabric",), order=lambda row: row["fabric"])
@click.option("--size", default=1)
@click.argument("fabrics", nargs=-1)
@case_option(lambda number: {"case": number})
def measured(run: Run, fabrics: tuple[str, ...], size: int) -> None:
    """Measure nothing."""
    run.more(unit="none")
    for fabric in fabrics:
        if fabric == "wrong":
            raise KnotlessError("wrong fabric")
        run.add({"fabric": fabric, "size": size})


def printed(*words: str) -> str:
    done = CliRunner(mix_stderr=False).invoke(measured, words)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_run_is_printed_as_a_table_or_as_json_of_which_the_table_is_the_same(
    tmp_path: Path,
) -> None:
    assert printed("a", "b") == "a: 1\nb: 1\n"
    stored = tmp_path / "run.json"
    stored.write_text(printed("a", "b", "--json"))
    run = json.loads(stored.read_text())
    assert [*run] == ["machine", "versions", "load_1min_after", "unit", "rows"]
    assert (run["unit"], run["rows"][1]) == ("none", {"fabric": "b", "size": 1})
    assert printed("--table", str(stored)) == "a: 1\nb: 1\n"


def test_rows_replace_those_of_the_same_case_and_keep_their_processor(tmp_path: Path) -> None:
    stored, here = tmp_path / "run.json", machine()["cpu"]
    old = [{"fabric": fabric, "size": 1} for fabric in "ca"]
    stored.write_text(json.dumps({"machine": {"cpu": "A"}, "rows": old}))
    assert printed("b", "a", "--size", "2", "--into", str(stored)) == "b: 2\na: 2\n"
    assert json.loads(stored.read_text())["rows"] == [
        {"fabric": "a", "size": 2, "cpu": here},
        {"fabric": "b", "size": 2, "cpu": here},
        {"cpu": "A", "fabric": "c", "size": 1},
    ]
    new = tmp_path / "new.json"
    printed("a", "--into", str(new))
    assert json.loads(new.read_text())["rows"] == [{"fabric": "a", "size": 1, "cpu": here}]


def test_rows_that_were_measured_before_a_mistake_are_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = tmp_path / "run.json"
    monkeypatch.setattr(entry, "end_at_signal", lambda: None)
    monkeypatch.setattr("sys.argv", ["measured", "a", "wrong", "--into", str(stored)])
    with pytest.raises(SystemExit) as ended:
        run_benchmark(measured)
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1] == "knotless: wrong fabric"
    assert [row["fabric"] for row in json.loads(stored.read_text())["rows"]] == ["a"]


def test_a_case_is_measured_alone() -> None:
    assert json.loads(printed("--case", "3")) == {"case": 3}


def test_new_rows_replace_all_of_their_case() -> None:
    stored = [{"fabric": spec, "engine": "dor"} for spec in ("mesh,4,4", "lsft,7")]
    new = [{"fabric": "lsft,7", "engine": engine} for engine in ("lsft", "dor")]
    assert merged(stored, new, ["fabric"]) == [stored[0], *new]


def test_the_load_of_the_machine_is_shown_as_it_was_stored() -> None:
    host = {"cores": 2, "cpu": "A", "memory_mib": 2048, "system": "Linux", "kernel": "6.1-x"}
    run: dict[str, Any] = {"machine": {**host, "load_1min": 0.25}}
    assert machine_line(run) == "Machine: 2 cores (A), 2.0 GiB, Linux 6.1; load 0.2 after the run."
    run["load_1min_after"] = 1.5
    assert machine_line(run).endswith("load 0.2 before the run and 1.5 after it.")
    run["rows"] = [{"load_1min": 2.0}, {"load_1min": 0.1}]
    assert machine_line(run).endswith("load 0.1 to 2.0 when the rows were measured.")
    run["rows"] = [{"cpu": "B"}, {}, {"cpu": "B"}]
    assert machine_line(run).startswith("Machine: 2 cores (B or A), 2.0 GiB")
