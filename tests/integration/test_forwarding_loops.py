"""Frames that go round in a ring are named, with what sends them on; all others are not."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from knotless.base.ports import free_port
from knotless.emulation.controller import is_listening
from knotless.emulation.names import Names
from knotless.emulation.network import EmulatedFabric
from knotless.emulation.report import report
from tests.support import REPOSITORY
from tests.support.controller_programs import RYU_MANAGER
from tests.support.fabric_fixtures import Knotless, Start
from tests.support.waiting import until

RINGS = [["s1:2", "s2:2", "s3:2", "s4:2"], ["s1:3", "s4:3", "s3:3", "s2:3"]]
"""Each switch sends to the next one by port 2, and to the one before by port 3."""
NOBODY = "10.0.9.9"
"""Whoever looks for this address sends broadcasts."""


@contextmanager
def learning_switch() -> Iterator[tuple[str, int]]:
    address = ("127.0.0.1", free_port())
    words = ["--ofp-listen-host", address[0], "--ofp-tcp-listen-port", str(address[1])]
    app = REPOSITORY / "tests/support/learning_switch.py"
    with subprocess.Popen(
        [str(RYU_MANAGER), *words, str(app)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as controller:
        try:
            until("the controller listens", lambda: is_listening(*address))
            yield address
        finally:
            controller.terminate()


def ofctl(fabric: EmulatedFabric, command: str, switch: str, *words: str) -> None:
    directory: Path = fabric.names.ovs_directory
    subprocess.run(
        ["ovs-ofctl", "-O", "OpenFlow13", command, f"unix:{directory}/{switch}.mgmt", *words],
        env={**os.environ, "OVS_RUNDIR": str(directory)},
        check=True,
    )


def ping(fabric: EmulatedFabric, host: str, to: str) -> bool:
    address = next(one.ip for one in fabric.fabric.hosts if one.name == to)
    return bool(fabric.host(host).pexec("ping", "-c", "1", "-W", "1", address)[2] == 0)


def loops(names: Names) -> list[dict[str, Any]]:
    shown = report(names)
    assert shown is not None
    assert shown["emulator"] is not None, shown["problems"]
    found: list[dict[str, Any]] = shown["emulator"]["loops"]
    return sorted(found, key=lambda loop: list(loop["channels"]))


def is_named(names: Names) -> bool:
    return [loop["channels"] for loop in loops(names) if loop["present"]] == RINGS


@pytest.mark.smoke
def test_a_learning_switch_in_a_ring(start: Start, names: Names, knotless: Knotless) -> None:
    with learning_switch() as address:
        fabric = start("ring,4", controller="remote", remotes=[address], static_arp=False)
        # Without this link the ring is a tree: floods end, and nothing is named.
        fabric.cables.cut(fabric.cables.one("s1-s4"))
        pairs = [("h1", "h3"), ("h4", "h1"), ("h2", "h4")]
        for host, to in pairs:
            until("the switches have learned", partial(ping, fabric, host, to))
        assert loops(names) == []
        done = knotless("status", "--name", names.name)
        assert (done.returncode, "forwarding loop" in done.stdout) == (0, False)

        fabric.cables.mend(fabric.cables.one("s1-s4"))
        fabric.host("h3").pexec("ping", "-c", "1", "-W", "1", NOBODY)
        until("both directions of the ring are named", lambda: is_named(names))
        for loop in loops(names):
            assert {step["by"] for step in loop["sent_on"]} == {"controller"}
            assert [step["switch"] for step in loop["sent_on"]] == [
                channel.partition(":")[0] for channel in [*loop["channels"][1:], "s1:"]
            ]
            assert all(step["rule"]["priority"] == 0 for step in loop["sent_on"])
        done = knotless("status", "--name", names.name)
        assert done.returncode == 1
        assert "problem: forwarding loop: the same frames come again and again by" in done.stdout
        assert "s1:2 -> s2:2 -> s3:2 -> s4:2 -> s1:2" in done.stdout
        assert "by a packet-out of a controller, which gets it by the rule" in done.stdout
        top = knotless("top", "--once", "--name", names.name)
        assert "problem: forwarding loop" in top.stdout
        fabric.daemon.reset()


def test_rules_that_form_a_ring_are_named(start: Start, names: Names) -> None:
    fabric = start("ring,4", controller="none")
    for number, switch in enumerate(["s1", "s2", "s3", "s4"], 1):
        onward = f"table=1,priority=7,in_port=3,dl_vlan=9,cookie=0x{number},actions=output:2"
        into = "table=0,priority=3,actions=goto_table:1"
        enter = "table=0,priority=9,in_port=1,actions=push_vlan:0x8100,set_field:4105->vlan_vid,"
        for rule in (onward, into, enter + "output:2"):
            ofctl(fabric, "add-flow", switch, rule)
    assert loops(names) == []
    ping(fabric, "h1", "h3")
    until("the ring is named", lambda: len(loops(names)) == 1)
    (loop,) = loops(names)
    assert loop["channels"] == RINGS[0]
    assert [(step["switch"], step["to"]) for step in loop["sent_on"]] == [
        ("s2", "s2:2"),
        ("s3", "s3:2"),
        ("s4", "s4:2"),
        ("s1", "s1:2"),
    ]
    match = "in_port=3,dl_vlan=9"
    assert [(step["by"], step["rule"]) for step in loop["sent_on"]] == [
        ("rule", {"table": 1, "match": match, "priority": 7, "cookie": f"0x{number}"})
        for number in (2, 3, 4, 1)
    ]
    shown = report(names)
    assert shown is not None
    line = f"at s2 by the rule table=1, priority=7, {match}, cookie=0x2"
    assert any(line in problem for problem in shown["problems"])
