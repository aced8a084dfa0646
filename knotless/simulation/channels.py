"""The simulator's channels: their numbers and settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from knotless._core import simulator
from knotless.base.flow_control import FlowControl, on_links
from knotless.simulation.settings import NO_PAUSE_LIMIT, PauseLimit, Switching
from knotless.simulation.units import picoseconds
from knotless.topologies.fabric import Fabric, Host, Link

if TYPE_CHECKING:
    from knotless.base.switch_settings import SwitchFile


Numbers = NDArray[np.uint64]


@dataclass(frozen=True)
class ChannelTable:
    """All channels: first those that leave switches, by (switch, port), then those of hosts.

    ``names`` are ``SWITCH:PORT`` of the output port, or the sending host. ``hubs`` is true if the
    switches are repeater hubs. ``switches`` are the names of the switches.
    ``knotless._core/simulator.pyi`` describes the other columns.
    """

    names: tuple[str, ...]
    leaves: NDArray[np.int64]
    ports: NDArray[np.uint32]
    enters: NDArray[np.int64]
    back: NDArray[np.uint32]
    rate_bps: Numbers
    delay_ps: Numbers
    flow_control: str
    queue_bytes: Numbers
    xoff_bytes: Numbers
    xon_bytes: Numbers
    headroom_bytes: Numbers
    credit_bytes: Numbers
    credit_unit_bytes: NDArray[np.uint32]
    watchdog_ps: Numbers
    restoration_ps: Numbers
    jitter_ps: Numbers
    loss: NDArray[np.float64]
    broadcast_share: float = simulator.BROADCAST_SHARE
    broadcast_burst_bytes: int = simulator.BROADCAST_BURST_BYTES
    pause_limit: tuple[int, int] | None = None
    hubs: bool = False
    watchdog_action: str = "drop"
    line_errors: tuple[float, int] = (0.0, 1)
    retry: int | None = None
    switches: tuple[str, ...] = ()
    switch_settings: str | None = None

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
    switching: Switching,
    *,
    packet_bytes: int = 1500,
    pause_limit: PauseLimit = NO_PAUSE_LIMIT,
) -> ChannelTable:
    """Number the channels of ``fabric`` as the emulator does, and set them as it does.

    The order and the defaults are the Rust core's. Default buffers have room for packets of
    ``packet_bytes`` bytes; an XON limit that is not below XOFF, and credit that a packet can never
    get, raise ValueError.
    """
    index, hosts = fabric.switch_index, fabric.hosts
    links = [(index[e.a], e.a_port, index[e.b], e.b_port) for e in fabric.links]
    ends = [(index[host.switch], host.port) for host in hosts]
    leaves, ports, enters, back, link = simulator.number_channels(
        np.array(links, dtype=np.uint32).reshape(-1, 4),
        np.array(ends, dtype=np.uint32).reshape(-1, 2),
    )
    lines: list[Link | Host] = [*fabric.links, *hosts]
    rate_bps = np.array([_bps(line.rate_mbps) for line in lines], dtype=np.uint64)[link]
    delay_ps = np.array([picoseconds(line.delay_us) for line in lines], dtype=np.uint64)[link]
    jitter_ps = np.array([picoseconds(line.jitter_us) for line in lines], dtype=np.uint64)[link]
    queue, xoff, xon, headroom, credit, credit_unit, jitter = simulator.channel_settings(
        rate_bps,
        delay_ps,
        jitter_ps,
        link >= len(fabric.links),
        flow_control=on_links(switching.flow_control),
        packet_bytes=packet_bytes,
        **vars(switching.buffers) | {"credit_unit": credit_unit_bytes(switching, packet_bytes)},
    )
    if switching.retry is not None and switching.buffers.headroom is None:
        # After a pause as much may arrive as a replay buffer holds: a frame more than without one.
        longest = simulator.longest_frame_bytes(packet_bytes)
        headroom = headroom + np.uint64(longest)
    switch_settings = switching.switch_settings
    if switch_settings is not None and switching.buffers.headroom is None:
        names = [switch.name for switch in fabric.switches]
        headroom = headroom + np.array(
            [
                pause_frame_headroom(switch_settings, names[switch], int(rate), packet_bytes)
                if switch >= 0
                else 0
                for switch, rate in zip(enters.tolist(), rate_bps.tolist(), strict=True)
            ],
            dtype=np.uint64,
        )
    watchdog_ps, restoration_ps = _watchdog_ps(switching)
    return ChannelTable(
        names=tuple(
            hosts[-1 - switch].name if switch < 0 else f"{fabric.switches[switch].name}:{port}"
            for switch, port in zip(leaves.tolist(), ports.tolist(), strict=True)
        ),
        leaves=leaves,
        ports=ports,
        enters=enters,
        back=back,
        rate_bps=rate_bps,
        delay_ps=delay_ps,
        flow_control=on_links(switching.flow_control),
        queue_bytes=queue,
        xoff_bytes=xoff,
        xon_bytes=xon,
        headroom_bytes=headroom,
        credit_bytes=credit,
        credit_unit_bytes=credit_unit,
        # A watchdog is a function of switches: a host's interface waits.
        watchdog_ps=np.where(leaves >= 0, watchdog_ps, 0).astype(np.uint64),
        restoration_ps=np.full(len(leaves), restoration_ps, dtype=np.uint64),
        jitter_ps=jitter,
        loss=np.array([line.loss for line in lines], dtype=np.float64)[link],
        broadcast_share=switching.broadcast_share,
        broadcast_burst_bytes=switching.broadcast_burst_bytes,
        pause_limit=_pause_limit(pause_limit),
        hubs=fabric.hub is not None,
        watchdog_action=switching.watchdog_action,
        line_errors=(switching.line_errors, switching.errors_in_a_row),
        retry=switching.retry,
        switches=tuple(switch.name for switch in fabric.switches),
        switch_settings=None
        if switch_settings is None
        else json.dumps(switch_settings.for_model()),
    )


def credit_unit_bytes(switching: Switching, packet_bytes: int) -> int:
    """Return the bytes of a unit of credit: with bubbles, by default a longest frame."""
    has_bubbles = switching.flow_control is FlowControl.BUBBLE
    default = simulator.longest_frame_bytes(packet_bytes) if has_bubbles else None
    return switching.buffers.credit_unit or default or simulator.CREDIT_UNIT_BYTES


def pause_frame_headroom(
    settings: SwitchFile, switch: str, rate_bps: int, packet_bytes: int
) -> int:
    """Return the bytes of headroom that a port of a switch needs for its pause frames."""
    frames = settings.of_switch(switch).pause_frames
    if frames is None:
        return 0
    longest = simulator.longest_frame_bytes(packet_bytes)
    return simulator.pause_frame_headroom_bytes(rate_bps, picoseconds(frames.response_us), longest)


def _watchdog_ps(switching: Switching) -> tuple[int, int]:
    """Return the detection and the restoration time of watchdogs; a detection time of 0 is none."""
    detection_us, restoration_us = switching.watchdog_us, switching.watchdog_restore_us
    detection_ps = 0 if detection_us is None else max(1, picoseconds(detection_us))
    return detection_ps, 2 * detection_ps if restoration_us is None else picoseconds(restoration_us)


def _pause_limit(limit: PauseLimit) -> tuple[int, int] | None:
    """Return the limit as the simulator takes it, permille and time; None if there is none."""
    permille = round(1000 * limit.share)
    return (permille, picoseconds(limit.longest_us)) if permille < 1000 else None


def _ends(switches: NDArray[Any], ports: NDArray[Any]) -> NDArray[np.int64]:
    """Return a number for each (switch, port), in their order."""
    return switches.astype(np.int64) << 32 | ports.astype(np.int64)


def _bps(rate_mbps: float) -> int:
    return round(rate_mbps * 1e6)
