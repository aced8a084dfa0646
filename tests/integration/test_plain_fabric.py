"""What a fabric with plain links is made of: its files, hosts, ports and priorities."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from knotless.emulation import wiring
from knotless.emulation.names import Names
from knotless.emulation.network import EmulatedFabric
from knotless.emulation.priority import NICE, REALTIME_PRIORITIES, REVALIDATOR, Part, Priority
from knotless.emulation.report import report
from knotless.topologies import load
from tests.support.fabric_fixtures import new_names


def plain(names: Names, spec: str, **settings: Any) -> EmulatedFabric:
    return EmulatedFabric(load(spec), name=names.name, controller="none", links="plain", **settings)


@pytest.fixture(scope="module")
def fabric() -> Iterator[EmulatedFabric]:
    """Return a fabric that these tests share."""
    with plain(new_names(), "torus,2,3,hosts=2") as running:
        yield running


def test_state_and_sockets_are_roots_alone(fabric: EmulatedFabric) -> None:
    assert fabric.names.directory.stat().st_mode & 0o777 == 0o700
    assert fabric.names.ovs_directory.stat().st_mode & 0o777 == 0o700


def test_status_says_what_is_not_watched(fabric: EmulatedFabric) -> None:
    shown = report(fabric.names)
    assert shown is not None
    assert shown["notes"][0] == "links are plain: forwarding loops and deadlocks are not watched"
    assert shown["problems"] == []


def test_hosts_offload_nothing_and_speak_no_ipv6(fabric: EmulatedFabric) -> None:
    features = fabric.host("h1").cmd("ethtool -k h1-eth0")
    for feature in (
        "tx-checksumming",
        "tcp-segmentation-offload",
        "generic-segmentation-offload",
        "generic-receive-offload",
        "rx-vlan-offload",
        "tx-vlan-offload",
    ):
        assert f"{feature}: off" in features
    # Debian 13's ip colours what it prints on a terminal.
    addresses = fabric.host("h1").cmd("ip -color=never address")
    assert "inet6" not in addresses
    assert "inet 10.0.1.1/8" in addresses


def test_ports_have_the_numbers_of_the_fabric(fabric: EmulatedFabric) -> None:
    for switch, ports in wiring.ports(wiring.wire(fabric.fabric)).items():
        for number, interface in ports.items():
            output = fabric.ovs.process(switch).vsctl(["get", "interface", interface, "ofport"])
            assert output.strip() == str(number), (switch, interface)


def test_plain_links_carry_frames(fabric: EmulatedFabric) -> None:
    one, other = (host for host in fabric.fabric.hosts if host.switch == "s1")
    fabric.net["s1"].dpctl("add-flow", "actions=normal")
    _, _, status = fabric.host(one.name).pexec("ping", "-c", "1", "-W", "5", other.ip)
    assert status == 0


@pytest.mark.parametrize("priority", Priority)
def test_all_parts_have_the_priority_that_was_asked_for(names: Names, priority: Priority) -> None:
    with plain(names, "flat,2", priority=priority) as running:
        priorities = set()
        for task in Path(f"/proc/{running.ovs.pids[0]}/task").iterdir():
            is_revalidator = (task / "comm").read_text().startswith(REVALIDATOR)
            priorities.add((is_revalidator, scheduling_of(int(task.name))))
        shell = scheduling_of(running.host("h1").pid or 0)
        with running.host("h1").popen(["sleep", "60"]) as program:
            assert os.getpriority(os.PRIO_PROCESS, program.pid) == shell[2]
            program.kill()
    if priority == Priority.NORMAL:
        ordinary = (os.SCHED_OTHER, 0, NICE)
        assert priorities == {(False, ordinary), (True, ordinary)}
        assert shell == ordinary
    else:
        own = REALTIME_PRIORITIES[Part.SWITCHES]
        assert priorities == {(False, (os.SCHED_RR, own, 0)), (True, (os.SCHED_RR, own - 1, 0))}
        assert shell == (os.SCHED_OTHER, 0, 0)


def scheduling_of(task: int) -> tuple[int, int, int]:
    """Return the policy, real-time priority and niceness of a thread."""
    policy = os.sched_getscheduler(task) & ~os.SCHED_RESET_ON_FORK
    niceness = os.getpriority(os.PRIO_PROCESS, task)
    return policy, os.sched_getparam(task).sched_priority, niceness
