"""The simulator's channels: numbers and settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knotless_core.simulator import headroom_bytes, transmission_ps
from routing.flow_control import of_link
from topologies.fabric import Fabric

PICOSECONDS_PER_US = 1_000_000
LONGEST_FRAME_BYTES = 1522
"""The longest tagged frame with its FCS; default buffers fit longer packets if there are any."""
MIN_BUFFER_BYTES = 16_384
DEFAULT_QUEUE_BYTES = 131_072
_MODES = {"off": 0, "pause": 1, "pfc": 2}

Numbers = NDArray[np.uint64]


@dataclass(frozen=True)
class Buffers:
    """Limits of every port, in bytes of frames; None is the emulator's default for the link.

    ``queue`` limits an egress queue without flow control. ``xoff`` and ``xon`` are the ingress
    buffer occupancies at which the sender is paused and resumed. ``headroom`` is the room above
    ``xoff``.
    """

    queue: int | None = None
    xoff: int | None = None
    xon: int | None = None
    headroom: int | None = None


@dataclass(frozen=True)
class ChannelTable:
    """All channels: first those that leave switches, by (switch, port), then those of hosts.

    ``names`` are ``SWITCH:PORT`` of the output port, or the sending host. ``hubs`` is true if the
    switches are repeater hubs. ``knotless_core/simulator.pyi`` describes the other columns.
    """

    names: tuple[str, ...]
    leaves: NDArray[np.int64]
    enters: NDArray[np.int64]
    back: NDArray[np.uint32]
    rate_bps: Numbers
    delay_ps: Numbers
    flow_control: NDArray[np.uint8]
    queue_bytes: Numbers
    xoff_bytes: Numbers
    xon_bytes: Numbers
    headroom_bytes: Numbers
    watchdog_ps: Numbers
    jitter_ps: Numbers
    hubs: bool = False

    @property
    def place(self) -> Mapping[str, int]:
        """Map each channel name to its number."""
        return {name: number for number, name in enumerate(self.names)}


@dataclass(frozen=True)
class _Line:
    """Properties shared by both channels of a link."""

    rate_bps: int
    delay_ps: int
    to_host: bool


def _settings(
    line: _Line, flow_control: str, buffers: Buffers, longest_frame_bytes: int
) -> tuple[int, ...]:
    """Return (flow control, queue, XOFF, XON, headroom, jitter): the emulator's defaults."""
    mode = _MODES[of_link(flow_control, to_host=line.to_host)]
    needed = headroom_bytes(line.rate_bps, line.delay_ps, longest_frame_bytes)
    usual = max(needed, MIN_BUFFER_BYTES)
    xon = buffers.xon
    if xon is None:
        xon = usual if buffers.xoff is None else buffers.xoff // 2
    xoff = 2 * xon if buffers.xoff is None else buffers.xoff
    queue = DEFAULT_QUEUE_BYTES if buffers.queue is None else buffers.queue
    headroom = usual if buffers.headroom is None else buffers.headroom
    # At a full tail-drop queue, equal senders synchronise: see the emulator.
    jitter = transmission_ps(longest_frame_bytes + 20, line.rate_bps) if mode == 0 else 0
    return (mode, queue, xoff, xon, headroom, jitter)


def channel_table(
    fabric: Fabric,
    flow_control: str,
    buffers: Buffers,
    *,
    longest_frame_bytes: int = LONGEST_FRAME_BYTES,
    watchdog_us: float | None = None,
) -> ChannelTable:
    """Number the channels of ``fabric`` as the emulator does, with their settings."""
    index = fabric.switch_index
    ends: dict[tuple[str, int], tuple[int, str, _Line]] = {}
    for link in fabric.links:
        line = _Line(_bps(link.rate_mbps), _ps(link.delay_us), to_host=False)
        ends[link.a, link.a_port] = (index[link.b], f"{link.b}:{link.b_port}", line)
        ends[link.b, link.b_port] = (index[link.a], f"{link.a}:{link.a_port}", line)
    hosts: list[tuple[int, str, str, _Line]] = []
    for number, host in enumerate(fabric.hosts):
        line = _Line(_bps(host.rate_mbps), _ps(host.delay_us), to_host=True)
        ends[host.switch, host.port] = (-1 - number, host.name, line)
        hosts.append((index[host.switch], f"{host.switch}:{host.port}", host.name, line))
    # A host may have the same name as a port, so the key contains the kind.
    rows = [
        (index[switch], enters, f"{switch}:{port}", far, line)
        for (switch, port), (enters, far, line) in sorted(
            ends.items(), key=lambda end: (index[end[0][0]], end[0][1])
        )
    ]
    rows += [(-1 - n, to, name, far, line) for n, (to, far, name, line) in enumerate(hosts)]
    place = {(row[0] < 0, row[2]): number for number, row in enumerate(rows)}
    back = [place[row[1] < 0, row[3]] for row in rows]
    known = {
        line: _settings(line, flow_control, buffers, longest_frame_bytes)
        for line in {row[4] for row in rows}
    }
    settings = np.array([known[row[4]] for row in rows], dtype=np.uint64).T.copy()
    watchdog_ps = 0 if watchdog_us is None else max(1, _ps(watchdog_us))
    return ChannelTable(
        names=tuple(row[2] for row in rows),
        leaves=np.array([row[0] for row in rows], dtype=np.int64),
        enters=np.array([row[1] for row in rows], dtype=np.int64),
        back=np.array(back, dtype=np.uint32),
        rate_bps=np.array([row[4].rate_bps for row in rows], dtype=np.uint64),
        delay_ps=np.array([row[4].delay_ps for row in rows], dtype=np.uint64),
        flow_control=settings[0].astype(np.uint8),
        queue_bytes=settings[1],
        xoff_bytes=settings[2],
        xon_bytes=settings[3],
        headroom_bytes=settings[4],
        watchdog_ps=np.full(len(rows), watchdog_ps, dtype=np.uint64),
        jitter_ps=settings[5],
        hubs=fabric.hub is not None,
    )


def _bps(rate_mbps: float) -> int:
    return round(rate_mbps * 1e6)


def _ps(time_us: float) -> int:
    return round(time_us * PICOSECONDS_PER_US)
