"""A full disk, too few files or too little memory, and Ctrl-C at any moment: one line each."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.cli.main import main
from knotless.emulation.limits import require_limits
from knotless.routing import path_memory
from knotless.topologies import KnotlessError, load
from tests.support import REPOSITORY
from tests.support.scarcity import KNOTLESS, limited, refused
from tests.support.waiting import HANG_S

GIB = 1 << 30


@pytest.mark.thin(3)
@pytest.mark.parametrize(
    "words",
    [
        ["topology", "torus,8,8", "--out", "f.json"],
        ["topology", "ring,8", "--draw", "f.png"],
        ["plan", "ring,9", "--out", "f.json"],
        ["flows", "torus,4,4", "--out", "f"],
        ["export", "mesh,4,4", "--engine", "dor", "--to", "l2", "--out", "f"],
    ],
)
def test_a_full_disk(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    line = refused(*words, limit=limited(resource.RLIMIT_FSIZE, 100))
    assert "File too large" in line
    assert "f" in line
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_standard_output_that_is_full() -> None:
    for words in (["plan", "ring,3", "--json"], ["topology", "--help"]):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [KNOTLESS, *words], stdout=full, stderr=subprocess.PIPE, text=True
            )
        assert (done.returncode, done.stderr) == (2, "knotless: No space left on device\n")


def test_limits_are_raised_where_they_may_be() -> None:
    former = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, former[1]))
        require_limits(load("ring,4"))
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (288, former[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, former)


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    "words",
    [
        ["plan", "torus,100,100"],
        ["plan", "ring,1000", "--engine", "updown"],
        ["plan", "mesh,40,40", "--engine", "lturn"],
        ["plan", "ring,600", "--engine", "dor", "--vlans", "tree"],
        ["flows", "ring,1000", "--engine", "minimal", "--out", "/proc/nowhere"],
    ],
)
def test_a_fabric_too_large_for_memory_is_refused(words: list[str]) -> None:
    line = refused(*words, limit=limited(resource.RLIMIT_DATA, GIB))
    assert "GiB are free" in line


def test_memory_that_runs_out_all_the_same_ends_in_one_line() -> None:
    code = (
        "import resource; from knotless.routing import path_memory\n"
        "from knotless.cli.main import main\n"
        "resource.setrlimit(resource.RLIMIT_DATA, (400 << 20,) * 2)\n"
        "path_memory.max_hops = lambda _: 1 << 60\n"
        "main(['plan', 'ring,500', '--engine', 'updown'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY
    )
    assert done.returncode == 2
    assert done.stderr.startswith("knotless: not enough memory")
    assert done.stderr.count("\n") == 1


def test_an_estimate_names_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_memory, "free_bytes", lambda: 1 << 20)
    with pytest.raises(KnotlessError, match=r"take about 1\.1 GiB when written out, 0\.0 GiB"):
        raise path_memory.too_long(1000, 1000, 40)


def test_a_delay_beyond_all_sense() -> None:
    words = ["simulate", "ring,4", "--pattern", "shift:1", "--delay", "1e300"]
    done = CliRunner(mix_stderr=False).invoke(main, words, prog_name="knotless")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "1e300 is not " in done.stderr


def test_ctrl_c_at_any_moment(tmp_path: Path) -> None:
    """While Python starts it ends without output, later with one line, never a traceback."""

    def heard() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    words = [KNOTLESS, "simulate", "torus,4,4", "--pattern", "uniform", "--load", "0.5"]
    words += ["--duration", "1e11"]
    seen = set()
    for wait_ms in [*range(0, 300, 25), 450, 800, 1500]:
        child = subprocess.Popen(
            words, preexec_fn=heard, stderr=subprocess.PIPE, text=True, cwd=tmp_path
        )
        time.sleep(wait_ms / 1000)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=HANG_S)
        # The shell that starts Python is ended by the signal itself: status 130 to a shell.
        assert child.returncode in (130, -signal.SIGINT), errors
        assert errors.strip() in (["knotless: interrupted"] if child.returncode == 130 else [""])
        seen.add(child.returncode)
    assert 130 in seen
