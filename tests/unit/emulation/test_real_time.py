"""What is said of rates that programs have measured in real time."""

from __future__ import annotations

from typing import Any, cast

import pytest

from knotless.base.errors import EmulationError
from knotless.emulation import real_time
from knotless.emulation.real_time import RealTimeMeasurement
from knotless.emulation.running_fabric import RunningFabric


class Fabric:
    """A fabric whose clocks are given: those of the emulator, and the real one."""

    def __init__(self, links: str = "emulated", *, virtual_clock: bool = False) -> None:
        self.links, self.settings = links, {"virtual_clock": virtual_clock}
        self.daemon, self.names, self.virtual_s, self.real_s = self, None, 100.0, 5.0
        self.ended = False

    def status(self) -> dict[str, Any]:
        if self.ended:
            raise EmulationError("the link emulator does not answer")
        return {"uptime_s": self.virtual_s}

    def measured(self, virtual_s: float, real_s: float, looks: int = 2) -> str | None:
        measurement = RealTimeMeasurement(cast(RunningFabric, self), lambda: self.real_s)
        for _ in range(looks):
            measurement.look("h1")
        self.virtual_s += virtual_s
        self.real_s += real_s
        return measurement.caution()


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the programs on hosts that do not follow virtual time: none."""
    seen: list[str] = []
    monkeypatch.setattr(real_time, "programs_in_real_time", lambda _names, _hosts: list(seen))
    return seen


def test_a_slow_fabric_is_named_with_its_factor() -> None:
    assert Fabric().measured(2.0, 10.0) == (
        "the fabric ran 5.0 times slower than real time: rates measured meanwhile are 5.0 times too"
        " low, and times too long; without --no-virtual-clock they are right"
    )


def test_programs_that_do_not_follow_are_named_with_the_factor(programs: list[str]) -> None:
    programs.append("h1: still (7, linked statically)")
    assert Fabric(virtual_clock=True).measured(2.0, 10.0) == (
        "the fabric ran 5.0 times slower than real time: rates are 5.0 times too low, and times too"
        " long if measured by h1: still (7, linked statically), without virtual time"
    )
    assert Fabric(virtual_clock=True).measured(9.5, 10.0) is None


def test_a_program_that_is_seen_once_may_be_about_to_follow(programs: list[str]) -> None:
    programs.append("h1: sh (7, started without it)")
    assert Fabric(virtual_clock=True).measured(2.0, 10.0, looks=1) is None


@pytest.mark.parametrize(("virtual_s", "real_s"), [(9.5, 10.0), (0.1, 0.9), (0.0, 10.0)])
def test_nothing_is_said_of_what_is_about_right_or_too_short(
    virtual_s: float, real_s: float
) -> None:
    assert Fabric().measured(virtual_s, real_s) is None


def test_programs_in_virtual_time_and_plain_links_are_right() -> None:
    assert Fabric("plain").measured(2.0, 10.0) is None
    assert Fabric(virtual_clock=True).measured(2.0, 10.0) is None
    ended = Fabric()
    ended.ended = True
    assert ended.measured(2.0, 10.0) is None
