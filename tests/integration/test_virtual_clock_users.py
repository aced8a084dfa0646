"""Virtual time of programs that other users run, and those that cannot follow it."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from knotless.cli.main import main
from knotless.emulation.names import (
    CREDIT_DIRECTORY,
    NETNS_DIRECTORY,
    RUN_DIRECTORY,
    Names,
)
from knotless.emulation.network import EmulatedFabric
from tests.support.fabric_fixtures import Knotless, new_fabric, new_names
from tests.support.waiting import HANG_S, until

NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
CLOCK = ("date", "+%s.%N")


@pytest.fixture(scope="module")
def fabric() -> Iterator[EmulatedFabric]:
    with new_fabric(new_names(), "ring,3", slow_down=10) as running:

        def is_behind() -> bool:
            status = running.daemon.status()
            return bool(status["real_s"] - status["uptime_s"] > 2)

        until("a difference between the clocks", is_behind)
        yield running


def clock(fabric: EmulatedFabric, *words: str) -> float:
    out, error, status = fabric.host("h1").pexec(*words, *CLOCK)
    assert status == 0, error
    return float(out)


def test_programs_of_every_user_have_virtual_time(fabric: EmulatedFabric) -> None:
    ours = clock(fabric)
    theirs = clock(fabric, *NOBODY)
    outside = clock(fabric, "env", "-u", "LD_PRELOAD")
    assert ours <= theirs < outside - 1


def test_only_the_clock_is_open_to_all(fabric: EmulatedFabric) -> None:
    def mode(path: Path) -> int:
        return stat.S_IMODE(path.stat().st_mode)

    page = fabric.names.clock_page
    assert (mode(page), mode(page.parent)) == (0o444, 0o755)
    for directory in (RUN_DIRECTORY, fabric.names.directory):
        assert mode(directory) == 0o700
    pages = list(CREDIT_DIRECTORY.iterdir())
    assert pages
    assert {mode(one) for one in pages} == {0o600}


@pytest.fixture
def privileged() -> Iterator[Path]:
    """Return a program with the set-user-ID bit that every user may run."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        program = Path(folder) / "asroot"
        shutil.copy("/bin/sleep", program)
        program.chmod(0o4755)
        yield program


def test_programs_that_do_not_follow_are_counted_and_named(
    fabric: EmulatedFabric, knotless: Knotless, privileged: Path
) -> None:
    quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    host = fabric.host("h2")
    follows = [host.popen([*words, "sleep", "600"], **quiet) for words in ((), NOBODY)]
    plain = host.popen(["env", "-u", "LD_PRELOAD", "sleep", "600"], **quiet)
    as_root = host.popen([*NOBODY, str(privileged), "600"], **quiet)
    try:
        expected = [
            f"h2: sleep ({plain.pid}, started without it)",
            f"h2: asroot ({as_root.pid}, set-user-ID, or may not read its library)",
        ]
        expected.sort(key=lambda text: int(re.findall("[0-9]+", text)[1]))

        def shown() -> list[str]:
            done = knotless("status", "--name", fabric.name, "--json")
            programs: list[str] = json.loads(done.stdout)["fabrics"][0]["real_time_programs"]
            return programs

        until("the programs that do not follow", lambda: shown() == expected)
        text = knotless("status", "--name", fabric.name).stdout
        assert f"note: 2 programs on hosts have no virtual time: {', '.join(expected)}\n" in text
    finally:
        for program in (*follows, plain, as_root):
            program.kill()
            program.wait()
    until("none", lambda: shown() == [])


def test_exec_says_by_how_much_a_static_program_is_wrong(
    fabric: EmulatedFabric, knotless: Knotless, tmp_path: Path
) -> None:
    if shutil.which("cc") is None:
        pytest.skip("needs cc")
    (tmp_path / "program.c").write_text(
        "#include <unistd.h>\nint main(void) { sleep(3); return 5; }\n"
    )
    command = ("cc", "-static", "-o", "still", "program.c")
    subprocess.run(command, cwd=tmp_path, check=True, timeout=HANG_S)
    done = knotless("exec", "--name", fabric.name, "h1", str(tmp_path / "still"))
    assert (done.returncode, done.stdout) == (5, "")
    assert re.fullmatch(
        r"knotless: the fabric ran (\d+\.\d) times slower than real time: rates are \1 times too"
        r" low, and times too long if measured by h1: still \(\d+, linked statically\), without"
        r" virtual time\n",
        done.stderr,
    )
    followed = knotless("exec", "--name", fabric.name, "h1", "sleep", "0.3")
    assert (followed.returncode, followed.stderr) == (0, "")


def test_the_option_leaves_programs_in_real_time(names: Names) -> None:
    with new_fabric(names, "ring,3", virtual_clock=False) as running:
        assert "LD_PRELOAD" not in running.program_environment()
        assert running.host("h1").cmd("printenv LD_PRELOAD") == ""


STATIC = {
    "cc": (
        "program.c",
        "#include <unistd.h>\nint main(void) { sleep(600); return 0; }\n",
        ("cc", "-static", "-o", "still", "program.c"),
    ),
    "go": (
        "program.go",
        'package main\nimport "time"\nfunc main() { time.Sleep(600 * time.Second) }\n',
        ("go", "build", "-o", "still", "program.go"),
    ),
}
"""Compiler -> name and text of a program that sleeps, and how it is linked statically."""


@pytest.fixture(params=["cc", pytest.param("go", marks=pytest.mark.long)])
def static_program(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    name, text, command = STATIC[request.param]
    if shutil.which(command[0]) is None:
        pytest.skip(f"needs {command[0]}")
    (tmp_path / name).write_text(text)
    # Go keeps what it compiles in the home directory, which a test does not touch.
    environment = {**os.environ, "GOCACHE": str(tmp_path / "cache"), "CGO_ENABLED": "0"}
    subprocess.run(command, cwd=tmp_path, check=True, timeout=HANG_S, env=environment)
    return tmp_path / "still"


def test_a_stored_run_names_static_programs(
    static_program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They run from the start of each fabric on, so that each row names one."""
    start, pids = EmulatedFabric.start, list[int]()
    words = ["run", "hops", "--switches", "1", "--size", "64", "--duration", "0.5", "--json"]
    with ExitStack() as programs:

        def start_with_program(fabric: EmulatedFabric) -> None:
            start(fabric)
            host = NETNS_DIRECTORY / fabric.names.host_namespace("h1")
            command = ["nsenter", f"--net={host}", str(static_program)]
            program = programs.enter_context(subprocess.Popen(command))
            programs.callback(program.kill)
            pids.append(program.pid)
            name = Path(f"/proc/{program.pid}/comm")
            until("the program in place of nsenter", lambda: name.read_text() == "still\n")

        monkeypatch.setattr(EmulatedFabric, "start", start_with_program)
        run = CliRunner().invoke(main, [*words, "--out", str(tmp_path)])
    assert run.exit_code == 0, run.output
    result = json.loads(run.stdout)
    named = [row["real_time_programs"] for row in result["rows"]]
    assert all(
        one in [[f"h1: still ({pid}, linked statically)"] for pid in pids] for one in named
    ), named
    stored = json.loads((Path(result["report"]).parent / "run.json").read_text())
    assert [row["real_time_programs"] for row in stored["rows"]] == [
        row["real_time_programs"] for row in result["rows"]
    ]
    text = Path(result["report"]).read_text()
    assert f"{len(pids)} programs on hosts had no virtual time, so that what they measured" in text
    assert all(f"h1: still ({pid}, " in text for pid in pids[:4])
