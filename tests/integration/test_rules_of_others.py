"""Rules that others delete, change and add while a switch is connected."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from knotless.topologies import load
from tests.support.bare_fabric import BareFabric
from tests.support.waiting import until

CONFIG = "fabric: ring,3\nconnect_timeout_s: 10\nreread_interval_s: 2\n"
FOREIGN = "cookie=0xf0,priority=60000,actions=flood"


@pytest.fixture(scope="module")
def ring() -> Iterator[BareFabric]:
    with BareFabric(load("ring,3")) as fabric:
        fabric.start_controller(CONFIG)
        fabric.await_ready()
        yield fabric


def pinged(fabric: BareFabric) -> bool:
    pairs = [(a, b) for a in fabric.fabric.hosts for b in fabric.fabric.hosts if a is not b]
    pings = (fabric.command_on(a.name, "ping", "-c", "1", "-W", "1", b.ip) for a, b in pairs)
    return all(
        subprocess.run(ping, capture_output=True, check=False).returncode == 0 for ping in pings
    )


def count(fabric: BareFabric, name: str) -> int:
    return len(fabric.flows(name))


@pytest.mark.parametrize("what", ["del-flows", "del-groups"])
def test_deleted_rules_are_put_back(ring: BareFabric, what: str) -> None:
    before = {switch.name: count(ring, switch.name) for switch in ring.fabric.switches}
    ring.ofctl(what, "s1")
    until("all rules are back", lambda: count(ring, "s1") == before["s1"])
    assert ring.get("/status")["ready"]
    until("all pairs are delivered again", lambda: pinged(ring))
    assert "s1 (dpid 1) does not hold its rules: others have changed" in ring.controller_log()
    assert {name: count(ring, name) for name in before} == before


def test_rules_of_others_are_reported_until_they_are_gone(ring: BareFabric) -> None:
    ring.ofctl("add-flow", "s2", FOREIGN)

    def lines() -> list[str]:
        return [line for line in ring.get("/status")["problems"] if line.startswith("s2 ")]

    until(
        "the rule is reported", lambda: len(lines()) == 1 and "with them the fabric" in lines()[0]
    )
    assert "holds 1 rules that are not Knotless's (cookie 0xf0 in table 0)" in lines()[0]
    ring.ofctl("del-flows", "s2", "cookie=0xf0/-1")
    until("the line is gone", lambda: lines() == [])
    assert ring.get("/status")["problems"] == []
