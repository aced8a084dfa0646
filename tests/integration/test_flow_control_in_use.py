"""``up`` and ``lab``: the flow control of a fabric, and plans that are refused."""

from __future__ import annotations

import pytest

from knotless.emulation.names import Names
from tests.integration.test_up_down import status, up
from tests.support.fabric_fixtures import FREE_PORTS, Knotless, Remains


def test_the_flow_control_is_the_one_that_the_plan_needs(knotless: Knotless, names: Names) -> None:
    where = ("--name", names.name, *FREE_PORTS)
    done = knotless("up", "torus,5,5", "--engine", "dor", *where)
    assert done.returncode == 0, done.stderr
    try:
        assert done.stdout.splitlines()[0].endswith(": cannot deadlock under PFC")
        code, shown = status(knotless, names)
        assert (code, shown["settings"]["flow_control"]) == (0, "pfc")
        controller = shown["controller"]
        assert controller["flow_control"] == controller["plan"]["flow_control"] == "pfc"
        assert (controller["check"]["flow_control"], controller["check"]["acyclic"]) == (
            "pfc",
            True,
        )
    finally:
        knotless("down", "--name", names.name)


def test_a_fabric_with_credits_says_so_and_carries_traffic(
    knotless: Knotless, names: Names
) -> None:
    where = ("--name", names.name, *FREE_PORTS)
    done = knotless("up", "ring,4", "--engine", "updown", "--flow-control", "credits", *where)
    assert done.returncode == 0, done.stderr
    try:
        assert done.stdout.splitlines()[0].endswith(": cannot deadlock under credits")
        code, shown = status(knotless, names)
        assert (code, shown["settings"]["flow_control"]) == (0, "credits")
        note = "flow control by credits: a paused channel waits for credit"
        assert note in knotless("status", "--name", names.name).stdout
        assert note in knotless("top", "--once", "--name", names.name).stdout
        ping = knotless("exec", "--name", names.name, "h1", "ping", "-c", "2", "-W", "5", "h3")
        live = knotless("check", "--live", "--name", names.name)
        assert live.stdout.startswith("ring,4: cannot deadlock under credits, all is delivered\n")
        assert ping.returncode == 0, ping.stdout + ping.stderr
    finally:
        knotless("down", "--name", names.name)


@pytest.mark.parametrize("command", ["up", "lab"])
def test_a_plan_that_can_deadlock_is_refused(
    knotless: Knotless, names: Names, remains: Remains, command: str
) -> None:
    words = (command, "torus,5,5", "--engine", "dor", "--flow-control", "pause")
    done = knotless(*words, "--name", names.name, *FREE_PORTS)
    assert (done.returncode, done.stdout) == (2, "")
    cycle = " -> ".join([*(f"s{i}:2/0" for i in range(1, 6)), "s1:2/0"])
    assert done.stderr.startswith(f"knotless: dor on torus,5,5 CAN DEADLOCK under PAUSE: {cycle};")
    assert "--allow-deadlock" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert remains(names) == []


def test_a_plan_that_can_deadlock_is_started_where_that_is_allowed(
    knotless: Knotless, names: Names
) -> None:
    cyclic = ("--engine", "dor", "--vcs", "1", "--select", "low-port", "--allow-deadlock")
    done = up(knotless, names, *cyclic)
    assert done.returncode == 0, done.stderr
    try:
        ring = "s1:2/0 -> s2:2/0 -> s3:2/0 -> s4:2/0 -> s1:2/0"
        answer, cycle = done.stdout.splitlines()[:2]
        assert answer.endswith(": CAN DEADLOCK under PAUSE")
        assert cycle.endswith(f" channels: {ring}")
        _, shown = status(knotless, names)
        assert shown["controller"]["check"]["acyclic"] is False
        live = knotless("check", "--live", "--name", names.name)
        assert live.returncode == 1
        answer, cycle = live.stdout.splitlines()[:2]
        assert answer.endswith(": CAN DEADLOCK under PAUSE")
        assert cycle.endswith(f" channels: {ring}")
    finally:
        knotless("down", "--name", names.name)


def test_plain_links_have_no_flow_control(knotless: Knotless, names: Names) -> None:
    plain = ("--links", "plain", "--engine", "dor", "--vcs", "1", "--select", "low-port")
    wrong = up(knotless, names, *plain, "--flow-control", "host")
    assert wrong.returncode == 2
    assert "plain links have no flow control: omit 'host'" in wrong.stderr
    done = up(knotless, names, *plain)
    assert done.returncode == 0, done.stderr
    try:
        assert done.stdout.splitlines()[0].endswith(": cannot deadlock without flow control")
    finally:
        knotless("down", "--name", names.name)
