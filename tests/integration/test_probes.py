"""Links that lose frames silently, dead switches and wrong cables, on a running fabric."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from knotless.emulation import wiring
from knotless.emulation.network import EmulatedFabric
from knotless.topologies import load
from knotless.topologies.formats import files
from tests.support.fabric_fixtures import Knotless, Start, new_fabric, new_names
from tests.support.waiting import HANG_S, until

LINK = "s1:2-s2:3"


@pytest.fixture(scope="module")
def shared() -> Iterator[EmulatedFabric]:
    with new_fabric(new_names(), "ring,4") as running:
        yield running


@pytest.fixture
def fabric(shared: EmulatedFabric) -> Iterator[EmulatedFabric]:
    """Return a fabric that these tests share; what a test has left cut is mended."""
    yield shared
    for one in shared.cables.cuts():
        shared.cables.mend(shared.cables.one(one.link))
    until("all is well", lambda: is_well(shared))


def is_well(fabric: EmulatedFabric) -> bool:
    return not fabric.controller_status()["problems"] and settled(fabric)


def faults(fabric: EmulatedFabric) -> dict[str, str]:
    by_link: dict[str, str] = fabric.controller_status()["link_faults"]
    return by_link


def settled(fabric: EmulatedFabric, *failed: str) -> bool:
    routes = fabric.controller_status()["routes"]
    return set(routes["failed"]) == set(failed) and not routes["changing"]


def pings(fabric: EmulatedFabric, source: str, address: str) -> bool:
    _, _, status = fabric.host(source).pexec("ping", "-c", "1", "-W", "1", address)
    return bool(status == 0)


def all_ping(fabric: EmulatedFabric) -> bool:
    hosts = fabric.fabric.hosts
    return all(pings(fabric, a.name, b.ip) for a in hosts for b in hosts if a != b)


def switch(fabric: EmulatedFabric, *words: str) -> str:
    """Run ovs-vsctl on the fabric's Open vSwitch."""
    database = f"--db=unix:{fabric.names.ovs_directory / 'db.sock'}"
    done = subprocess.run(
        ["ovs-vsctl", database, *words], capture_output=True, text=True, check=True, timeout=HANG_S
    )
    return done.stdout.strip()


def rules(fabric: EmulatedFabric, switch: str) -> str:
    """Return all rules of a switch."""
    bridge = fabric.names.ovs_directory / f"{switch}.mgmt"
    command = ["ovs-ofctl", "-O", "OpenFlow13", "--no-names", "dump-flows", f"unix:{bridge}"]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=HANG_S
    ).stdout


def cut(fabric: EmulatedFabric, link: str, sender: str | None = None) -> float:
    """Cut a link silently; return the time after that."""
    cables = fabric.cables
    cables.cut(cables.one(link), silent=True, sender=sender)
    return time.monotonic()


def probes_sent(fabric: EmulatedFabric, to: str = "s") -> dict[str, int]:
    """Return the frames since the reset, by channel to this switch or to any."""
    channels = fabric.daemon.counters()["channels"]
    return {
        one["channel"]: one["tx_frames"]
        for one in channels
        if one["channel"].startswith("s") and one["to"].startswith(to)
    }


def test_a_silent_cut_is_found_and_repaired_and_the_link_returns(fabric: EmulatedFabric) -> None:
    assert faults(fabric) == {}
    began_s = cut(fabric, LINK)
    until("it is found", lambda: LINK in faults(fabric))
    found_s = time.monotonic() - began_s
    # Of both directions, one may be found some milliseconds before the other.
    until("all of it is found", lambda: faults(fabric) == {LINK: "silent"})
    until("it is repaired", lambda: settled(fabric, LINK))
    stretch = fabric.daemon.status()["stretch_now"]
    print(f"\nfound after {found_s:.3f} s, repaired after {time.monotonic() - began_s:.3f} s,")  # noqa: T201
    print(f"stretch {stretch}")  # noqa: T201
    assert faults(fabric) == {LINK: "silent"}
    assert (
        f"link {LINK} loses all frames although it has a carrier (silent)"
        in (fabric.controller_status()["problems"])
    )
    assert all_ping(fabric)
    fabric.cables.mend(fabric.cables.one(LINK))
    until("it returns", lambda: faults(fabric) == {} and settled(fabric))
    assert fabric.controller_status()["problems"] == []
    assert all_ping(fabric)


def test_loss_in_one_direction_is_found(fabric: EmulatedFabric) -> None:
    cut(fabric, LINK, sender="s2")
    until("it is found", lambda: faults(fabric) == {LINK: "one-way"})
    assert (
        f"link {LINK} loses all frames from s2:3 (one-way)"
        in (fabric.controller_status()["problems"])
    )
    until("it is repaired", lambda: settled(fabric, LINK))
    assert all_ping(fabric)


def test_probes_are_not_counted_as_lost_and_are_no_rules_of_others(
    fabric: EmulatedFabric, knotless: Knotless
) -> None:
    fabric.daemon.reset()
    until("probes on every channel", lambda: min(probes_sent(fabric).values()) >= 5)
    assert fabric.daemon.counters()["lost_frames"] == 0
    status = fabric.daemon.status()
    assert status["valid"], status["problems"]
    assert fabric.controller_status()["problems"] == []
    done = knotless("check", "--live", "--name", fabric.name)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_switch_without_controller_is_alive_until_its_neighbours_hear_nothing(
    start: Start,
) -> None:
    fabric = start("ring,4")
    # Without any controller, Open vSwitch would delete all rules.
    switch(fabric, "set-controller", "s3", "tcp:127.0.0.1:1")
    until("it has gone", lambda: not fabric.controller_status()["switches"]["s3"]["connected"])
    fabric.daemon.reset()
    # More than would be late, if it were taken for dead.
    until("further probes", lambda: min(probes_sent(fabric, "s3").values()) >= 15)
    assert faults(fabric) == {}
    assert fabric.controller_status()["switches_down"] == []
    links = [link.name for link in fabric.fabric.links if "s3" in (link.a, link.b)]
    for link in links:
        cut(fabric, link)
    until("it is dead", lambda: fabric.controller_status()["switches_down"] == ["s3"])
    for link in links:
        fabric.cables.mend(fabric.cables.one(link))
    until("it is alive", lambda: fabric.controller_status()["switches_down"] == [])


def test_swapped_cables_are_reported_and_carry_no_frame(
    start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The emulator joins other ports than the fabric declares."""
    declared = load("ring,4")
    data: dict[str, Any] = files.to_json(declared)
    one, other = data["links"][:2]  # s1:2-s2:3 and s2:2-s3:3
    one["b_port"], other["a_port"] = other["a_port"], one["b_port"]
    (tmp_path / "built.json").write_text(json.dumps(data))
    built = files.read(tmp_path / "built.json")
    monkeypatch.setattr(wiring, "wire", lambda _fabric, wire=wiring.wire: wire(built))
    fabric = start("ring,4")
    expected = {link.name: "wrong cable" for link in declared.links[:2]}
    until("it is found", lambda: faults(fabric) == expected)
    problems = fabric.controller_status()["problems"]
    assert "s1:2 is connected to s2:2, declared: s2:3 (s2:2: s3:3)" in problems
    assert "s2:3 is connected to s3:3, declared: s1:2 (s3:3: s2:2)" in problems
    until("routes avoid them", lambda: settled(fabric, *expected))
    for name, port in (("s1", 2), ("s2", 2), ("s2", 3), ("s3", 3)):
        assert f"priority=65534,in_port={port} actions=drop" in rules(fabric, name)
    assert pings(fabric, "h1", "10.0.3.1")
    assert not pings(fabric, "h1", "10.0.2.1")
