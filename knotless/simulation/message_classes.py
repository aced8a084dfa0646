"""Message classes of hosts, as the simulator takes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from knotless.base.errors import KnotlessError, SimulationError
from knotless.base.flow_control import FlowControl
from knotless.forwarding.state import ForwardingState
from knotless.simulation.tracefile import read_messages
from knotless.topologies.fabric import Fabric
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


def refuse_other_roles(
    model: EndpointModel, fabric: Fabric, trace: str | None, flows: Iterable[tuple[str, str]]
) -> None:
    """Raise SimulationError for messages that no client sends to a server.

    They are those of a trace, or ``flows``, whose destination can be ``*``: any.
    """
    if model.roles is None:
        return
    if trace is not None:
        hosts = [host.name for host in fabric.hosts]
        messages = read_messages(trace, fabric)
        flows = ((hosts[message.source], hosts[message.destination]) for message in messages)
    for source, destination in flows:
        if not model.roles.begins(source, destination):
            raise SimulationError(
                f"{model.name}: {source} sends to {destination}, and roles let only clients send"
                " messages of their own, to servers: give a --trace or --pattern of these"
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
    reserves = {one.message: one.reserve for one in model.reserves(len(waits.state.fabric.hosts))}
    return [
        (
            numbers[one.sends_before_taking[0]] if one.sends_before_taking else None,
            reserves.get(name, 0),
            one.outstanding,
            waits.vcs * one.priority,
        )
        for name, one in model.classes.items()
    ]
