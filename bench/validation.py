"""Flow completion times beside those of csg-htsim, for the same traffic matrices.

csg-htsim is a packet-level simulator by others. Its runs are stored in ``references/csg-htsim``.
Each flow takes one path of those that its switches hash to; which one is not recorded, so that
several seeds of the hash of ECMP are compared with its one run.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from bench.support.entry import about, as_stored, machine_line, run_benchmark, table_option
from knotless.base.errors import KnotlessError
from knotless.base.files import read_text
from knotless.routing.plan import make_plan
from knotless.simulation import Buffers, Load, Scenario, simulate
from knotless.simulation.traffic import line_bytes
from knotless.topologies import load
from knotless.traffic.patterns.pattern import pattern_of

FOLDER = Path(__file__).resolve().parent / "references" / "csg-htsim"
SPEC = "fattree3,8,rate={rate:g},delay=1"
RATE_MBPS = 100_000.0
PAYLOAD_BYTES = 1500
HEADER_BYTES = 64
"""What csg-htsim adds to each packet, and the length of its acknowledgement of each packet."""
XOFF_BYTES, XON_BYTES = 15 * PAYLOAD_BYTES, 12 * PAYLOAD_BYTES
CONNECTION = re.compile(r"(\d+)->(\d+) id \d+ start 0 size (\d+)")
STATISTICS = {"min": 0.0, "p50": 50.0, "p95": 95.0, "p99": 99.0, "max": 100.0}
SHOWN = ("p50", "p95", "max")


@dataclass(frozen=True)
class Variant:
    """How a packet of csg-htsim is simulated: its bytes on the line, and the rate of lines."""

    name: str
    packet_line_bytes: int
    rate_mbps: float = RATE_MBPS


ALIGNED = Variant("aligned", PAYLOAD_BYTES + HEADER_BYTES)
VARIANTS = (
    ALIGNED,
    Variant("packets without their header", PAYLOAD_BYTES),
    Variant(
        "lines without the share of acknowledgements",
        PAYLOAD_BYTES + HEADER_BYTES,
        RATE_MBPS * (PAYLOAD_BYTES + HEADER_BYTES) / (PAYLOAD_BYTES + 2 * HEADER_BYTES),
    ),
)
MATRICES = {"i64": VARIANTS[:2], "p128": (ALIGNED, VARIANTS[2])}
"""Matrix -> its variants. Acknowledgements of an incast meet no data of it."""


@dataclass(frozen=True)
class Matrix:
    """A traffic matrix: (source, destination) of its flows, which all have the same size."""

    pairs: tuple[tuple[int, int], ...]
    flow_bytes: int


def read_matrix(name: str) -> Matrix:
    """Return a traffic matrix; raises KnotlessError."""
    lines = read_text(FOLDER / f"{name}.cm").splitlines()[2:]
    found = [CONNECTION.fullmatch(line.strip()) for line in lines if line.strip()]
    if not found or None in found:
        raise KnotlessError(f"{name}.cm: a line is no flow that begins at time 0")
    flows = [tuple(map(int, match.groups())) for match in found if match is not None]
    sizes = {size for _, _, size in flows}
    if len(sizes) != 1:
        raise KnotlessError(f"{name}.cm: flows of several sizes")
    return Matrix(tuple((source, to) for source, to, _ in flows), sizes.pop())


def reference_us(name: str) -> NDArray[np.float64]:
    """Return the completion times of csg-htsim."""
    lines = csv.DictReader(read_text(FOLDER / f"{name}-fct.csv").splitlines())
    return np.array([float(line["fct_us"]) for line in lines])


def completion_us(matrix: Matrix, variant: Variant, seed: int) -> NDArray[np.float64]:
    """Return the completion times of the flows of a matrix, until each is acknowledged."""
    fabric = load(SPEC.format(rate=variant.rate_mbps))
    # A packet that fills a line for as long as one of the reference does, overhead included.
    packet_bytes = variant.packet_line_bytes - (line_bytes(1000, 1000) - 1000)
    packets = -(-matrix.flow_bytes // PAYLOAD_BYTES)
    result = simulate(
        Scenario(
            make_plan(fabric, "fattree", multipath="ecmp", hash_seed=seed),
            pattern_of("matrix", "flows of a traffic matrix", matrix.pairs),
            Load("acknowledged", message_bytes=packets * packet_bytes),
            flow_control="pause",
            buffers=Buffers(xoff=XOFF_BYTES, xon=XON_BYTES),
            packet_bytes=packet_bytes,
            completions=True,
            seed=seed,
        )
    )
    done = result.completions
    if done is None or len(done.fct_ps) != len(matrix.pairs) or result.lost_frames:
        raise AssertionError(f"seed {seed}: not all flows completed")
    return done.fct_ps / 1e6


def statistics(times_us: NDArray[np.float64]) -> dict[str, float]:
    """Return percentiles of completion times."""
    return {
        key: round(float(np.percentile(times_us, share)), 3) for key, share in STATISTICS.items()
    }


def measure(seeds: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each matrix, variant and seed; those of the reference have no seed."""
    for name, variants in MATRICES.items():
        yield {"matrix": name, "variant": None, "seed": None, **statistics(reference_us(name))}
        matrix = read_matrix(name)
        for variant in variants:
            for seed in range(1, seeds + 1):
                times_us = completion_us(matrix, variant, seed)
                head = {"matrix": name, "variant": variant.name, "seed": seed}
                yield {**head, **statistics(times_us)}


def _cell(rows: Sequence[Mapping[str, Any]], key: str, reference: float) -> str:
    values = [row[key] for row in rows]
    middle = median(values)
    return f"{middle:.0f} ({min(values):.0f} to {max(values):.0f}), {middle / reference - 1:+.1%}"


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the table in docs/validation.md."""
    lines = [
        f"| matrix, us | {' | '.join(SHOWN)} |",
        "|---|" + "---|" * len(SHOWN),
    ]
    for name, variants in MATRICES.items():
        of_matrix = [row for row in run["rows"] if row["matrix"] == name]
        (reference,) = [row for row in of_matrix if row["variant"] is None]
        values = " | ".join(f"{reference[key]:.0f}" for key in SHOWN)
        lines.append(f"| `{name}.cm`, csg-htsim | {values} |")
        for variant in variants:
            rows = [row for row in of_matrix if row["variant"] == variant.name]
            cells = " | ".join(_cell(rows, key, reference[key]) for key in SHOWN)
            lines.append(f"| `{name}.cm`, {variant.name} | {cells} |")
    seeds = len({row["seed"] for row in run["rows"]} - {None})
    note = (
        f"Ours: median of {seeds} seeds of the hash (least to most), and its difference from"
        " the reference."
    )
    return [*lines, "", note, "", machine_line(run)]


@click.command()
@click.option(
    "--seeds",
    type=click.IntRange(1, 1000),
    default=100,
    show_default=True,
    help="Seeds of the hash of ECMP.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@table_option(table_of)
def main(seeds: int, as_json: bool) -> None:
    """Simulate the traffic matrices of csg-htsim, and compare completion times.

    Example: python -m bench.validation --json > docs/benchmarks/validation.json
    """
    begun = about()
    rows = list(measure(seeds))
    click.echo(
        as_stored(begun, rows=rows) if as_json else "\n".join(table_of({**begun, "rows": rows}))
    )


if __name__ == "__main__":
    run_benchmark(main)
