"""The ping-pong experiment: latency and bandwidth over message size, compared with UDP sockets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from knotless_experiments.framework.experiment import (
    EMULATION,
    SIMULATION,
    Common,
    Experiment,
)
from knotless_experiments.framework.routed import Measured
from knotless_experiments.studies.pingpong.columns import COLUMNS
from knotless_experiments.workloads.messages.campaign import MessageCampaign, fabric_options

if TYPE_CHECKING:
    from knotless_experiments.workloads.messages.pair import Exchanging

KINDS = ("message", "acknowledged", "udp")
LONGEST = {"message": 1 << 20, "acknowledged": 1 << 20, "udp": 1472}
"""Longest message in bytes; UDP datagrams are not fragmented."""


class PingPongCampaign(MessageCampaign):
    """Each kind of message, over size."""

    def cases(self) -> list[tuple[str, int]]:
        """Return each kind and size, for each repeat."""
        cases = [(kind, size) for size in self.sizes for kind in KINDS if size <= LONGEST[kind]]
        return cases * self.repeats

    def measure(self, pair: Exchanging, kind: str, size: int) -> Measured:
        """Measure how long messages of one kind take, and how many go by."""
        pair.settle()
        latency, _ = pair.exchange(kind, size, self.count)
        rate, _ = pair.exchange(kind, size, 5 * self.count, "rate")
        row = {
            "kind": kind,
            "on": self.on,
            "fabric": self.fabric,
            "engine": self.engine,
            "hosts": f"{pair.client.name}-{pair.server.name}",
            **latency,
            "messages_per_s": rate["messages_per_s"],
            "mbit_per_s": rate["mbit_per_s"],
            **pair.judge(),
        }
        times = {"median_us": row["median_us"], "messages_per_s": float(row["messages_per_s"])}
        return row, [times]


def prepare(common: Common, options: Mapping[str, Any]) -> PingPongCampaign:
    """Check the settings; raises ExperimentError or another KnotlessError."""
    return PingPongCampaign.from_options(common, options, max(LONGEST.values()))


EXPERIMENT = Experiment(
    name="pingpong",
    summary="Latency and bandwidth over message size, compared with UDP sockets.",
    example="sudo knotless run pingpong --fabric torus,4,4 --hosts h1,h11",
    options=fabric_options(),
    columns=COLUMNS,
    prepare=prepare,
    places=(EMULATION, SIMULATION),
)
