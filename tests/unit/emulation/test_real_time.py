"""What is said of rates that programs have measured in real time."""

from __future__ import annotations

from typing import Any, cast

import pytest

from knotless.base.errors import EmulationError
from knotless.emulation.real_time import RealTimeMeasurement
from knotless.emulation.running_fabric import RunningFabric


class Fabric:
    """A fabric whose clocks are given: those of the emulator, and the real one."""

    def __init__(self, links: str = "emulated", *, virtual_clock: bool = False) -> None:
        self.links, self.settings = links, {"virtual_clock": virtual_clock}
        self.daemon, self.virtual_s, self.real_s = self, 100.0, 5.0
        self.ended = False

    def status(self) -> dict[str, Any]:
        if self.ended:
            raise EmulationError("the link emulator does not answer")
        return {"uptime_s": self.virtual_s}

    def measured(self, virtual_s: float, real_s: float) -> str | None:
        measurement = RealTimeMeasurement(cast(RunningFabric, self), lambda: self.real_s)
        self.virtual_s += virtual_s
        self.real_s += real_s
        return measurement.caution()


def test_a_slow_fabric_is_named_with_its_factor() -> None:
    said = Fabric().measured(2.0, 10.0)
    assert said is not None
    assert said.startswith("the fabric ran 5.0 times slower than real time: rates measured meanwhi")
    assert said.endswith(
        "are 5.0 times too low, and times too long; with 'knotless up"
        " --virtual-clock' they are right"
    )


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
