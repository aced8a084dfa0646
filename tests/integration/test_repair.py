"""A running fabric whose links fail and return, and whose configuration changes, under traffic."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from knotless.emulation import rest, state
from knotless.emulation.names import Names
from knotless.emulation.network import EmulatedFabric
from knotless.emulation.priority import REALTIME_PRIORITIES, Part
from knotless.routing.request import PlanRequest
from tests.support.fabric_fixtures import Knotless, Start
from tests.support.waiting import until

LINK = "s1:2-s2:3"


@pytest.fixture
def fabric(start: Start, request: pytest.FixtureRequest) -> EmulatedFabric:
    return start(getattr(request, "param", "torus,3,3"))


def routes(fabric: EmulatedFabric, knotless: Knotless) -> dict[str, Any]:
    report: dict[str, Any] = status(fabric, knotless)["routes"]
    return report


def status(fabric: EmulatedFabric, knotless: Knotless) -> dict[str, Any]:
    """Return the controller's status."""
    done = knotless("status", "--name", fabric.name, "--json")
    port = json.loads(done.stdout)["fabrics"][0]["settings"]["rest_port"]
    return rest.status(int(port))


def until_routes_avoid(fabric: EmulatedFabric, knotless: Knotless, failed: list[str]) -> None:
    def done() -> bool:
        report = routes(fabric, knotless)
        return report["failed"] == failed and not report["changing"]

    until(f"routes without {failed}", done)


def pings(fabric: EmulatedFabric, source: str, target: str) -> bool:
    address = fabric.host(target).IP()
    return bool(fabric.host(source).pexec("ping", "-c", "1", "-W", "2", address)[2] == 0)


def have_ordinary_priority(processes: Iterable[psutil.Process]) -> bool:
    return all(os.sched_getscheduler(process.pid) == os.SCHED_OTHER for process in processes)


def test_all_threads_of_the_controller_have_the_priority_of_switches_but_not_the_planner(
    start: Start,
) -> None:
    fabric = start("ring,4", PlanRequest(engine="updown"), priority="realtime")
    running = state.read(fabric.names)
    assert running is not None
    pid = running.processes["controller"].pid
    assert os.sched_getscheduler(pid) == os.SCHED_RR
    for task in Path(f"/proc/{pid}/task").iterdir():
        own = os.sched_getparam(int(task.name)).sched_priority
        assert own == REALTIME_PRIORITIES[Part.CONTROLLER]
    children = psutil.Process(pid).children(recursive=True)
    until("children have ordinary priority", partial(have_ordinary_priority, children))


def test_routes_avoid_a_link_that_is_down_and_come_back(
    fabric: EmulatedFabric, knotless: Knotless
) -> None:
    for _ in range(2):
        assert knotless("cut", "s1-s2", "--name", fabric.name).returncode == 0
        until_routes_avoid(fabric, knotless, [LINK])
        assert pings(fabric, "h1", "h2")
        assert pings(fabric, "h2", "h1")
        # Paths are those of the repaired plan, and nothing is sent to the link that is down.
        assert knotless("probe", "--name", fabric.name).returncode == 0
        assert knotless("mend", "s1-s2", "--name", fabric.name).returncode == 0
        until_routes_avoid(fabric, knotless, [])
        assert knotless("probe", "--name", fabric.name).returncode == 0


@pytest.mark.long
def test_repairs_are_planned_ahead_and_without_the_planner_when_needed(
    fabric: EmulatedFabric, knotless: Knotless, names: Names
) -> None:
    def planner() -> psutil.Process:
        controller = psutil.Process(status(fabric, knotless)["pid"])
        (process,) = (
            child
            for child in controller.children()
            if "knotless.controller.updates.worker" in child.cmdline()
        )
        return process

    def all_planned() -> bool:
        return bool(routes(fabric, knotless)["planned_ahead"]["complete"])

    log = names.log_file("controller")
    until("all repairs planned", all_planned)
    assert routes(fabric, knotless)["planned_ahead"]["ways"] == len(fabric.fabric.links)
    assert knotless("cut", "s1-s2", "--name", fabric.name).returncode == 0
    until_routes_avoid(fabric, knotless, [LINK])
    assert "2 steps, planned ahead" in log.read_text()
    assert knotless("probe", "--name", fabric.name).returncode == 0

    # A planner that ends is started again; changes do not wait for it.
    planner().kill()
    assert knotless("mend", "s1-s2", "--name", fabric.name).returncode == 0
    until_routes_avoid(fabric, knotless, [])
    until("all repairs planned", all_planned)
    left = planner()
    assert knotless("controller", "restart", "--name", fabric.name).returncode == 0
    until("the end of the planner of the controller before", lambda: not left.is_running())


@pytest.mark.parametrize("fabric", ["torus,4,4"], indirect=True)
def test_a_cut_is_repaired_in_place(fabric: EmulatedFabric, knotless: Knotless) -> None:
    assert knotless("cut", "s1-s2", "--name", fabric.name).returncode == 0
    until_routes_avoid(fabric, knotless, [LINK])
    report = routes(fabric, knotless)
    assert (report["tier"], report["first_vlan"], report["first_priority"]) == (1, 0, 0)
    assert pings(fabric, "h1", "h2")
    # The rules are those of the repaired plan alone: no guard is left.
    assert knotless("probe", "--name", fabric.name).returncode == 0


@pytest.mark.parametrize("fabric", ["ring,4"], indirect=True)
def test_both_parts_of_a_divided_fabric_work_and_the_pairs_between_them_are_reported(
    fabric: EmulatedFabric, knotless: Knotless
) -> None:
    assert knotless("cut", "s1-s2", "--name", fabric.name).returncode == 0
    assert knotless("cut", "s3-s4", "--name", fabric.name).returncode == 0
    until_routes_avoid(fabric, knotless, [LINK, "s3:2-s4:3"])
    report = status(fabric, knotless)
    assert (report["unreachable"], report["separated"]) == (8, [["h1", "h4"], ["h2", "h3"]])
    line = "failures separate h1, h4 from h2, h3: 8 pairs of hosts cannot reach each other"
    assert line in report["problems"]
    assert pings(fabric, "h1", "h4")
    assert pings(fabric, "h2", "h3")
    assert not pings(fabric, "h1", "h2")
    assert knotless("mend", "s1-s2", "--name", fabric.name).returncode == 0
    until_routes_avoid(fabric, knotless, ["s3:2-s4:3"])
    assert pings(fabric, "h1", "h2")
    assert status(fabric, knotless)["separated"] == []


@pytest.mark.parametrize("fabric", ["ring,4"], indirect=True)
def test_a_controller_that_starts_again_changes_no_rule(
    fabric: EmulatedFabric, knotless: Knotless, names: Names
) -> None:
    for command, failed in (("cut", [LINK]), ("mend", [])):
        assert knotless(command, "s1-s2", "--name", fabric.name).returncode == 0
        until_routes_avoid(fabric, knotless, failed)
    before = routes(fabric, knotless)
    assert before["first_vlan"] > 0, "the change has led to another plane"
    log = names.log_file("controller")
    length = len(log.read_text())
    assert knotless("controller", "restart", "--name", fabric.name).returncode == 0
    lines = [line for line in log.read_text()[length:].splitlines() if "rules as wanted" in line]
    assert len(lines) == 4
    assert all("0 added, 0 modified, 0 deleted" in line for line in lines)
    assert routes(fabric, knotless)["first_vlan"] == before["first_vlan"]
