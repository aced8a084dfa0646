"""The ping-pong experiment: latency and bandwidth of messages over size, beside UDP sockets."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from experiments.framework.experiment import (
    EMULATION,
    SIMULATION,
    Common,
    Experiment,
    Progress,
    Record,
    shown_by,
)
from experiments.framework.routed import Measured, in_time
from experiments.workloads.messages.campaign import MessageCampaign, fabric_options

if TYPE_CHECKING:
    from experiments.workloads.messages.pair import Exchanging

KINDS = ("message", "acknowledged", "udp")
LONGEST = {"message": 1 << 20, "acknowledged": 1 << 20, "udp": 1472}
"""Longest messages in bytes; a UDP datagram is not cut."""
SAMPLE_TYPES = {"row": "int32", "median_us": "double", "messages_per_s": "double"}


class PingPongCampaign(MessageCampaign):
    """Each kind over size."""

    def cases(self) -> list[tuple[str, int]]:
        """Return each kind and size, as often as they are repeated."""
        cases = [(kind, size) for size in self.sizes for kind in KINDS if size <= LONGEST[kind]]
        return cases * self.repeats

    def run(self, record: Record, progress: Progress) -> None:
        """Measure case after case; again where the machine was too late for it."""
        progress.begin(f"starting {self.fabric}")
        with self.running(progress.begin) as pair:
            progress.advance()
            for number, (kind, size) in enumerate(self.cases()):
                progress.begin(f"{kind}, {size} bytes")
                row, times = in_time(partial(self._measure, pair, kind, size))
                record(row, [{"row": number, **line} for line in times])
                progress.advance()

    def _measure(self, pair: Exchanging, kind: str, size: int) -> Measured:
        pair.settle()
        latency, _ = pair.exchange(kind, size, self.count)
        rate, _ = pair.exchange(kind, size, 5 * self.count, "rate")
        row = {
            "kind": kind,
            "on": self.on,
            "fabric": self.fabric,
            "engine": self.engine,
            "hosts": f"{pair.asker.name}-{pair.server.name}",
            **latency,
            "messages_per_s": rate["messages_per_s"],
            "mbit_per_s": rate["mbit_per_s"],
            **pair.judge(),
        }
        times = {"median_us": row["median_us"], "messages_per_s": float(row["messages_per_s"])}
        return row, [times]


def prepare(common: Common, options: Mapping[str, Any]) -> PingPongCampaign:
    """Check the settings; raises ExperimentError or another KnotlessError."""
    return PingPongCampaign.of(common, options, max(LONGEST.values()))


EXPERIMENT = Experiment(
    name="pingpong",
    summary="Latency and bandwidth of messages over size, beside UDP sockets.",
    example="sudo knotless run pingpong --fabric torus,4,4 --hosts h1,h11",
    options=fabric_options(),
    sample_types=SAMPLE_TYPES,
    prepare=prepare,
    present=shown_by("experiments.studies.pingpong.show"),
    places=(EMULATION, SIMULATION),
    identity=("on", "kind", "bytes", "fabric", "engine", "hosts"),
    measures=("median_us", "messages_per_s", "mbit_per_s"),
)
