"""``knotless cut`` and ``mend`` on a running fabric, as its switches and hosts see them."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from knotless.emulation.names import Names
from knotless.emulation.network import EmulatedFabric
from knotless.topologies import load
from tests.support.fabric_fixtures import Knotless
from tests.support.waiting import HANG_S, until


@pytest.fixture
def fabric(running: EmulatedFabric) -> Iterator[EmulatedFabric]:
    """Return the fabric; what the test has left cut is mended."""
    yield running
    for cut in running.cables.cuts():
        running.cables.mend(running.cables.one(cut.link))
    until("an intact fabric", lambda: is_intact(running))


def is_intact(fabric: EmulatedFabric) -> bool:
    """Tell whether the controller knows of no failure, and uses every link."""
    report = fabric.controller_status()
    return not (report["problems"] or report["routes"]["failed"] or report["routes"]["changing"])


def port_states(fabric: EmulatedFabric, switch: str) -> dict[int, str]:
    """Return the OpenFlow state of each port of a switch."""
    bridge = fabric.names.ovs_directory / f"{switch}.mgmt"
    text = subprocess.run(
        ["ovs-ofctl", "-O", "OpenFlow13", "dump-ports-desc", f"unix:{bridge}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S,
    ).stdout
    rows = re.findall(
        r"^ *([0-9]+)\([^)]*\):.*?^ *state: *([A-Z_ 0]*)$", text, re.MULTILINE | re.DOTALL
    )
    return {int(port): states for port, states in rows}


def pings(fabric: EmulatedFabric, source: str, address: str) -> bool:
    _, _, status = fabric.host(source).pexec("ping", "-c", "1", "-W", "1", address)
    return bool(status == 0)


def shown(knotless: Knotless, fabric: EmulatedFabric) -> list[dict[str, Any]]:
    done = knotless("status", "--name", fabric.name, "--json")
    cuts: list[dict[str, Any]] = json.loads(done.stdout)["fabrics"][0]["cut"]
    return cuts


def test_a_cut_takes_the_carrier_down_at_both_ends_and_a_mend_brings_it_back(
    fabric: EmulatedFabric, knotless: Knotless
) -> None:
    done = knotless("cut", "s2-s1", "--name", fabric.name)
    assert (done.returncode, done.stdout) == (0, "s1:2-s2:3: cut, has no carrier\n")
    until("s1 sees it", lambda: "LINK_DOWN" in port_states(fabric, "s1")[2])
    until("s2 sees it", lambda: "LINK_DOWN" in port_states(fabric, "s2")[3])
    assert "LINK_DOWN" not in port_states(fabric, "s2")[2]
    until(
        "the controller sees it",
        lambda: fabric.controller_status()["links_down"] == ["s1:2-s2:3"],
    )
    assert "link s1:2-s2:3 is down" in fabric.controller_status()["problems"]
    assert shown(knotless, fabric) == [{"link": "s1:2-s2:3", "carrier": False, "channels": []}]
    assert "cut: s1:2-s2:3 (no carrier)" in knotless("status", "--name", fabric.name).stdout
    done = knotless("mend", "s1:2-s2:3", "--name", fabric.name, "--json")
    assert json.loads(done.stdout)["up"] is True
    until("s1 sees it", lambda: "LINK_DOWN" not in port_states(fabric, "s1")[2])
    until("s2 sees it", lambda: "LINK_DOWN" not in port_states(fabric, "s2")[3])
    assert shown(knotless, fabric) == []
    until("the controller sees it", lambda: fabric.controller_status()["problems"] == [])
    until("h1 reaches h2", lambda: pings(fabric, "h1", "10.0.2.1"))
    assert fabric.daemon.status()["kernel_lost"] == 0


def test_frames_on_a_cut_link_occupy_no_buffer(fabric: EmulatedFabric) -> None:
    """They are dropped at the dead port at once, so that they pause nobody."""
    fabric.daemon.reset()
    cables = fabric.cables
    cables.cut(cables.one("h1"))
    until("s1 sees it", lambda: "LINK_DOWN" in port_states(fabric, "s1")[1])
    assert not pings(fabric, "h2", "10.0.1.1")

    def drops() -> dict[str, Any]:
        return {c["channel"]: c["drops"] for c in fabric.daemon.counters()["channels"]}

    until("the frame is dropped", lambda: drops()["s1:1"]["down"] > 0)
    assert all(channel["unforwarded"] == 0 for channel in drops().values())


def test_a_silent_cut_drops_frames_and_leaves_the_carrier(
    fabric: EmulatedFabric, knotless: Knotless
) -> None:
    assert pings(fabric, "h2", "10.0.1.1")
    done = knotless("cut", "h1", "--silent", "--from", "s1", "--name", fabric.name)
    text = "h1: cut, drops every frame from s1, with carrier\n"
    assert (done.returncode, done.stdout) == (0, text)
    assert shown(knotless, fabric) == [{"link": "h1", "carrier": True, "channels": ["s1:1"]}]
    assert not pings(fabric, "h2", "10.0.1.1")
    assert "LINK_DOWN" not in port_states(fabric, "s1")[1]
    assert knotless("mend", "h1", "--name", fabric.name).returncode == 0
    until("h2 reaches h1", lambda: pings(fabric, "h2", "10.0.1.1"))


def test_a_hosts_link_without_carrier_is_seen_by_host_and_switch(fabric: EmulatedFabric) -> None:
    cables = fabric.cables
    cables.cut(cables.one("h3"))
    until("s3 sees it", lambda: "LINK_DOWN" in port_states(fabric, "s3")[1])
    text, _, _ = fabric.host("h3").pexec("ip", "link", "show", "h3-eth0")
    assert "NO-CARRIER" in text
    cables.mend(cables.one("h3"))
    until("h3 reaches h1", lambda: pings(fabric, "h3", "10.0.1.1"))


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("cut", "s1-s3"), "no link 's1-s3'; links are s1:2-s2:3, "),
        (("cut", "s1-s2", "--from", "s1"), "one direction can only be cut silently"),
        (("mend", "nothing"), "no link 'nothing'"),
    ],
)
def test_mistakes_are_one_line(
    fabric: EmulatedFabric, knotless: Knotless, words: tuple[str, ...], complaint: str
) -> None:
    done = knotless(*words, "--name", fabric.name)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert complaint in done.stderr


def test_without_a_fabric_cut_is_one_line(names: Names, knotless: Knotless) -> None:
    done = knotless("cut", "s1-s2", "--name", names.name)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "no fabric" in done.stderr


def test_plain_links_lose_their_carrier_too(names: Names, knotless: Knotless) -> None:
    with EmulatedFabric(
        load("ring,4"), name=names.name, openflow_port=0, rest_port=0, links="plain"
    ) as fabric:
        assert knotless("cut", "s1-s2", "--name", names.name).returncode == 0
        until("s1 sees it", lambda: "LINK_DOWN" in port_states(fabric, "s1")[2])
        until("s2 sees it", lambda: "LINK_DOWN" in port_states(fabric, "s2")[3])
        assert [cut["link"] for cut in shown(knotless, fabric)] == ["s1:2-s2:3"]
        assert knotless("mend", "s1-s2", "--name", names.name).returncode == 0
        until("s1 sees it", lambda: "LINK_DOWN" not in port_states(fabric, "s1")[2])
