"""The ping-pong experiment: latency and bandwidth of messages over size, beside UDP sockets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.experiment import (
    Common,
    Experiment,
    Presentation,
    Progress,
    Record,
)
from experiments.message_campaign import MessageCampaign, fabric_options

KINDS = ("message", "acknowledged", "udp")
LONGEST = {"message": 1 << 20, "acknowledged": 1 << 20, "udp": 1472}
"""Longest messages in bytes; a UDP datagram is not cut."""
SAMPLE_TYPES = {"row": "int32", "median_us": "double", "messages_per_s": "double"}
COLUMNS = ("kind", "bytes", "median_us", "p99_us", "messages_per_s", "mbit_per_s", "valid")


class PingPongCampaign(MessageCampaign):
    """Each kind over size."""

    def cases(self) -> list[tuple[str, int]]:
        """Return each kind and size, as often as they are repeated."""
        cases = [(kind, size) for size in self.sizes for kind in KINDS if size <= LONGEST[kind]]
        return cases * self.repeats

    def run(self, record: Record, progress: Progress) -> None:
        """Measure case after case."""
        from experiments import message_pair

        progress.begin(f"starting {self.fabric}")
        with message_pair.running(self.fabric, self.engine, self.hosts, progress.begin) as pair:
            switches = {"hosts": f"{pair.asker.name}-{pair.server.name}"}
            progress.advance()
            for number, (kind, size) in enumerate(self.cases()):
                progress.begin(f"{kind}, {size} bytes")
                pair.settle()
                latency, _ = pair.exchange(kind, size, self.count)
                rate, _ = pair.exchange(kind, size, 5 * self.count, "rate")
                row = {
                    "kind": kind,
                    "fabric": self.fabric,
                    "engine": self.engine,
                    **switches,
                    **latency,
                    "messages_per_s": rate["messages_per_s"],
                    "mbit_per_s": rate["mbit_per_s"],
                    **pair.judge(),
                }
                sample = {
                    "row": number,
                    "median_us": row["median_us"],
                    "messages_per_s": float(row["messages_per_s"]),
                }
                record(row, [sample])
                progress.advance()


def prepare(common: Common, options: Mapping[str, Any]) -> PingPongCampaign:
    """Check the settings; raises ExperimentError or another KnotlessError."""
    return PingPongCampaign.of(common, options, max(LONGEST.values()))


def present(
    run: Mapping[str, Any], _samples: Sequence[Mapping[str, Any]], _draw: bool
) -> Presentation:
    """Show a run."""
    from experiments.message_pair import lines

    return Presentation(
        title="Messages between two hosts",
        lead=(
            "Half a round trip between two processes on two hosts of an emulated fabric, and "
            "one-way rates with at most 64 messages under way; UDP sockets beside them."
        ),
        sentences=[],
        columns=COLUMNS,
        brief=COLUMNS,
        table=lines(run["rows"], COLUMNS),
    )


EXPERIMENT = Experiment(
    name="pingpong",
    summary="Latency and bandwidth of messages over size, beside UDP sockets.",
    example="sudo knotless run pingpong --fabric torus,4,4 --hosts h1,h11",
    options=fabric_options(),
    sample_types=SAMPLE_TYPES,
    prepare=prepare,
    present=present,
    identity=("kind", "bytes", "fabric", "engine", "hosts"),
    measures=("median_us", "messages_per_s", "mbit_per_s"),
)
