"""The verdict on a forwarding state whose hosts have message classes.

A cycle through hosts is named with its messages: each step is a packet, or a host that must send
one message before it takes another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from knotless.base.flow_control import AUTO
from knotless.forwarding.state import ForwardingState
from knotless.routing.graphs.dependencies import find_cycle
from knotless.traffic.endpoints import EndpointModel
from knotless.verification.check import Verdict, verdict_of
from knotless.verification.dependencies import blocking_steps
from knotless.verification.endpoint_waits import NOT_PAUSED, EndpointWaits, sends_and_takes
from knotless.verification.endpoint_witnesses import witnesses_of
from knotless.verification.verdict_parts import theorem_of


@dataclass(frozen=True)
class HostsJudged:
    """The part of a verdict about what hosts send before they take more.

    ``endpoints`` is the name of the message classes, ``reserves`` the inequality of each class that
    requires others, ``through_hosts`` whether a cycle leads through hosts.
    """

    endpoints: str = ""
    reserves: tuple[dict[str, object], ...] = ()
    through_hosts: bool = False

    @property
    def reserve_lines(self) -> list[str]:
        """The inequalities as lines."""
        return [str(reserve["text"]) for reserve in self.reserves]


@dataclass(frozen=True)
class EndpointVerdict(HostsJudged, Verdict):
    """A verdict that also judges what hosts send before they take more."""

    @property
    def about_endpoints(self) -> dict[str, object]:
        """The values of a plan's summary that are about end points."""
        keys = (
            "endpoints",
            "reserves",
            "through_hosts",
            "blocked",
            "witnesses",
            "assumes",
            "notes",
        )
        return {key: value for key, value in self.as_json().items() if key in keys}

    def as_json(self) -> dict[str, object]:
        """Return the metrics as plain values."""
        witnesses = [witness.as_json() for witness in self.witnesses]
        return {**super().as_json(), "witnesses": witnesses}


def verdict_with_endpoints(
    state: ForwardingState, model: EndpointModel, flow_control: str = AUTO
) -> EndpointVerdict:
    """Return the verdict on ``state`` if its hosts have the message classes of ``model``.

    Parameters
    ----------
    state : ForwardingState
        What every switch does with every packet.
    model : EndpointModel
        The message classes of its hosts.
    flow_control : str
        One of :data:`knotless.base.flow_control.CHOICES`; ``auto`` is PFC if messages use more than
        one virtual channel, else PAUSE.

    Raises
    ------
    EndpointError
        The priorities of the classes need more virtual channels than links have.
    PlanError
        The flow control does not exist.

    """
    waits = EndpointWaits(state, model, flow_control)
    verdict = verdict_of(state, waits.flow_control)
    if model.roles is not None and not verdict.safe:
        # It is not safe without hosts: roles do not excuse what other packets can do.
        waits = EndpointWaits(state, model.model_copy(update={"roles": None}), flow_control)
    steps = blocking_steps(waits.edges, waits.first_free)
    holds = [step.holds for step in steps]
    several = any(len(step.requests) > 1 for step in steps or waits.first_free)
    cycle = find_cycle(waits.every_edge) if several else holds
    safe = not steps
    fields: dict[str, Any] = {
        **vars(verdict),
        "acyclic": not cycle,
        "cycle": [waits.name_of(node) for node in cycle],
        "safe": safe,
        "theorem": theorem_of(is_acyclic=not cycle, is_safe=safe),
        "blocked": [waits.name_of(node) for node in holds],
        "witnesses": witnesses_of(waits, [(step.holds, step.requests) for step in steps]),
        "assumes": [*_assumes(waits, verdict.assumes)],
        "endpoints": model.name,
        "reserves": tuple(r.as_json() for r in model.reserves(len(state.fabric.hosts))),
        "through_hosts": any(waits.host_of(node) is not None for node in holds),
        "notes": [*verdict.notes, *_notes(waits)],
    }
    return EndpointVerdict(**fields)


def _assumes(waits: EndpointWaits, assumes: Sequence[str]) -> Iterator[str]:
    """Yield what the verdict takes for granted: that hosts take all, only if nothing else is so."""
    model = waits.model
    if model.takes_all:
        yield from assumes
        return
    yield from assumes[:-1]
    yield sends_and_takes(model)
    if len(model.priorities) > 1:
        channels = (
            "virtual channel P" if waits.vcs == 1 else f"virtual channels from {waits.vcs}P on"
        )
        yield f"hosts and switches keep messages of priority P apart, in {channels}"


def _notes(waits: EndpointWaits) -> Iterator[str]:
    control, model = waits.flow_control, waits.model
    if not control.host_links.pauses and not model.takes_all:
        yield NOT_PAUSED
    if control.host_links.by_channel and len(model.priorities) > 1:
        yield "PAUSE stops all priorities: those of message classes have no effect"
