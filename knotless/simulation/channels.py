"""The simulator's channels: numbers and settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knotless._core import simulator
from knotless.base.flow_control import FlowControl
from knotless.topologies.fabric import Fabric

PICOSECONDS_PER_US = 1_000_000

Numbers = NDArray[np.uint64]


@dataclass(frozen=True)
class Buffers:
    """Limits of every port, in bytes of frames; None is the default for the link.

    ``queue`` limits an egress queue without flow control. ``xoff`` and ``xon`` are the ingress
    occupancies at which the sender is paused and resumed; ``headroom`` is the room above ``xoff``.
    """

    queue: int | None = None
    xoff: int | None = None
    xon: int | None = None
    headroom: int | None = None


@dataclass(frozen=True)
class ChannelTable:
    """All channels: first those that leave switches, by (switch, port), then those of hosts.

    ``names`` are ``SWITCH:PORT`` of the output port, or the sending host. ``hubs`` is true if the
    switches are repeater hubs. ``knotless._core/simulator.pyi`` describes the other columns.
    """

    names: tuple[str, ...]
    leaves: NDArray[np.int64]
    ports: NDArray[np.uint32]
    enters: NDArray[np.int64]
    back: NDArray[np.uint32]
    rate_bps: Numbers
    delay_ps: Numbers
    flow_control: FlowControl
    queue_bytes: Numbers
    xoff_bytes: Numbers
    xon_bytes: Numbers
    headroom_bytes: Numbers
    watchdog_ps: Numbers
    restoration_ps: Numbers
    jitter_ps: Numbers
    broadcast_share: float = simulator.BROADCAST_SHARE
    broadcast_burst_bytes: int = simulator.BROADCAST_BURST_BYTES
    hubs: bool = False
    forward_in_storms: bool = False

    @property
    def place(self) -> Mapping[str, int]:
        """Map each channel name to its number."""
        return {name: number for number, name in enumerate(self.names)}

    def at_ports(self, switches: NDArray[Any], ports: NDArray[Any]) -> NDArray[np.int64]:
        """Return the number of the channel that leaves each (index of a switch, port)."""
        of_switches = self.leaves >= 0
        ends = _ends(self.leaves[of_switches], self.ports[of_switches])
        return np.searchsorted(ends, _ends(switches, ports))


def channel_table(
    fabric: Fabric,
    flow_control: FlowControl,
    buffers: Buffers,
    *,
    packet_bytes: int = 1500,
    watchdog_us: float | None = None,
    watchdog_restore_us: float | None = None,
    watchdog_action: str = "drop",
    broadcast_share: float = simulator.BROADCAST_SHARE,
    broadcast_burst_bytes: int = simulator.BROADCAST_BURST_BYTES,
) -> ChannelTable:
    """Number the channels of ``fabric`` as the emulator does, and set them as it does.

    The order and the defaults are the Rust core's. Default buffers have room for packets of
    ``packet_bytes`` bytes; an XON limit that is not below XOFF raises ValueError.
    """
    index, hosts = fabric.switch_index, fabric.hosts
    links = [(index[e.a], e.a_port, index[e.b], e.b_port) for e in fabric.links]
    ends = [(index[host.switch], host.port) for host in hosts]
    leaves, ports, enters, back, link = simulator.number_channels(
        np.array(links, dtype=np.uint32).reshape(-1, 4),
        np.array(ends, dtype=np.uint32).reshape(-1, 2),
    )
    lines = [(line.rate_mbps, line.delay_us) for line in fabric.links]
    lines += [(host.rate_mbps, host.delay_us) for host in hosts]
    rate_bps = np.array([_bps(rate_mbps) for rate_mbps, _ in lines], dtype=np.uint64)[link]
    delay_ps = np.array([picoseconds(delay_us) for _, delay_us in lines], dtype=np.uint64)[link]
    queue, xoff, xon, headroom, jitter = simulator.channel_settings(
        rate_bps,
        delay_ps,
        link >= len(fabric.links),
        flow_control=flow_control,
        packet_bytes=packet_bytes,
        **vars(buffers),
    )
    sources = zip(leaves.tolist(), ports.tolist(), strict=True)
    watchdog_ps = 0 if watchdog_us is None else max(1, picoseconds(watchdog_us))
    restoration_ps = (
        2 * watchdog_ps if watchdog_restore_us is None else picoseconds(watchdog_restore_us)
    )
    return ChannelTable(
        names=tuple(
            hosts[-1 - switch].name if switch < 0 else f"{fabric.switches[switch].name}:{port}"
            for switch, port in sources
        ),
        leaves=leaves,
        ports=ports,
        enters=enters,
        back=back,
        rate_bps=rate_bps,
        delay_ps=delay_ps,
        flow_control=flow_control,
        queue_bytes=queue,
        xoff_bytes=xoff,
        xon_bytes=xon,
        headroom_bytes=headroom,
        # A watchdog is a function of switches: a host's interface waits.
        watchdog_ps=np.where(leaves >= 0, watchdog_ps, 0).astype(np.uint64),
        restoration_ps=np.full(len(leaves), restoration_ps, dtype=np.uint64),
        jitter_ps=jitter,
        broadcast_share=broadcast_share,
        broadcast_burst_bytes=broadcast_burst_bytes,
        hubs=fabric.hub is not None,
        forward_in_storms=watchdog_action == "forward",
    )


def _ends(switches: NDArray[Any], ports: NDArray[Any]) -> NDArray[np.int64]:
    """Return a number for each (switch, port), in their order."""
    return switches.astype(np.int64) << 32 | ports.astype(np.int64)


def _bps(rate_mbps: float) -> int:
    return round(rate_mbps * 1e6)


def picoseconds(time_us: float) -> int:
    """Return a time in picoseconds."""
    return round(time_us * PICOSECONDS_PER_US)
