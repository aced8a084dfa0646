"""The figures of each flow and channel of a result, for files."""

from __future__ import annotations

from typing import Any

from knotless._core.simulator import DROP_CAUSES
from knotless.simulation.channels import PICOSECONDS_PER_US
from knotless.simulation.result import Result


def by_flow(result: Result) -> list[dict[str, Any]]:
    """Return the figures of each flow; flows of a host to all others are combined."""
    report, rates = result.report, result.flows_mbps
    return [
        {
            "source": source,
            "destination": destination,
            "packets": int(report.flow_packets[flow]),
            "bytes": int(report.flow_bytes[flow]),
            "messages": int(report.flow_messages[flow]),
            "lost_frames": int(report.flow_lost[flow]),
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


def by_channel(result: Result) -> list[dict[str, Any]]:
    """Return the counters of each channel, with the names of the emulator's counters."""
    report, loads = result.report, result.loads
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
            "drops": {
                cause: int(drops[channel])
                for cause, drops in zip(DROP_CAUSES, report.channel_drops, strict=True)
            },
        }
        for channel, name in enumerate(result.channels.names)
    ]
