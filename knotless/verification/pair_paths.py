"""One packet, followed link by link."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from knotless.base.errors import KnotlessError
from knotless.forwarding.state import ForwardingState, Hop, Trace
from knotless.verification.imported import traffic_for

if TYPE_CHECKING:
    from knotless.importers.fabric import AnyFabric

_ROUNDING = 1e-9
"""More than the error of a sum of shares."""


@dataclass(frozen=True)
class FollowedPair:
    """The links of a packet from ``source`` to ``destination``, and the hosts that receive it.

    Each of ``links`` has its name as ``link`` and the packet's label there (0: none) as ``label``
    in lower case, such as ``vlan``. If the packet may take one of several, each has its
    ``probability`` if all next hops are equally likely. ``twice``: a host receives it more than
    once. ``fate`` says what becomes of a packet that nobody receives.
    """

    source: str
    destination: str
    label: str
    links: tuple[dict[str, Any], ...]
    delivered: tuple[str, ...]
    twice: bool
    fate: str

    @property
    def ok(self) -> bool:
        """Whether it arrives, once."""
        return bool(self.delivered) and not self.twice

    def as_json(self) -> dict[str, object]:
        """Return the links and receivers as a value for :func:`json.dumps`."""
        links, delivered = list(self.links), list(self.delivered)
        return {"links": links, "delivered": delivered, "twice": self.twice}


def followed(
    state: ForwardingState,
    source: str,
    destination: str,
    label: str = "VLAN",
    shown: Callable[[Hop], Hop] = lambda hop: hop,
    ends_at: Callable[[int, int], bool] = lambda _destination, _switch: False,
) -> FollowedPair:
    """Follow a packet between two hosts, or to another destination.

    ``label`` is what the labels of packets are called; ``shown`` returns a step with the label and
    the priority that people know, ``ends_at`` whether a destination is an address of a switch (its
    number).

    Raises
    ------
    KnotlessError
        There is no such host or destination.

    """
    if state.source_number(source) is None:
        raise KnotlessError(f"--pair: {state.fabric.name} has no host {source[:40]!r}")
    number = state.destination_number(source, destination)
    if number is None:
        groups = "; 'all' and multicast:N (a declared group) are allowed too"
        raise KnotlessError(
            f"--pair: {state.fabric.name} has no host {destination[:40]!r}"
            + (groups if state.core.floods else "")
        )
    trace = state.trace_number(source, number)
    own = [switch for switch in trace.dropped if ends_at(number, switch)]
    got = [state.destination_name(host) for host, _ in trace.delivered]
    key = label.lower()
    shares = state.shares(source, number)
    if any(share < 1 - _ROUNDING for _, share in shares):
        links = [
            {**_link(state, shown(hop), key), "probability": round(share, 6)}
            for hop, share in shares
        ]
        got = list(dict.fromkeys(got))
    else:
        links = [_link(state, shown(hop), key) for hop in trace.hops]
    fate = "" if got else _fate(state, trace, own)
    return FollowedPair(
        source, destination, label, tuple(links), tuple(got), bool(trace.repeated), fate
    )


def followed_in(imported: AnyFabric, source: str, destination: str) -> FollowedPair:
    """Follow a packet in a fabric that was read from files, as :func:`followed` does."""
    ends = (source, imported.destination_called(destination))
    traffic = traffic_for(imported, *ends)
    return followed(traffic.state, *ends, imported.label, traffic.shown, imported.ends_at)


def _fate(state: ForwardingState, trace: Trace, own: Sequence[int]) -> str:
    """Describe where a packet ends that no host receives; ``own`` has the switches it is for."""
    names = state.channels.names
    if trace.unsupported:
        return f"what {names[trace.unsupported[0]]} does with it is not known"
    if trace.loops:
        return "it goes round for ever"
    if own:
        return f"it is for {names[own[0]]} itself"
    return f"it is dropped at {names[trace.dropped[0]]}" if trace.dropped else "nobody sends it"


def _link(state: ForwardingState, hop: Hop, key: str) -> dict[str, Any]:
    """Return the name of a link on a packet's path, and the label there (0: none) as ``key``."""
    channels = len(state.channels)
    if hop.channel < channels:
        return {"link": state.channels.name(hop.channel, hop.priority), key: hop.label}
    return {"link": state.destination_name(hop.channel - channels), key: hop.label}
