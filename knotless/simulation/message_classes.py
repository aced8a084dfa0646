"""Message classes of hosts, as the simulator takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from knotless.base.errors import KnotlessError, SimulationError
from knotless.base.flow_control import FlowControl
from knotless.forwarding.state import ForwardingState
from knotless.verification.endpoint_waits import EndpointWaits

if TYPE_CHECKING:
    from knotless.traffic.endpoints import EndpointModel

ClassTuple = tuple[int | None, int, int | None, int]
"""The class that is sent first, the reserve, the bound, and what it adds to priorities."""


def refuse_several_answers(model: EndpointModel) -> None:
    """Raise SimulationError for a class that requires several messages."""
    for name, one in model.classes.items():
        if len(one.sends_before_taking) > 1:
            raise SimulationError(
                f"{model.name}: a simulated host sends one message before it takes a {name}, not"
                f" {len(one.sends_before_taking)}"
            )


def classes_for(
    model: EndpointModel | None, state: ForwardingState, control: FlowControl
) -> list[ClassTuple]:
    """Return the classes for a fabric; raises SimulationError for too many virtual channels."""
    if model is None:
        return []
    try:
        return for_simulator(EndpointWaits(state, model, control))
    except KnotlessError as error:
        raise SimulationError(str(error)) from None


def for_simulator(waits: EndpointWaits) -> list[ClassTuple]:
    """Return the message classes of waits; raises SimulationError if one requires several."""
    model = waits.model
    refuse_several_answers(model)
    numbers = {name: number for number, name in enumerate(model.classes)}
    senders = max(0, len(waits.state.fabric.hosts) - 1)
    return [
        (
            numbers[one.sends_before_taking[0]] if one.sends_before_taking else None,
            one.reserve + senders * one.reserve_per_host,
            one.outstanding,
            waits.vcs * one.priority,
        )
        for one in model.classes.values()
    ]
