"""The ping-pong experiment: latency and bandwidth of messages over size, beside UDP sockets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from experiments.experiment import (
    Common,
    Experiment,
    ExperimentError,
    Presentation,
    Progress,
    Record,
)

KINDS = ("message", "acknowledged", "udp")
LONGEST = {"message": 1 << 20, "acknowledged": 1 << 20, "udp": 1472}
"""Longest messages in bytes; a UDP datagram is not cut."""
SAMPLE_TYPES = {"row": "int32", "median_us": "double", "messages_per_s": "double"}
COLUMNS = ("kind", "bytes", "median_us", "p99_us", "messages_per_s", "mbit_per_s", "valid")


@dataclass(frozen=True)
class PingPongCampaign:
    """Sizes and kinds, and the fabric."""

    fabric: str
    engine: str
    hosts: str | None
    sizes: Sequence[int]
    count: int
    repeats: int

    @property
    def parameters(self) -> dict[str, Any]:
        """Return what decides the run."""
        return {
            "fabric": self.fabric,
            "engine": self.engine,
            "hosts": self.hosts,
            "sizes": list(self.sizes),
            "count": self.count,
        }

    def cases(self) -> list[tuple[str, int]]:
        """Return each kind and size, as often as they are repeated."""
        cases = [(kind, size) for size in self.sizes for kind in KINDS if size <= LONGEST[kind]]
        return cases * self.repeats

    @property
    def steps(self) -> int:
        """The fabric, and each case."""
        return 1 + len(self.cases())

    def run(self, record: Record, progress: Progress) -> None:
        """Measure case after case."""
        from experiments.pingpong import run

        progress.begin(f"starting {self.fabric}")
        with run.running(self.fabric, self.engine, self.hosts, progress.begin) as pair:
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
    from experiments.pingpong import run
    from topologies import load

    if common.duration_s is not None or common.rate_mbps is not None:
        raise ExperimentError("--duration and --rate: say --count, and rates in the fabric")
    run.chosen(load(options["fabric"]), options["hosts"])
    sizes = run.sizes_of("8,1024" if common.quick else options["sizes"], max(LONGEST.values()))
    count = 20 if common.quick else options["count"]
    return PingPongCampaign(
        options["fabric"], options["engine"], options["hosts"], sizes, count, common.repeats
    )


def present(
    run: Mapping[str, Any], _samples: Sequence[Mapping[str, Any]], _draw: bool
) -> Presentation:
    """Show a run."""
    from experiments.pingpong.run import lines

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


def fabric_options() -> tuple[click.Option, ...]:
    """Return the options that say where; a new one for each experiment."""
    return (
        click.Option(["--fabric"], default="flat,2", show_default=True, metavar="SPEC"),
        click.Option(["--engine"], default="updown", show_default=True, help="Routing engine."),
        click.Option(["--hosts"], metavar="A,B", help="The two hosts (default: first and last)."),
        click.Option(
            ["--sizes"], default="8,64,256,1024,4096,16384", show_default=True, help="In bytes."
        ),
        click.Option(
            ["--count"],
            type=click.IntRange(10, 1_000_000),
            default=100,
            show_default=True,
            help="Round trips of each size.",
        ),
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
