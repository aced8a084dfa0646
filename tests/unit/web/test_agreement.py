"""The page, ``knotless top`` and ``knotless status`` tell the same about the same fabric."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from knotless.cli.commands import status as status_command
from knotless.cli.commands import top as top_command
from knotless.emulation import names as names_module
from knotless.emulation import processes, state
from knotless.emulation.cuts import Cables, Cut
from knotless.emulation.names import Names
from knotless.emulation.processes import Process
from knotless.emulation.report import report
from knotless.emulation.state import State
from knotless.topologies import load
from knotless.topologies.formats import files
from knotless.web import controller as controller_module
from knotless.web import live, top
from knotless.web.live import LiveFabric
from tests.support.fake_fabric import FakeFabric

DEADLOCK = "deadlock: s1:2/0 waits for s2:2/0 waits for s3:2/0 waits for s4:2/0 waits for s1:2/0"
CHANGED = {
    **{"failed": ["s1:2-s2:3"], "drained": [], "rules_changed": 4, "seconds": 0.02},
    **{"time": 1.0, "tier": 1, "repair": "repaired"},
}


def idle(fake: FakeFabric) -> None:
    """Nothing happens."""


def frozen(fake: FakeFabric) -> None:
    fake.freeze(100_000)
    fake.problems = ["link s3:2-s4:3 is down"]


def repaired(fake: FakeFabric) -> None:
    fake.problems = ["link s1:2-s2:3 is down"]
    fake.last_change = CHANGED


def waiting(fake: FakeFabric) -> None:
    fake.switches["s2"]["installed"] = False


def storming(fake: FakeFabric) -> None:
    flow = {"from": fake.fabric.hosts[1].mac, "to": fake.fabric.hosts[0].mac, "bytes": 9}
    fake.pausing_hosts = [
        {
            **{"host": "h1", "channel": "s1:1/0", "share": 0.9, "limited": 0, "limited_now": False},
            **{"storm": False, "standing": ["s2:3/0"], "flows": [flow], "ignored_us": 0},
        }
    ]


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Names:
    monkeypatch.setattr(names_module, "RUN_DIRECTORY", tmp_path)
    cut = Cut("s1:2-s2:3", carrier=False)
    monkeypatch.setattr(Cables, "cuts", lambda _: [cut])
    for module, name, value in (
        (live, "INTERVAL_S", 0.02),
        (live, "RETRY_S", 0.02),
        (controller_module, "POLL_S", 0.05),
    ):
        monkeypatch.setattr(module, name, value)
    for command in (status_command, top_command):
        monkeypatch.setattr("knotless.emulation.requirements.require_fabrics", lambda: None)
        monkeypatch.setattr(command, "require_fabrics", lambda: None, raising=False)
    prepared = Names("t")
    prepared.directory.mkdir()
    return prepared


@pytest.mark.parametrize("happens", [idle, frozen, repaired, waiting, storming])
@pytest.mark.parametrize("missing", [(), ("controller",)])
def test_page_top_and_status_agree(
    names: Names, happens: Callable[[FakeFabric], None], missing: tuple[str, ...]
) -> None:
    fake = FakeFabric(load("ring,4"))
    happens(fake)
    ourselves, dead = processes.ourselves(), Process(0, 0)
    parts = {role: dead if role in missing else ourselves for role in ("controller", "emulator")}
    source = LiveFabric(names)
    with ExitStack() as stack:
        port = 1 if missing else stack.enter_context(fake.controller())
        stack.enter_context(fake.emulator(names.emulator_socket))
        settings = {"links": "emulated", "controller": "ryu", "rest_port": port}
        names.fabric_file.write_text(json.dumps(files.to_json(fake.fabric)))
        stored = State("t", "ring,4", ourselves, "ready", 1.0, parts, settings=settings)
        state.write(names, stored)
        lines, _ = asyncio.run(top.once(source, limit_s=1.0))
        answer = report(names)
        runner = CliRunner()
        printed = runner.invoke(status_command.command, ["--name", "t"])
    assert answer is not None
    shown: dict[str, Any] = source.feed.state
    for key in ("problems", "notes", "advice"):
        assert shown[key] == answer[key], key
    assert [line for line in lines if line.startswith("problem: ")] == [
        f"problem: {text}" for text in answer["problems"]
    ]
    for text in answer["problems"]:
        assert f"  problem: {text}\n" in printed.output
    assert printed.exit_code == int(bool(answer["problems"]))
    assert bool(answer["problems"]) == bool(missing or happens is not idle)
    if happens is frozen:
        assert shown["problems"][0] == DEADLOCK
        assert shown["advice"][0]["command"] == "knotless release --name t"
    else:
        assert shown["advice"] == []
    if happens is storming:
        assert any("h2 to h1" in text for text in shown["problems"])
    if happens is repaired and not missing:
        assert any(note.startswith("routes: repaired") for note in shown["notes"])


def test_top_once_ends_with_the_exit_status_of_status(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeFabric(load("ring,4"))
    fake.freeze(1000)
    monkeypatch.setattr(top, "once", partial(top.once, limit_s=1.0))  # time stands still
    with ExitStack() as stack:
        port = stack.enter_context(fake.controller())
        stack.enter_context(fake.emulator(names.emulator_socket))
        settings = {"links": "emulated", "controller": "ryu", "rest_port": port}
        names.fabric_file.write_text(json.dumps(files.to_json(fake.fabric)))
        stored = State("t", "ring,4", processes.ourselves(), "ready", 1.0, settings=settings)
        state.write(names, stored)
        done = CliRunner().invoke(top_command.command, ["--name", "t", "--once"])
        assert done.exit_code == 1
        assert f"problem: {DEADLOCK}" in done.output
        fake.deadlock = None
        done = CliRunner().invoke(top_command.command, ["--name", "t", "--once"])
        assert done.exit_code == 0, done.output
