"""Our controller in virtual time."""

from __future__ import annotations

import pytest

from knotless.emulation.network import EmulatedFabric
from knotless.routing.request import PlanRequest
from tests.integration.test_change import changes
from tests.integration.test_several_controllers import settled
from tests.support.fabric_fixtures import Knotless, Start
from tests.support.waiting import until

SLOW_DOWN = 5.0


@pytest.fixture
def fabric(start: Start) -> EmulatedFabric:
    request = PlanRequest.from_options(engine="updown")
    return start("ring,4", request, slow_down=SLOW_DOWN, controller_clock="virtual")


def repaired(fabric: EmulatedFabric, *failed: str) -> float:
    """Wait for the routes that avoid this; return when they were complete, by the controller."""

    def is_done() -> bool:
        return fabric.controller_status()["routes"]["failed"] == list(failed) and settled(fabric)

    until("the routes", is_done)
    (*_, last) = changes(fabric)
    assert last["failed"] == list(failed)
    return float(last["time"])


def pass_time(fabric: EmulatedFabric) -> None:
    end_s = fabric.daemon.status()["uptime_s"] + 0.4
    until("virtual time", lambda: fabric.daemon.status()["uptime_s"] > end_s)


@pytest.mark.long
def test_the_controller_lives_in_virtual_time(fabric: EmulatedFabric, knotless: Knotless) -> None:
    link = fabric.cables.one("s1-s2")
    for _ in range(2):  # also after a restart
        before_s = fabric.daemon.status()["uptime_s"]
        fabric.cables.cut(link)
        first_s = repaired(fabric, link.name)
        pass_time(fabric)
        fabric.cables.mend(link)
        last_s = repaired(fabric)
        # In real time it would be longer by the slow-down.
        assert 0 < last_s - first_s <= fabric.daemon.status()["uptime_s"] - before_s
        assert changes(fabric)[-1]["stretch"] > SLOW_DOWN / 2
        done = knotless("controller", "restart", "--name", fabric.name)
        assert done.returncode == 0, done.stderr


def test_a_virtual_clock_needs_the_emulator(knotless: Knotless) -> None:
    done = knotless("up", "ring,4", "--links", "plain", "--controller-clock", "virtual")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--controller-clock needs our own controller and emulated links" in done.stderr
