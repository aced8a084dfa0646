"""A lower bound of the time of a collective operation on a fabric.

It is the larger of two. The first is the longest chain of transfers that wait for each other, each
with its time alone on its path. The second is the host whose line is busy longest: the time of
all that it sends, and the rest of the path of the last packet; or of all that it receives, and the
path of the first packet up to this line. Where all paths are alike and no two transfers meet, as on
one switch, the bound is the formula of the operation (``Collective.bound``).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knotless._core.simulator import Simulation
from knotless.simulation.traffic import line_bytes
from knotless.topologies.fabric import Fabric
from knotless.traffic.collectives import Transfers

_Times = NDArray[np.int64]


def collective_bound_ps(
    simulation: Simulation,
    fabric: Fabric,
    transfers: Transfers,
    places: NDArray[np.uint32],
    packet_bytes: int,
) -> int:
    """Return the bound in picoseconds; rank r is on host ``places[r]``."""
    source, destination = places[transfers.source], places[transfers.destination]

    def alone(sizes: NDArray[np.uint64]) -> _Times:
        none = np.zeros(len(sizes), dtype=np.bool_)
        return simulation.alone_ps(source, destination, sizes, none).astype(np.int64)

    first = np.minimum(transfers.bytes, packet_bytes).astype(np.uint64)
    rest = transfers.bytes % np.uint64(packet_bytes)
    last = np.where(rest > 0, rest, np.uint64(packet_bytes)).astype(np.uint64)
    rate_bps = np.array([round(host.rate_mbps * 1e6) for host in fabric.hosts], dtype=np.int64)

    def line(sizes: NDArray[np.uint64], hosts: NDArray[np.uint32]) -> _Times:
        """Return the time on the line of a host; that of each packet is rounded down."""
        full, rest = (part.astype(np.int64) for part in np.divmod(sizes, np.uint64(packet_bytes)))
        values, place = np.unique(rest, return_inverse=True)
        shorter = np.array([line_bytes(size, packet_bytes) for size in values.tolist()])
        packet_ps = 8 * 10**12 * line_bytes(packet_bytes, packet_bytes) // rate_bps[hosts]
        rest_ps = 8 * 10**12 * shorter[place] // rate_bps[hosts]
        return np.asarray(full * packet_ps + rest_ps, dtype=np.int64)

    def busiest(hosts: NDArray[np.uint32], beside: _Times) -> int:
        """Return the longest time of a line, and the least of the time beside of its transfers."""
        lasts = np.zeros(len(fabric.hosts), dtype=np.int64)
        np.add.at(lasts, hosts, line(transfers.bytes, hosts))
        least = np.full(len(fabric.hosts), np.iinfo(np.int64).max)
        np.minimum.at(least, hosts, beside)
        return int((lasts + least)[lasts > 0].max())

    sent = busiest(source, alone(last) - line(last, source))
    received = busiest(destination, alone(first) - line(first, destination))
    return max(_longest_chain(transfers, alone(transfers.bytes)), sent, received)


def _longest_chain(transfers: Transfers, lasts: _Times) -> int:
    starts = np.zeros(len(lasts), dtype=np.int64)
    ends = np.zeros(len(lasts), dtype=np.int64)
    order = np.argsort(transfers.waiting, kind="stable")
    waiting, needed = transfers.waiting[order], transfers.needed[order]
    limits = [*transfers.rounds, len(lasts)]
    edges = np.searchsorted(waiting, limits)
    for place, begin in enumerate(limits[:-1]):
        of_round = slice(edges[place], edges[place + 1])
        np.maximum.at(starts, waiting[of_round], ends[needed[of_round]])
        end = limits[place + 1]
        ends[begin:end] = starts[begin:end] + lasts[begin:end]
    return int(ends.max())
