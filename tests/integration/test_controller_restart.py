"""A dead controller is started again by a command; one started by hand is recognised."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from knotless.emulation import processes, state
from knotless.emulation.names import Names
from tests.support import REPOSITORY
from tests.support.fabric_fixtures import FREE_PORTS, Knotless, Remains
from tests.support.waiting import HANG_S, until


def status(knotless: Knotless, names: Names) -> tuple[int, dict[str, Any]]:
    done = knotless("status", "--name", names.name, "--json")
    return done.returncode, json.loads(done.stdout)["fabrics"][0]


def kill_controller(names: Names) -> None:
    running = state.read(names)
    assert running is not None
    victim = running.processes["controller"]
    os.kill(victim.pid, signal.SIGKILL)
    assert processes.await_exit(victim, 10)


@pytest.mark.parametrize("tls", [(), ("--tls",)], ids=["plain", "tls"])
def test_a_dead_controller_is_started_again(
    knotless: Knotless, names: Names, remains: Remains, tls: tuple[str, ...]
) -> None:
    done = knotless("up", "ring,4", "--name", names.name, *FREE_PORTS, *tls)
    assert done.returncode == 0, done.stderr
    kill_controller(names)
    assert status(knotless, names)[0] == 1
    done = knotless("controller", "restart", "--name", names.name)
    assert done.returncode == 0, done.stderr
    assert ": ready, 4 switches have their rules" in done.stdout
    code, report = status(knotless, names)
    assert (code, report["problems"]) == (0, [])
    log = (names.directory / "controller.log").read_text()
    assert log.count("0 added, 0 modified, 0 deleted") == 4
    # Again, although it is alive.
    done = knotless("controller", "restart", "--name", names.name, "--json")
    assert json.loads(done.stdout)["pid"] != report["parts"]["controller"]["pid"]
    assert knotless("down", "--name", names.name).returncode == 0
    assert remains(names) == []


def test_a_controller_started_by_hand_is_recognised(
    knotless: Knotless, names: Names, tmp_path: Path
) -> None:
    done = knotless("up", "ring,4", "--name", names.name, *FREE_PORTS)
    assert done.returncode == 0, done.stderr
    settings = status(knotless, names)[1]["settings"]
    kill_controller(names)
    with (tmp_path / "log").open("wb") as log:
        own = subprocess.Popen(
            [
                Path(sys.executable).with_name("ryu-manager"),
                f"--ofp-tcp-listen-port={settings['openflow_port']}",
                "controller/app.py",
            ],
            cwd=REPOSITORY,
            env={**os.environ, "KNOTLESS_CONFIG": str(names.controller_file)},
            stdout=log,
            stderr=log,
        )
    try:
        until("status is good again", lambda: status(knotless, names)[0] == 0)
        _, report = status(knotless, names)
        assert report["parts"]["controller"] == {
            "pid": own.pid,
            **{"alive": True, "by_hand": True, "answers": True},
        }
        shown = knotless("status", "--name", names.name).stdout
        assert f"controller {own.pid} (started by hand)" in shown
        done = knotless("controller", "restart", "--name", names.name)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert f"started by hand (pid {own.pid})" in done.stderr
    finally:
        own.terminate()
        own.wait(HANG_S)
        knotless("down", "--name", names.name)


def test_a_damaged_state_file_is_confirmed_by_an_operator(knotless: Knotless, names: Names) -> None:
    """The drained link stays drained, and the fabric is not ready before."""
    name = ("--name", names.name)
    done = knotless("up", "ring,4", *name, *FREE_PORTS)
    assert done.returncode == 0, done.stderr
    assert knotless("drain", "s1-s2", *name).returncode == 0
    kill_controller(names)
    file = names.overrides_file
    file.write_text(file.read_text()[:20])
    done = knotless("controller", "restart", *name)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "drained, by the rules of the switches: s1:2-s2:3; only repairs are made" in done.stderr
    code, report = status(knotless, names)
    assert (code, report["controller"]["drained"]) == (1, ["s1:2-s2:3"])
    assert "drained: s1:2-s2:3" in knotless("controller", "confirm", *name).stdout
    until("status is good again", lambda: status(knotless, names)[0] == 0)
    assert json.loads(file.read_text())["drained"] == ["s1:2-s2:3"]
    assert file.with_stem("overrides-damaged").stat().st_size == 20
    assert knotless("down", *name).returncode == 0


def test_without_a_fabric_restart_is_one_line(knotless: Knotless, names: Names) -> None:
    done = knotless("controller", "restart", "--name", names.name)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "no fabric" in done.stderr
