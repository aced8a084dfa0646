"""The result of a simulation, as metrics."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knotless._core.replay import Ends
from knotless._core.simulator import (
    DROP_CAUSES,
    GAP_BYTES,
    PAUSE_FRAME_BYTES,
    RETRY_COUNTS,
    Histogram,
    Report,
    wire_bytes,
)
from knotless.base.broadcasts import BROADCAST_LIMIT, over_limit
from knotless.simulation.channels import ChannelTable
from knotless.simulation.completion import Completions
from knotless.simulation.scenario import Scenario
from knotless.simulation.units import PICOSECONDS_PER_US, picoseconds
from knotless.simulation.verdict import times_given_up, verdict
from knotless.simulation.workload import CollectiveRun

_ARRAYS = (
    "flow_packets",
    "flow_bytes",
    "flow_messages",
    "flow_lost",
    "flow_latency_mean_ps",
    "flow_latency_min_ps",
    "flow_latency_max_ps",
    "flow_latency_p50_ps",
    "flow_latency_p99_ps",
    "channel_tx_frames",
    "channel_tx_bytes",
    "channel_rx_frames",
    "channel_pauses",
    "channel_paused_ps",
    "channel_queue_peak_bytes",
    "channel_ingress_peak_bytes",
)
_HASHED_AS = {"channel_ingress_peak_bytes": "channel_account_peak_bytes"}
"""Names that ``result_sha256`` has for arrays whose names have changed since."""
STORM_COUNTS = ("detected", "restored", "alerts")
"""What watchdogs count of each channel, as the emulator names it."""
_TRANSPORT_KEYS = ("transport", "cnps", "retransmitted_frames")
OPTIONAL_KEYS = (
    *("collective_us", "collective_bound_us", "collective_ratio"),
    *("fct_us", "slowdown"),
    *_TRANSPORT_KEYS,
)
"""Keys of a summary whose values are None without a workload, completions or a transport."""
_LATER_CAUSES = (BROADCAST_LIMIT, "loss", "ingress", "lossless_queue")
_NUMBERS = (
    "now_ps",
    "measured_ps",
    "events",
    "packet_hops",
    "in_network",
    "messages_under_way",
    "last_complete_ps",
)


@dataclass(frozen=True)
class Result:
    """The counters of a simulation, and its run time.

    ``flows`` are the (source, destination) names of the flows in ``report``; ``*`` is any host.
    ``ends`` are the end times of the processes of a program. ``bounds_us`` are the least times of
    the groups of a collective operation. ``one_core_because`` says why one core was used in place
    of several.
    """

    scenario: Scenario
    channels: ChannelTable
    flows: list[tuple[str, str]]
    report: Report
    ends: Ends | None
    wall_s: float
    setup_s: float
    completions: Completions | None = None
    bounds_us: tuple[float, ...] = ()
    cores: int = 1
    one_core_because: str | None = None

    @property
    def flows_mbps(self) -> NDArray[np.float64]:
        """Bytes of messages that arrived in the measured time, as Mbit/s per flow."""
        seconds = self.report.measured_ps / 1e12
        return self.report.flow_bytes * 8 / max(seconds, 1e-12) / 1e6

    @property
    def throughput_mbps(self) -> float:
        """The sum over all flows; without a duration, until the last message or packet arrived.

        Packets of a message that is still under way count, and so does the time until they arrived.
        """
        report, time_ps = self.report, self.report.measured_ps
        if self.scenario.run.duration_us is None:
            last_ps = max(report.last_complete_ps, report.last_arrival_ps)
            time_ps = last_ps - picoseconds(self.scenario.run.warm_up_us)
        return float(self.report.flow_bytes.sum()) * 8 / max(time_ps, 1) * 1e6

    @property
    def program_us(self) -> float | None:
        """The end of the last process of a recorded program; None without one or if one runs."""
        times_ps = [None] if self.ends is None else self.ends.times_ps()
        known_ps = [time for time in times_ps if time is not None]
        return max(known_ps) / PICOSECONDS_PER_US if len(known_ps) == len(times_ps) else None

    @property
    def bound_us(self) -> float | None:
        """The least time of a collective operation; None for other traffic, and on hubs."""
        return max(self.bounds_us, default=None)

    @property
    def lost_frames(self) -> int:
        """The number of data packets lost."""
        return int(self.report.flow_lost.sum())

    @property
    def deadlock(self) -> bool | None:
        """Whether a deadlock formed; None if links gave up, and lost frames, before any did."""
        if self.report.deadlock is not None:
            return True
        return None if times_given_up(self.report) else False

    @property
    def knot(self) -> list[str]:
        """The cycle of the first deadlock, as ``SWITCH:PORT/PRIORITY``; empty without one.

        A deadlock may end again: see ``report.deadlock.broken_ps``.
        """
        deadlock = self.report.deadlock
        return [] if deadlock is None else [self._name(*member) for member in deadlock.cycle]

    @property
    def knot_members(self) -> list[str]:
        """All channels of the first deadlock, also those that only wait for its cycle."""
        deadlock = self.report.deadlock
        return [] if deadlock is None else [self._name(*member) for member in deadlock.members]

    def _name(self, channel: int, priority: int) -> str:
        return f"{self.channels.names[channel]}/{priority}"

    @property
    def verdict(self) -> str:
        """Whether frames are stuck, lost or not delivered, in one sentence."""
        return verdict(self.report, self.knot)

    @property
    def problems(self) -> list[str]:
        """Hosts that have exceeded the limit of their broadcasts, a line for each."""
        over, share = self.report.channel_broadcasts_over, self.scenario.switching.broadcast_share
        return [
            over_limit(self.channels.names[channel], int(over[channel]), share)
            for channel in np.flatnonzero(over).tolist()
        ]

    @property
    def loads(self) -> NDArray[np.float64]:
        """The fraction of the measured time in which each channel carried frames, gaps included.

        It is at most 1. A frame counts in whole when its transmission begins.
        """
        wire = self.report.channel_tx_bytes + GAP_BYTES * self.report.channel_tx_frames
        wire = wire + wire_bytes(PAUSE_FRAME_BYTES) * self.report.channel_pause_frames
        capacity = self.channels.rate_bps.astype(float) * max(1, self.report.measured_ps) / 8e12
        return np.minimum(wire / capacity, 1.0, dtype=np.float64)

    @cached_property
    def result_sha256(self) -> str:
        """Hash of all counters: equal on every machine for the same scenario and seed."""
        digest, report = hashlib.sha256(), self.report
        for name in _NUMBERS:
            digest.update(f"{name}={getattr(self.report, name)};".encode())
        for name in _ARRAYS:
            _digest_array(digest, _HASHED_AS.get(name, name), getattr(self.report, name))
        for cause, drops in zip(DROP_CAUSES, self.report.channel_drops, strict=True):
            # Results without any have the hash that they had before there were these causes.
            if cause not in _LATER_CAUSES or drops.any():
                _digest_array(digest, cause, drops)
        for histogram in (self.report.latency, self.report.completion):
            _digest_array(digest, "floors", histogram.floors_ps)
            _digest_array(digest, "counts", histogram.counts)
        deadlock = self.report.deadlock
        if deadlock is not None:
            digest.update(repr((deadlock.since_ps, deadlock.members, deadlock.cycle)).encode())
            digest.update(repr(deadlock.frames).encode())
            if deadlock.broken_ps is not None:
                digest.update(f"broken={deadlock.broken_ps},{report.deadlocks};".encode())
        if report.station_collisions.size:
            _digest_array(digest, "collisions", report.station_collisions)
            _digest_array(digest, "given_up", report.station_given_up)
        if self.scenario.switching.switch_settings is not None:
            _digest_array(digest, "marked", report.channel_marked_frames)
            digest.update(repr(report.pools).encode())
            if report.channel_pause_frames.any():
                _digest_array(digest, "pause_frames", report.channel_pause_frames)
        if self.scenario.switching.retry is not None:
            for name, counted in zip(RETRY_COUNTS, report.channel_retries, strict=True):
                _digest_array(digest, name, counted)
            _digest_array(digest, "replay_peak_bytes", report.channel_replay_peak_bytes)
            _digest_array(digest, "replay_mean_bytes", report.channel_replay_mean_bytes)
        if self.scenario.endpoints.transport is not None:
            _digest_array(digest, "notifications", report.flow_notifications)
            _digest_array(digest, "retransmitted", report.flow_retransmitted)
        if self.scenario.endpoints.messages is not None:
            digest.update(f"answered={report.answered};".encode())
        return digest.hexdigest()

    def summary(self) -> dict[str, Any]:
        """Return the metrics that ``knotless simulate --json`` prints."""
        report = self.report
        drops = {
            cause: int(counted.sum())
            for cause, counted in zip(DROP_CAUSES, report.channel_drops, strict=True)
        }
        return {
            "fabric": self.scenario.plan.fabric.name,
            "engine": self.scenario.plan.engine,
            **self._multipath(),
            "pattern": self.scenario.demand.name,
            "flow_control": self.scenario.switching.flow_control,
            "seed": self.scenario.run.seed,
            "flows": len(self.flows),
            "packets": int(report.flow_packets.sum()),
            "packet_hops": report.packet_hops,
            "events": report.events,
            "wall_s": round(self.wall_s, 6),
            "setup_s": round(self.setup_s, 6),
            "cores": self.cores,
            "packet_hops_per_s": round(report.packet_hops / max(self.wall_s, 1e-9)),
            "simulated_us": report.now_ps / PICOSECONDS_PER_US,
            "measured_us": report.measured_ps / PICOSECONDS_PER_US,
            "complete_us": report.last_complete_ps / PICOSECONDS_PER_US,
            "program_us": self.program_us,
            **self._collective(),
            "fct_us": None if self.completions is None else self.completions.fct_us(),
            "slowdown": None if self.completions is None else self.completions.slowdowns(),
            "throughput_mbps": round(self.throughput_mbps, 6),
            "flow_mbps_min": round(float(self.flows_mbps.min()), 6),
            "flow_mbps_max": round(float(self.flows_mbps.max()), 6),
            "messages": int(report.flow_messages.sum()),
            "messages_under_way": report.messages_under_way,
            "in_network": report.in_network,
            "lost_frames": self.lost_frames,
            "drops": drops,
            "latency_us": _times(report.latency),
            "completion_us": _times(report.completion),
            "max_channel_load": round(float(self.loads.max()), 6),
            "pauses": int(report.channel_pauses.sum()),
            "paused_us": int(report.channel_paused_ps.sum()) / PICOSECONDS_PER_US,
            "queue_peak_bytes": int(report.channel_queue_peak_bytes.max()),
            "account_peak_bytes": int(report.channel_ingress_peak_bytes.max()),
            "marked_frames": int(report.channel_marked_frames.sum()),
            "pause_frames": int(report.channel_pause_frames.sum()),
            "storms": self.storms(),
            "pool_peaks": self.pool_peaks(),
            **self._transport(),
            **self._endpoints(),
            **_retry_of(self, slice(None)),
            "collisions": int(report.station_collisions.sum()),
            "given_up": int(report.station_given_up.sum()),
            "deadlock": self.deadlock,
            "deadlocks": report.deadlocks,
            "knot": self.knot,
            "knot_since_us": None
            if report.deadlock is None
            else report.deadlock.since_ps / PICOSECONDS_PER_US,
            "time_to_deadlock_us": None
            if report.deadlock is None
            else report.deadlock.since_ps / PICOSECONDS_PER_US,
            "knot_broken_us": None
            if report.deadlock is None or report.deadlock.broken_ps is None
            else report.deadlock.broken_ps / PICOSECONDS_PER_US,
            "knot_frames": self.knot_frames(),
            "result_sha256": self.result_sha256,
            "verdict": self.verdict,
            "problems": self.problems,
        }

    def _multipath(self) -> dict[str, str]:
        """Return the kind of multipath, and whether frames of a flow keep their order."""
        plan = self.scenario.plan
        if not plan.has_choices:
            return {}
        order = "kept" if plan.choice.binding.keeps_order else "not kept"
        return {"multipath": plan.multipath, "order": order}

    def _collective(self) -> dict[str, float | None]:
        """Return the time of a collective operation, its bound and their ratio."""
        is_collective = isinstance(self.scenario.demand.workload, CollectiveRun)
        time_us, bound_us = self.program_us if is_collective else None, self.bound_us
        ratio = None if time_us is None or not bound_us else round(time_us / bound_us, 6)
        return {
            "collective_us": time_us,
            "collective_bound_us": bound_us,
            "collective_ratio": ratio,
        }

    def _transport(self) -> dict[str, Any]:
        """Return the names of the transport, and what it has counted."""
        transport, report = self.scenario.endpoints.transport, self.report
        if transport is None:
            return dict.fromkeys(_TRANSPORT_KEYS)
        return {
            "transport": transport.names,
            "cnps": int(report.flow_notifications.sum()),
            "retransmitted_frames": int(report.flow_retransmitted.sum()),
        }

    def _endpoints(self) -> dict[str, Any]:
        """Return the name of the end points, and how many messages were sent for others."""
        messages = self.scenario.endpoints.messages
        if messages is None:
            return {}
        return {"endpoints": messages.name, "answered": self.report.answered}

    def storms(self) -> dict[str, int]:
        """Return how many storms watchdogs have detected, and how many are over or only counted."""
        counted = (int(count.sum()) for count in self.report.channel_storms)
        return dict(zip(STORM_COUNTS, counted, strict=True))

    def pool_peaks(self) -> dict[str, dict[str, Any]]:
        """Return, for each name of a pool, the switch whose pool was fullest, and how full."""
        peaks: dict[str, dict[str, Any]] = {}
        for row in by_pool(self):
            if row["peak_bytes"] > peaks.get(row["pool"], {"peak_bytes": -1})["peak_bytes"]:
                peaks[row["pool"]] = row
        return {
            name: {key: value for key, value in row.items() if key != "pool"}
            for name, row in sorted(peaks.items())
        }

    def knot_frames(self) -> dict[str, dict[str, int]]:
        """Return, for each channel of the knot, the number of waiting frames of each flow."""
        deadlock = self.report.deadlock
        if deadlock is None:
            return {}
        hosts = [host.name for host in self.scenario.plan.fabric.hosts]
        waiting: dict[str, dict[str, int]] = {}
        for member, frames in zip(deadlock.cycle, deadlock.frames, strict=True):
            by_flow: dict[str, int] = {}
            for source, to in frames:
                flow = f"{hosts[source]}>{hosts[to]}"
                by_flow[flow] = by_flow.get(flow, 0) + 1
            waiting[self._name(*member)] = dict(sorted(by_flow.items()))
        return waiting


def _times(histogram: Histogram) -> dict[str, float]:
    return {
        "mean": round(histogram.mean_ps / PICOSECONDS_PER_US, 6),
        "min": histogram.min_ps / PICOSECONDS_PER_US,
        "p50": histogram.p50_ps / PICOSECONDS_PER_US,
        "p99": histogram.p99_ps / PICOSECONDS_PER_US,
        "max": histogram.max_ps / PICOSECONDS_PER_US,
    }


def _digest_array(digest: Any, name: str, values: NDArray[Any]) -> None:
    # Little-endian on every machine.
    digest.update(f"{name}:{values.shape};".encode())
    digest.update(values.astype(values.dtype.newbyteorder("<")).tobytes())


def by_flow(result: Result) -> list[dict[str, Any]]:
    """Return the metrics of each flow; flows of a host to all others are combined."""
    report, rates = result.report, result.flows_mbps
    return [
        {
            "source": source,
            "destination": destination,
            "packets": int(report.flow_packets[flow]),
            "bytes": int(report.flow_bytes[flow]),
            "messages": int(report.flow_messages[flow]),
            "lost_frames": int(report.flow_lost[flow]),
            "marked_packets": int(report.flow_marked[flow]),
            "cnps": int(report.flow_notifications[flow]),
            "retransmitted_frames": int(report.flow_retransmitted[flow]),
            "throughput_mbps": round(float(rates[flow]), 6),
            "latency_us": {
                "mean": float(report.flow_latency_mean_ps[flow]) / PICOSECONDS_PER_US,
                "min": int(report.flow_latency_min_ps[flow]) / PICOSECONDS_PER_US,
                "p50": int(report.flow_latency_p50_ps[flow]) / PICOSECONDS_PER_US,
                "p99": int(report.flow_latency_p99_ps[flow]) / PICOSECONDS_PER_US,
                "max": int(report.flow_latency_max_ps[flow]) / PICOSECONDS_PER_US,
            },
        }
        for flow, (source, destination) in enumerate(result.flows)
    ]


def by_message(result: Result) -> list[dict[str, Any]]:
    """Return each message that has completed, if that was recorded; else an empty list."""
    hosts = [host.name for host in result.scenario.plan.fabric.hosts]
    return [] if result.completions is None else result.completions.rows(hosts)


def by_channel(result: Result) -> list[dict[str, Any]]:
    """Return the counters of each channel, with the names of the emulator's counters."""
    report, loads = result.report, result.loads
    storms = report.channel_storms
    return [
        {
            "channel": name,
            "load": round(float(loads[channel]), 6),
            "tx_frames": int(report.channel_tx_frames[channel]),
            "tx_bytes": int(report.channel_tx_bytes[channel]),
            "rx_frames": int(report.channel_rx_frames[channel]),
            "pauses": int(report.channel_pauses[channel]),
            "paused_us": int(report.channel_paused_ps[channel]) / PICOSECONDS_PER_US,
            "queue_peak_bytes": int(report.channel_queue_peak_bytes[channel]),
            "account_peak_bytes": int(report.channel_ingress_peak_bytes[channel]),
            "marked_frames": int(report.channel_marked_frames[channel].sum()),
            "drops": {
                cause: int(drops[channel])
                for cause, drops in zip(DROP_CAUSES, report.channel_drops, strict=True)
            },
            "storms": {
                kind: int(counted[channel])
                for kind, counted in zip(STORM_COUNTS, storms, strict=True)
            },
            **_retry_of(result, slice(channel, channel + 1)),
        }
        for channel, name in enumerate(result.channels.names)
    ]


def _retry_of(result: Result, channels: slice) -> dict[str, Any]:
    """Return what links that repeat frames have counted on channels, and the fullest buffers."""
    if result.scenario.switching.retry is None:
        return {}
    report = result.report
    counted = zip(RETRY_COUNTS, report.channel_retries, strict=True)
    return {
        "retry": {
            **{name: int(counts[channels].sum()) for name, counts in counted},
            "replay_peak_bytes": int(report.channel_replay_peak_bytes[channels].max()),
            "replay_mean_bytes": round(float(report.channel_replay_mean_bytes[channels].max()), 3),
        }
    }


def by_pool(result: Result) -> list[dict[str, Any]]:
    """Return how full the pools of switches have been; none without settings of switches."""
    switches = result.channels.switches
    return [
        {
            "switch": switches[switch],
            "pool": name,
            "peak_bytes": peak,
            "headroom_peak_bytes": headroom_peak,
        }
        for switch, name, peak, headroom_peak in result.report.pools
    ]
