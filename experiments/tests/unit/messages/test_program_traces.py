"""``knotless simulate --trace``: recorded programs, and invalid files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from experiments.tests.support.experiment_rows import rows_of
from knotless.cli.commands.simulate import command
from knotless.cli.main import main
from knotless_experiments.framework.experiment import SIMULATION, Common
from knotless_experiments.studies.nas import EXPERIMENT

PROGRAM = "process,kind,peer,bytes,seconds\n"
MESSAGES = "time_us,source,destination,bytes\n"


def simulated(*arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(command, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    output: dict[str, Any] = json.loads(done.output)
    return output


def test_a_recorded_kernel_takes_as_long_as_its_experiment_says(tmp_path: Path) -> None:
    options = {"fabric": ("torus,4,4",), "engines": "dor", "kernels": "is", "problem_class": "S"}
    common = Common(on=SIMULATION, quick=True)
    (row,) = rows_of(EXPERIMENT, common, **options, processes=None, traces=str(tmp_path))
    assert row["processes"] == 16
    trace = str(tmp_path / "is-S-16.program.csv")
    words = ["torus,4,4,rate=20,delay=2000", "--engine", "dor", "--flow-control", "pfc"]
    figures = simulated(*words, "--trace", trace, "--computing", "0")
    assert figures["program_us"] == pytest.approx(1e6 * row["seconds"], rel=1e-9)
    assert figures["messages"] == row["messages"]
    assert simulated(*words, "--trace", trace)["program_us"] > figures["program_us"]


def test_other_traffic_has_no_program(tmp_path: Path) -> None:
    trace = tmp_path / "messages.csv"
    trace.write_text(MESSAGES + "0,h1,h2,100\n")
    assert simulated("ring,4", "--trace", str(trace))["program_us"] is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "line 1 must be time_us,source,destination,bytes or process,kind"),
        pytest.param(b"\x00" * 5000, "line 1 must be", id="zeros"),
        (b"\xff\xfe\x00", "cannot be read"),
        pytest.param(b"z" * 10**6, "line 1 must be", id="no end of line"),
        (
            MESSAGES + "2,h1,h2,1\n1,h1,h2,1\n",
            "line 3: the time is earlier than in the previous line",
        ),
        (MESSAGES + "0,h1,h99,1\n", "line 2: ring,4 has no host 'h99'"),
        pytest.param(MESSAGES + "0,h1,h2," + "1" * 5000, "line 2: ", id="a number without end"),
        (MESSAGES + '0,"h1\n', "line 2: 2 values, not 4"),
        (PROGRAM + "4,send,1,5,0\n", "line 2: process 4 is not one of 0 to 3"),
        (PROGRAM + "0,send,0,5,0\n", "line 2: process 0 is its own peer"),
        (PROGRAM + "1,recv,0,5,0\n", "h2 waits for a message that nobody sends"),
        (PROGRAM + "0,recv,1,5,0\n1,recv,0,5,0\n", "h1 waits for a message that nobody sends"),
    ],
)
def test_hostile_files_are_one_line_and_exit_2(
    content: bytes | str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "t.csv"
    trace.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(SystemExit) as ended:
        main(["simulate", "ring,4", "--trace", str(trace)])
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
    assert len(told) < 300


def test_invalid_computing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["simulate", "ring,4", "--trace", "/dev/null", "--computing", "-1"])
    assert ended.value.code == 2
    assert "computing: -1 is not in 0..1000" in capsys.readouterr().err
