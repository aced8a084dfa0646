"""A switch whose ports count what arrives, and that forwards none of it: its tables look right."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator

import pytest

from knotless.emulation.network import EmulatedFabric
from tests.integration.test_probes import all_ping, faults, pings, settled
from tests.support.fabric_fixtures import new_fabric, new_names
from tests.support.waiting import HANG_S, until


@pytest.fixture(scope="module")
def fabric() -> Iterator[EmulatedFabric]:
    """Return a fabric that these tests share; each waits until all is well again."""
    with new_fabric(new_names(), "ring,4") as running:
        yield running


def ofctl(fabric: EmulatedFabric, command: str, switch: str, *words: str) -> None:
    """Change a switch behind the controller's back."""
    bridge = f"unix:{fabric.names.ovs_directory / f'{switch}.mgmt'}"
    subprocess.run(
        ["ovs-ofctl", "-O", "OpenFlow13", command, bridge, *words],
        capture_output=True,
        check=True,
        timeout=HANG_S,
    )


def receive(fabric: EmulatedFabric, switch: str, ports: Iterable[int], *, on: bool) -> None:
    """Have ports of a switch drop all that they receive and count (OFPPC_NO_RECV), or not."""
    for port in ports:
        ofctl(fabric, "mod-port", switch, str(port), "receive" if on else "no-receive")


def deaf(fabric: EmulatedFabric) -> list[str]:
    names: list[str] = fabric.controller_status()["switches_deaf"]
    return names


def told(fabric: EmulatedFabric, text: str) -> bool:
    return any(text in line for line in fabric.controller_status()["problems"])


def test_a_switch_whose_ports_receive_nothing_is_deaf_until_they_do(fabric: EmulatedFabric) -> None:
    receive(fabric, "s3", [2, 3], on=False)
    until("it is deaf", lambda: deaf(fabric) == ["s3"])
    assert told(fabric, "s3 (dpid 3) is deaf: ")
    assert faults(fabric) == {}
    assert fabric.controller_status()["switches_down"] == []
    until("routes avoid it", lambda: settled(fabric, "s3"))
    for source, address in (("h2", "10.0.4.1"), ("h4", "10.0.2.1"), ("h1", "10.0.2.1")):
        assert pings(fabric, source, address)
    assert not pings(fabric, "h1", "10.0.3.1")
    receive(fabric, "s3", [2, 3], on=True)
    until("it is deaf no longer", lambda: deaf(fabric) == [])
    until("routes are back", lambda: settled(fabric))
    assert all_ping(fabric)
    until("all is well", lambda: fabric.controller_status()["problems"] == [])


def test_one_deaf_port_makes_no_switch_deaf_nor_do_two_switches_of_four(
    fabric: EmulatedFabric,
) -> None:
    receive(fabric, "s3", [2], on=False)
    receive(fabric, "s1", [2, 3], on=False)
    until("the other is found", lambda: deaf(fabric) == ["s1"])
    receive(fabric, "s1", [2, 3], on=True)
    until("it is deaf no longer", lambda: deaf(fabric) == [])
    receive(fabric, "s3", [3], on=False)
    receive(fabric, "s1", [2, 3], on=False)
    until("both are named", lambda: told(fabric, "2 of 4 switches are more than a quarter"))
    assert deaf(fabric) == []
    assert settled(fabric)
    for switch in ("s1", "s3"):
        receive(fabric, switch, [2, 3], on=True)
    until("all is well", lambda: fabric.controller_status()["problems"] == [])


def test_a_switch_that_has_lost_its_rules_of_probes_gets_them_again_and_is_not_deaf(
    fabric: EmulatedFabric,
) -> None:
    ofctl(fabric, "del-flows", "s3", "cookie=0x6b6e7072/-1")
    until("it is said", lambda: told(fabric, "s3 (dpid 3) had lost 4 of its rules of probes"))
    assert deaf(fabric) == []
    until("all is well", lambda: fabric.controller_status()["problems"] == [])
    assert settled(fabric)
