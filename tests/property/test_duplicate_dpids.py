"""Two switches with the same dpid: the one with the declared ports is served."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from knotless.controller import runtime
from knotless.controller.status import Status
from tests.property.test_switches import Case, _slow_answers
from tests.support.model_controllers import _simulated_time
from tests.support.model_switch import ModelSwitch

__all__ = ["_simulated_time", "_slow_answers"]
DPID = 1


def connected(case: Case, switch: ModelSwitch) -> Any:
    """Connect a switch, whoever else has its dpid; return the connection."""
    connection: Any = SimpleNamespace(
        dpid=switch.dpid, is_open=True, switch=switch, rng=case.rng, ports=switch.ports
    )
    connection.close = lambda: setattr(connection, "is_open", False)
    case.controller.connected(connection)
    for _ in range(200):
        runtime.sleep(0)
    return connection


def test_the_one_with_the_declared_ports_takes_the_place_of_the_other() -> None:
    case = Case(1)
    case.settle()
    real, twin = case.switches[0], ModelSwitch(DPID, ports=(1,))
    case.disconnect(real)
    stolen = connected(case, twin)
    assert case.state.observed.switches[DPID].missing_ports == (2, 3)
    case.connections[DPID] = connected(case, real)
    assert not stolen.is_open
    assert case.state.observed.switches[DPID].missing_ports == ()
    case.settle()
    case.held_as_wanted()


def test_another_one_with_all_ports_does_not_take_the_place_of_the_first() -> None:
    case = Case(1)
    case.settle()
    twin = ModelSwitch(DPID)
    assert not connected(case, twin).is_open
    assert not twin.rules
    assert "two switches say they are s1" in "".join(Status(case.state).problems(0.0))
    case.held_as_wanted()
