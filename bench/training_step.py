"""One training step of a GPT-like model on 128 hosts, in the simulator: speed, memory and results.

``experiments/examples/training_step.py`` writes the step in GOAL, and ``knotless simulate`` runs it
under PFC, without and with DCQCN. Both are commands of their own, of which the second is timed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from bench.support.entry import (
    about,
    as_stored,
    into_option,
    machine_line,
    merged_into,
    run_benchmark,
    table_option,
)
from knotless.base.errors import KnotlessError
from knotless.base.files import write_whole
from knotless.results.machine import machine

SCRIPT = Path(__file__).resolve().parents[1] / "experiments" / "examples" / "training_step.py"
SPEC = "fattree3,8"
SIMULATE = f"simulate {SPEC} --rate 100000 --delay 0.5 --flow-control pfc --xoff 600000 --json"
ECN = "ecn:\n  - {priorities: [0], kmin_bytes: 12500, kmax_bytes: 500000, pmax: 0.01}\n"
"""The thresholds of the paper on DCQCN for 40 Gbit/s, scaled to 100 Gbit/s."""
TRANSPORTS: Mapping[str, Sequence[str]] = {
    "none": (),
    "dcqcn": ("--transport", "dcqcn", "--switch", "ecn.yaml"),
}


@dataclass(frozen=True)
class Step:
    """The options of the script: 4 replicas of 4 stages of 8 tensor ranks."""

    layers: int
    micro_batches: int
    hidden: int = 4096
    sequence: int = 2048
    data: int = 4
    tensor: int = 8
    pipeline: int = 4

    @property
    def options(self) -> list[str]:
        """The options as words."""
        return [f"--{name.replace('_', '-')}={value}" for name, value in asdict(self).items()]


STEPS = {"full": Step(layers=32, micro_batches=3), "eighth": Step(layers=4, micro_batches=3)}
"""The full step has the layers, hidden size and sequence length of GPT-3 6.7B (Brown et al.:
Language models are few-shot learners, 2020, table 2.1) and about a billion packet-link-hops."""


def measure(size: str, transport: str, folder: Path) -> dict[str, Any]:
    """Run a step in a folder, and return its row."""
    step = STEPS[size]
    with (folder / "step.goal").open("wb") as goal:
        subprocess.run([sys.executable, str(SCRIPT), *step.options], check=True, stdout=goal)
    (folder / "ecn.yaml").write_text(ECN)
    words = [*SIMULATE.split(), "--goal", "step.goal", *TRANSPORTS[transport]]
    load, begun = machine()["load_1min"], time.perf_counter()
    with (folder / "result.json").open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "knotless", *words], cwd=folder, stdout=out
        )
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise KnotlessError(f"knotless {' '.join(words)}: exit status {process.returncode}")
    result = json.loads((folder / "result.json").read_text())
    kept = (
        *("packets", "packet_hops", "packet_hops_per_s", "wall_s", "setup_s", "events"),
        *("program_us", "messages", "pauses", "paused_us", "cnps", "lost_frames", "deadlock"),
        "result_sha256",
    )
    return {
        "size": size,
        "transport": transport,
        "step": asdict(step),
        "command": f"knotless {' '.join(words)}",
        "load_1min": load,
        "command_s": round(time.perf_counter() - begun, 1),
        "cpu_s": round(used.ru_utime + used.ru_stime, 1),
        "peak_mb": round(used.ru_maxrss / 1024),
        **{key: result[key] for key in kept},
    }


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the table in docs/performance.md."""
    rows = [
        "| {layers} layers, {micro_batches} micro-batches | {transport} | {packet_hops:,} |"
        " {wall_s:,.0f} | {speed:.1f} M | {peak_mb:,} MB | {program_us:,.0f} | {pauses:,} |".format(
            **row["step"], speed=row["packet_hops_per_s"] / 1e6, **row
        )
        for row in run["rows"]
    ]
    return [
        "| step | transport | packet-link-hops | seconds | hops/s | memory | step, us | pauses |",
        "|---" * 8 + "|",
        *rows,
        "",
        machine_line(run),
    ]


@click.command()
@click.option(
    "--size",
    type=click.Choice(list(STEPS)),
    default="eighth",
    show_default=True,
    help="The full step has about a billion packet-link-hops and takes minutes.",
)
@click.option(
    "--transport", type=click.Choice(list(TRANSPORTS)), help="One transport [default: each]."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@into_option
@table_option(table_of)
def main(size: str, transport: str | None, as_json: bool, into: Path | None) -> None:
    """Simulate a training step on 128 hosts.

    Example: python -m bench.training_step --size full --into docs/benchmarks/training-step.json
    """
    begun, rows = about(), []
    for name in [transport] if transport else TRANSPORTS:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measure(size, name, Path(folder)))
    if into is not None:
        kept = merged_into(into, rows, ("size", "transport"))
        write_whole(into, as_stored(begun, rows=kept) + "\n")
    elif as_json:
        click.echo(as_stored(begun, rows=rows))
    else:
        click.echo("\n".join(table_of({**begun, "rows": rows})))


if __name__ == "__main__":
    run_benchmark(main)
