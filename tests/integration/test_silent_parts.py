"""A part that runs and does not answer is named; ``status`` always ends, and all is well after."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from knotless.emulation import state
from knotless.emulation.names import Names
from knotless.emulation.processes import is_stopped
from tests.support.fabric_fixtures import FREE_PORTS, Knotless, Remains
from tests.support.waiting import until

ROLES = ("supervisor", "ovsdb-server", "ovs-vswitchd", "emulator", "controller", "web")


@pytest.fixture
def fabric(names: Names, knotless: Knotless, remains: Remains) -> Iterator[Names]:
    """Start a fabric with a page; what a test has stopped goes on at its end."""
    words = ("up", "ring,4,rate=10", "--engine", "updown", "--name", names.name, *FREE_PORTS)
    done = knotless(*words, "--web", "--web-port", "0")
    try:
        assert done.returncode == 0, done.stderr
        yield names
    finally:
        for pid in _pids(names).values():
            os.kill(pid, signal.SIGCONT)
        knotless("down", "--name", names.name)
    assert remains(names) == []


def _pids(names: Names) -> dict[str, int]:
    stored = state.read(names)
    if stored is None:
        return {}
    parts = {role: process.pid for role, process in stored.processes.items()}
    return {"supervisor": stored.owner.pid, **parts}


def _status(knotless: Knotless, names: Names) -> tuple[int, dict[str, Any]]:
    done = knotless("status", "--name", names.name, "--json")
    fabrics: list[dict[str, Any]] = json.loads(done.stdout)["fabrics"]
    return done.returncode, fabrics[0]


def test_status_names_each_part_that_does_not_answer(fabric: Names, knotless: Knotless) -> None:
    pids = _pids(fabric)
    assert set(pids) == set(ROLES)
    assert _status(knotless, fabric)[0] == 0
    for role in ROLES:
        os.kill(pids[role], signal.SIGSTOP)
        until("it is stopped", partial(is_stopped, pids[role]))
        returned, status = _status(knotless, fabric)
        line = f"{role} (pid {pids[role]}) does not answer within 2 s: it is stopped"
        assert [one for one in status["problems"] if one.startswith(line)], role
        assert returned == 1
        silent = {part for part, of in status["parts"].items() if of["answers"] is False}
        assert silent == {role} - {"supervisor"}
        os.kill(pids[role], signal.SIGCONT)
        until("all is well again", lambda: _status(knotless, fabric)[0] == 0)


def test_all_parts_at_once_and_the_terminal_view(fabric: Names, knotless: Knotless) -> None:
    pids = _pids(fabric)
    for role in ROLES:
        os.kill(pids[role], signal.SIGSTOP)
    _, status = _status(knotless, fabric)
    named = {line.split(" (pid ")[0] for line in status["problems"] if "does not answer" in line}
    assert named == set(ROLES)
    top = knotless("top", "--once", "--name", fabric.name)
    for role in ROLES:
        assert f"problem: {role} (pid {pids[role]}) does not answer" in top.stdout
    assert top.returncode == 1
