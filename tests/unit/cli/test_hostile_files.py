"""Special files as input or output of any command: one error line, quickly, and no damage."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.base.errors import KnotlessError
from knotless.base.files import append, read_bytes, write_all, write_whole
from knotless.cli.main import main
from tests.support import REPOSITORY

KNOTLESS = [sys.executable, "-P", "-m", "knotless"]


def complaint(*words: str) -> str:
    """Run a command line that must be refused; return its error line."""
    done = CliRunner(mix_stderr=False).invoke(main, list(words), prog_name="knotless")
    assert done.exit_code == 2, done.output
    assert done.stderr.count("\n") == 1
    return done.stderr


def fifo(path: Path) -> str:
    os.mkfifo(path)
    return "it is a pipe, not a file"


def zeros(path: Path) -> str:
    path.symlink_to("/dev/zero")
    return "it is a device, not a file"


def folder(path: Path) -> str:
    path.mkdir()
    return "it is a directory, not a file"


def sparse(path: Path) -> str:
    with path.open("wb") as file:
        file.truncate(3 << 30)
    return "has 3221225472 bytes, at most"


ODD = [fifo, zeros, folder, sparse]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(
    "words",
    [
        ["topology"],
        ["plan"],
        ["simulate", "ring,4", "--trace"],
        ["simulate", "ring,4", "--goal"],
        ["schedule"],
        ["analyse", "--pattern", "shift"],
    ],
)
def test_input(words: list[str], odd: Callable[[Path], str], tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    message = odd(path)
    if words[0] == "simulate" and odd is sparse:
        # Traces and programs may have gigabytes.
        message = "line 1 must be" if words[-1] == "--trace" else "line 1: more than 1000 bytes"
    assert message in complaint(*words, str(path))


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", ["a.0.et", "a.0.json"])
def test_execution_traces(name: str, odd: Callable[[Path], str], tmp_path: Path) -> None:
    message = odd(tmp_path / name)
    assert message in complaint("simulate", "ring,4", "--chakra", str(tmp_path))


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", ["fabric.json", "s1.flows", "tags.json"])
def test_rules(name: str, odd: Callable[[Path], str], tmp_path: Path) -> None:
    CliRunner().invoke(main, ["flows", "ring,3", "--out", str(tmp_path)])
    (tmp_path / name).unlink(missing_ok=True)
    assert odd(tmp_path / name) in complaint("check", str(tmp_path))


@pytest.mark.parametrize("odd", [fifo, zeros, folder])
@pytest.mark.parametrize(
    "words",
    [
        ["topology", "ring,3", "--out"],
        ["topology", "ring,3", "--draw"],
        ["plan", "ring,3", "--out"],
        ["analyse", "ring,3", "--pattern", "shift", "--plot"],
        ["simulate", "ring,3", "--pattern", "shift", "--duration", "9", "--out"],
        ["simulate", "ring,3", "--incast", "1:100", "--plot"],
    ],
)
def test_output(words: list[str], odd: Callable[[Path], str], tmp_path: Path) -> None:
    path = tmp_path / "f.svg"
    message = odd(path).replace("it is a directory, not a file", "a directory")
    assert message in complaint(*words, str(path))
    assert [entry.name for entry in tmp_path.iterdir()] == ["f.svg"]


def test_rules_that_cannot_be_written_leave_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "s3.groups")
    assert "s3.groups: cannot be written: it is a pipe" in complaint(
        "flows", "ring,3", "--out", str(tmp_path)
    )
    assert [entry.name for entry in tmp_path.iterdir()] == ["s3.groups"]


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("old")
    first.chmod(0o640)
    (tmp_path / "link").symlink_to("a")
    second.mkdir()
    with pytest.raises(KnotlessError, match="b: cannot be written: it is a directory"):
        write_all({first: "new", second: "new"})
    assert first.read_text() == "old"
    write_whole(tmp_path / "link", b"new")
    assert (first.read_text(), first.stat().st_mode & 0o777) == ("new", 0o640)
    assert (tmp_path / "link").is_symlink()
    append(first, "er", KnotlessError)
    assert read_bytes(first, limit=5) == b"newer"
    with pytest.raises(KnotlessError, match="has 5 bytes, at most 4 are read"):
        read_bytes(first, limit=4)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a", "b", "link"]


def test_standard_output_may_be_named(tmp_path: Path) -> None:
    words = [*KNOTLESS, "plan", "ring,3", "--json", "--out", "/dev/stdout"]
    for place in (None, tmp_path / "both"):
        if place is None:
            text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        else:
            with place.open("w") as file:
                subprocess.run(words, check=True, stdout=file)
            text = place.read_text()
        plan, summary = text.split("\n", 1)
        assert json.loads(plan)["fabric"] == json.loads(summary)["fabric"] == "ring,3"
    done = subprocess.run([*words[:-1], "/dev/null"], check=True, capture_output=True)
    assert json.loads(done.stdout)["fabric"] == "ring,3"
    assert Path("/dev/null").is_char_device()


SMALL = 20
"""Bytes that a file may have in these tests, as if the disk were full."""


def on_a_full_disk(folder: Path, *words: str) -> str:
    """Run a command that cannot write a file; return its complaint."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # it gets an error instead
        resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL, SMALL))

    done = subprocess.run(
        [*KNOTLESS, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    return done.stderr.splitlines()[-1]


def leaves_no_empty_folders(words: list[str], there: bool, folder: Path) -> None:
    """Run a command that cannot write ``made/...``, which may be there, in a folder."""
    if there:
        (folder / "made").mkdir()
    before = sorted(folder.rglob("*"))
    assert "cannot be written: File too large" in on_a_full_disk(folder, *words)
    assert sorted(folder.rglob("*")) == before


@pytest.mark.thin(4)
@pytest.mark.parametrize(
    "words",
    [
        ["flows", "ring,5", "--engine", "updown", "--out", "made/x/rules"],
        ["export", "ring,5", "--engine", "updown", "--to", "l2", "--out", "made/bridges"],
        ["check", "knot", "--remedies", "--export", "made/patches"],
    ],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize("there", [False, True])
def test_a_full_disk_leaves_no_empty_folders(words: list[str], there: bool, tmp_path: Path) -> None:
    if words[0] == "check":
        shutil.copytree(REPOSITORY / "tests/data/fabrics/control-knot", tmp_path / "knot")
    leaves_no_empty_folders(words, there, tmp_path)
