"""Virtual time of programs that other users run, and those that cannot follow it."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from knotless.emulation import state
from knotless.emulation.names import (
    CREDIT_DIRECTORY,
    NETNS_DIRECTORY,
    RUN_DIRECTORY,
    Names,
    names_of,
    running_names,
)
from knotless.emulation.network import EmulatedFabric
from tests.integration.conftest import Knotless, Start
from tests.support.bare_fabric import until

pytestmark = pytest.mark.integration

NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
CLOCK = ("date", "+%s.%N")


@pytest.fixture
def fabric(start: Start) -> EmulatedFabric:
    fabric = start("ring,3", virtual_clock=True, slow_down=10)

    def is_behind() -> bool:
        status = fabric.daemon.status()
        return bool(status["real_s"] - status["uptime_s"] > 2)

    until("a difference between the clocks", is_behind)
    return fabric


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
        expected = [f"h2: sleep ({plain.pid})", f"h2: asroot ({as_root.pid})"]
        expected.sort(key=lambda text: int(text.split("(")[1][:-1]))

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
    subprocess.run(command, cwd=tmp_path, check=True, timeout=120, env=environment)
    return tmp_path / "still"


def running_experiment() -> Names | None:
    """Return the names of the fabric of an experiment that is ready."""
    for name in running_names():
        fabric = state.read(names_of(name))
        if name.startswith("run-") and fabric is not None and fabric.phase == "ready":
            return names_of(name)
    return None


def test_a_stored_run_names_static_programs(static_program: Path, tmp_path: Path) -> None:
    words = ["run", "hops", "--switches", "1", "--size", "64", "--duration", "0.5", "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "knotless", *words, "--out", str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        until("the fabric of the run", lambda: running_experiment() is not None)
        names = running_experiment()
        assert names is not None
        host = NETNS_DIRECTORY / names.host_namespace("h1")
        program = subprocess.Popen(["nsenter", f"--net={host}", static_program])
        try:
            printed, _ = run.communicate(timeout=300)
        finally:
            program.kill()
            program.wait()
    assert run.returncode == 0
    result = json.loads(printed)
    named = f"h1: still ({program.pid})"
    assert [named] in [row["real_time_programs"] for row in result["rows"]]
    assert all(set(row["real_time_programs"]) <= {named} for row in result["rows"])
    stored = json.loads((Path(result["report"]).parent / "run.json").read_text())
    assert [row["real_time_programs"] for row in stored["rows"]] == [
        row["real_time_programs"] for row in result["rows"]
    ]
    text = Path(result["report"]).read_text()
    assert "1 programs on hosts had no virtual time, so that what they measured" in text
    assert named in text
