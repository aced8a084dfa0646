"""The active one of two controllers dies at bad moments; its successor goes on from there."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from knotless.emulation import rest, state
from knotless.emulation.names import role_of
from knotless.emulation.network import EmulatedFabric
from knotless.routing.request import PlanRequest
from knotless.topologies import load
from knotless.topologies.formats.files import to_text
from tests.integration.test_change import pinging
from tests.integration.test_several_controllers import active, await_takeover, kill, roles, settled
from tests.support.fabric_fixtures import Knotless, Start
from tests.support.waiting import until

PLANS = ({"engine": "updown", "root": "s3"}, {"engine": "lturn"})
"""Each needs three steps from the one before."""
REQUEST = PlanRequest.from_options(engine="updown", flow_control="pfc")


BOTH = ["active", "standby"]


def states(fabric: EmulatedFabric) -> list[str]:
    return [role["state"] if role else "dead" for role in roles(fabric)]


@contextmanager
def stopped(fabric: EmulatedFabric) -> Iterator[None]:
    """Let the link emulator stand still during the block."""
    stored = state.read(fabric.names)
    assert stored is not None
    pid = stored.processes["emulator"].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def is_intact(fabric: EmulatedFabric) -> bool:
    """Return True if the routes are those of the configuration, and nothing is left of others."""
    return fabric.controller_status()["routes"]["repair"] == "intact" and settled(fabric)


def test_the_successor_finishes_a_change_and_no_frame_is_lost(
    start: Start, knotless: Knotless
) -> None:
    fabric = start("ring,4", REQUEST, controllers=2)
    rng = random.Random(1)  # noqa: S311 - repeatable, not secret
    name = ("--name", fabric.name)
    token = fabric.names.token_file.read_text().strip()
    unfinished = 0
    with pinging(fabric):
        for plan in PLANS:
            first = active(fabric)
            other = 1 - first
            address = (rest.ADDRESS, fabric.controller_ports[first].rest)
            log = fabric.names.log_file(role_of("controller", other))
            before = len(log.read_text())
            until("packets of older rules are gone", lambda: settled(fabric))
            # While the emulator stands still, no packet leaves, and no step ends.
            with stopped(fabric):
                report = rest.post(address, "/change", plan, token)
                assert len(report["steps"]) > 1
                until("a step", lambda: fabric.controller_status()["routes"]["older_rules"] > 0)
                time.sleep(rng.uniform(0, 0.05))
                kill(fabric, first)
            await_takeover(fabric, other)
            unfinished += "a change was not finished" in log.read_text()[before:]
            until("the change is complete", lambda: settled(fabric))
            status = fabric.controller_status()
            assert {key: status["request"][key] for key in plan} == plan
            assert knotless("controller", "restart", *name).returncode == 0
            until("the other is on standby", lambda: sorted(states(fabric)) == BOTH)
        assert knotless("probe", *name).returncode == 0
    assert unfinished > 0, "every change was complete before the controller was killed"
    assert knotless("check", "--live", *name).returncode == 0
    status = fabric.controller_status()
    assert (status["ready"], status["problems"]) == (True, [])
    assert is_intact(fabric)
    report = fabric.daemon.status()
    assert (report["deadlock"], report["kernel_lost"], report["valid"]) == (None, 0, True)


@pytest.mark.long
def test_a_successor_knows_what_links_have_lost_and_is_reached_by_tls(
    start: Start, knotless: Knotless
) -> None:
    # Frames of two priorities overtake each other: only counters that agree show an empty link.
    request = PlanRequest.from_options(engine="dl", vcs=2)
    fabric = start("ring,4", request, controllers=2, tls=True)
    name = ("--name", fabric.name)
    first = active(fabric)
    until("older packets are gone", lambda: settled(fabric))
    kill(fabric, 1 - first)
    assert knotless("probe", *name).returncode == 0
    assert knotless("controller", "restart", *name).returncode == 0
    until("the other is on standby", lambda: sorted(states(fabric)) == BOTH)
    assert active(fabric) == first
    ping = ["ping", "-q", "-i", "0.002", fabric.host("h2").IP()]
    flood = fabric.host("h1").popen(ping, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert knotless("cut", "s1-s2", *name).returncode == 0
    until("the routes avoid it", lambda: fabric.controller_status()["routes"]["failed"] != [])
    flood.terminate()
    flood.wait()
    until("the routes are repaired", lambda: settled(fabric))
    assert knotless("mend", "s1-s2", *name).returncode == 0
    until("the routes are back", lambda: is_intact(fabric))
    file = fabric.names.overrides_file
    lost = json.loads(file.with_stem(f"{file.stem}-lost").read_text())
    assert sum(frames for frames, _, _ in lost.values()) > 0
    kill(fabric, first)
    await_takeover(fabric, 1 - first)
    until("older packets count as gone", lambda: settled(fabric))
    assert knotless("change", "--root", "s3", *name).returncode == 0
    until("the change is complete", lambda: settled(fabric))
    assert knotless("probe", *name).returncode == 0


@pytest.mark.long
def test_the_successor_finishes_a_change_of_the_fabric_and_no_frame_is_lost(
    start: Start, knotless: Knotless
) -> None:
    fabric = start("ring,4", REQUEST, controllers=2)
    whole = load("ring,4")
    less = replace(whole, links=(whole.links[0], *whole.links[2:]), grid=None)
    rng = random.Random(2)  # noqa: S311 - repeatable, not secret
    names = fabric.names
    token = names.token_file.read_text().strip()
    file = names.overrides_file.with_stem(f"{names.overrides_file.stem}-change")
    unfinished = 0
    with pinging(fabric):
        for number in range(6):
            first = active(fabric)
            until("packets of older rules are gone", lambda: settled(fabric))
            names.fabric_file.write_text(to_text((less, whole)[number % 2]))
            for controller in (1 - first, first):  # the standby first
                address = (rest.ADDRESS, fabric.controller_ports[controller].rest)
                assert rest.post(address, "/reload", {}, token)["result"] == "changed"
            time.sleep(rng.uniform(0, 0.05))
            kill(fabric, first)
            unfinished += not json.loads(file.read_text())["complete"]
            await_takeover(fabric, 1 - first)
            until("the change is complete", lambda: settled(fabric))
            until("nothing is left", lambda: not fabric.controller_status()["routes"]["leaving"])
            assert knotless("controller", "restart", "--name", fabric.name).returncode == 0
            until("the other is on standby", lambda: sorted(states(fabric)) == BOTH)
        assert knotless("probe", "--name", fabric.name).returncode == 0
    assert unfinished > 0, "every change was complete before the controller was killed"
    assert json.loads(file.read_text())["complete"]
    status = fabric.controller_status()
    assert (status["ready"], status["problems"]) == (True, [])
    report = fabric.daemon.status()
    assert (report["deadlock"], report["kernel_lost"], report["valid"]) == (None, 0, True)
