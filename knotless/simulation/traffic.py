"""The traffic of a simulation: a pattern with its load, or a trace."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knotless._core.simulator import Traffic
from knotless.base.errors import SimulationError
from knotless.base.model_limits import MAX_BYTES
from knotless.base.suggestions import is_not_one_of
from knotless.routing.multicast import ALL
from knotless.topologies.fabric import Fabric
from knotless.traffic.patterns import Pattern
from knotless.traffic.theory import packet_wire_bytes

ARRIVALS = ("poisson", "constant", "saturate", "acknowledged")
_NOBODY = 2**32 - 1
_ANYONE = -1
_FIRST_TREE = -2
"""The target number of the first multicast tree; further trees have lower numbers."""


@dataclass(frozen=True)
class Load:
    """The amount of traffic of a pattern.

    ``arrivals`` is ``saturate`` (every flow always has a packet to send), ``poisson`` or
    ``constant`` (messages independent of each other, whose rate takes the fraction ``load`` of
    each sending host's line, 0 < load <= 1), or ``acknowledged`` (each message is sent when the
    previous one is acknowledged, ``messages`` per flow). ``message_bytes`` None means one full
    packet. With ``barrier``, each phase of a pattern waits for the end of the previous one.
    """

    arrivals: str = "saturate"
    load: float = 1.0
    message_bytes: int | None = None
    messages: int = 1
    barrier: bool = True


def line_bytes(message_bytes: int, packet_bytes: int) -> int:
    """Return the bytes that a message occupies on a host's link, gaps included."""
    whole, rest = divmod(message_bytes, packet_bytes)
    last = packet_wire_bytes(rest, tagged=False) if rest else 0
    return whole * packet_wire_bytes(packet_bytes, tagged=False) + last


def pattern_traffic(
    fabric: Fabric, chosen: Pattern, load: Load, *, packet_bytes: int, seed: int
) -> tuple[Traffic, list[tuple[str, str]]]:
    """Return the traffic, and the (source, destination) names of the flows counted.

    Raises
    ------
    SimulationError
        The load is invalid.
    PatternError
        The pattern does not exist or does not fit the fabric.

    """
    message_bytes = _checked(load, packet_bytes)
    names = [host.name for host in fabric.hosts]
    if chosen.in_phases:
        destinations = np.stack(
            [_by_host(flows, len(names)) for flows in chosen.phases(fabric, seed)]
        )
        traffic = Traffic.phases(destinations, message_bytes, load.barrier)
        return traffic, [(name, "*") for name in names]
    if chosen.name == "uniform":
        pairs = [(source, _ANYONE) for source in range(len(names) if len(names) > 1 else 0)]
    else:
        pairs = chosen.flows(fabric, seed)
    if not pairs:
        raise SimulationError(f"pattern {chosen.name} has no flows on {fabric.name}")
    if chosen.name == "uniform" and load.arrivals == "saturate":
        raise SimulationError("uniform traffic needs a load, or acknowledged messages")
    traffic = _flows(fabric, pairs, load, message_bytes, packet_bytes)
    return traffic, [(names[a], "*" if b == _ANYONE else names[b]) for a, b in pairs]


def multicast_traffic(
    fabric: Fabric, senders: Sequence[tuple[str, int]], load: Load, *, packet_bytes: int
) -> tuple[Traffic, list[tuple[str, str]]]:
    """Return the traffic of ``senders``, (host, group or 0 for all); the n-th uses the n-th tree.

    Messages have one packet each and are not acknowledged. Raises SimulationError if the load
    is invalid.
    """
    message_bytes = _checked(load, packet_bytes)
    if load.arrivals == "acknowledged" or message_bytes > packet_bytes:
        raise SimulationError("multicast messages have one packet and are not acknowledged")
    pairs = [
        (fabric.host_index[host], _FIRST_TREE - tree) for tree, (host, _) in enumerate(senders)
    ]
    flows = [(host, f"group {group}" if group else ALL) for host, group in senders]
    return _flows(fabric, pairs, load, message_bytes, packet_bytes), flows


def _checked(load: Load, packet_bytes: int) -> int:
    """Return the message length in bytes; raises SimulationError if the load is invalid."""
    if load.arrivals not in ARRIVALS:
        raise SimulationError(f"arrivals: {load.arrivals!r} {is_not_one_of(ARRIVALS)}")
    if not (math.isfinite(load.load) and 0 < load.load <= 1):
        raise SimulationError(f"load must be over 0 and at most 1, not {load.load:g}")
    message_bytes = packet_bytes if load.message_bytes is None else load.message_bytes
    if not 1 <= message_bytes < MAX_BYTES:
        raise SimulationError(f"messages must have 1 to 2**40 - 1 bytes, not {message_bytes}")
    if not 1 <= load.messages < 2**63:
        raise SimulationError(f"messages of each flow must be 1 or more, not {load.messages}")
    return message_bytes


def _flows(
    fabric: Fabric,
    pairs: Sequence[tuple[int, int]],
    load: Load,
    message_bytes: int,
    packet_bytes: int,
) -> Traffic:
    return Traffic.flows(
        np.array([source for source, _ in pairs], dtype=np.uint32),
        np.array([target for _, target in pairs], dtype=np.int64),
        load.arrivals,
        _mean_ps(fabric, pairs, load, line_bytes(message_bytes, packet_bytes)),
        load.messages,
        message_bytes,
    )


def _by_host(flows: NDArray[np.int32], hosts: int) -> NDArray[np.uint32]:
    to = np.full(hosts, _NOBODY, dtype=np.uint32)
    sending = flows[flows[:, 0] != flows[:, 1]]
    to[sending[:, 0]] = sending[:, 1]
    return to


def _mean_ps(
    fabric: Fabric, pairs: Sequence[tuple[int, int]], load: Load, message_line_bytes: int
) -> float:
    """Return the mean time between two messages of a flow.

    Raises SimulationError if hosts have different rates or numbers of flows, because the times
    would differ.
    """
    if load.arrivals not in ("poisson", "constant"):
        return 0.0
    flows = np.bincount([source for source, _ in pairs])
    senders = sorted({source for source, _ in pairs})
    shares = {(fabric.hosts[s].rate_mbps, int(flows[s])) for s in senders}
    if len(shares) > 1:
        raise SimulationError(
            "a load needs the same rate and number of flows for all hosts; use saturate"
        )
    rate_mbps, count = next(iter(shares))
    return 8e6 * message_line_bytes * count / (rate_mbps * load.load)
