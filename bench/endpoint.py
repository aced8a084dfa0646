"""Messages, UDP sockets and Open MPI over one veth pair."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from bench.support.entry import about, as_stored, machine_line, run_benchmark, table_option
from knotless.base.errors import EmulationError
from knotless.base.package import native
from knotless.emulation import namespaces
from knotless.emulation.runtime import require_root

PINGPONG = native("knotless-pingpong")
POLL_US = 100
"""The polling time of messages before they sleep (their default), also used for UDP."""
LIMIT_S = 60
MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
IPS = ("10.99.0.1", "10.99.0.2")


@dataclass(frozen=True)
class Kind:
    """A way to send messages: its name here and in knotless-pingpong, and its polling time."""

    name: str
    kind: str
    poll_us: int = 0


KINDS = (
    Kind("UDP sockets", "udp"),
    Kind("UDP sockets, polling before they sleep", "udp", POLL_US),
    Kind("messages", "message", POLL_US),
    Kind("messages, acknowledged", "acknowledged", POLL_US),
    Kind("messages without polling", "message"),
    Kind("Open MPI over TCP", "mpi"),
)
CASES = (("latency", 8, 20_000), ("latency", 1400, 20_000), ("rate", 8, 100_000))
_HEADS = {"latency": "{:,} bytes, us", "rate": "{:,} bytes, messages/s"}
_KEY = {"latency": "median_us", "rate": "messages_per_s"}


@dataclass(frozen=True)
class Row:
    """One kind in one case: the median over rounds, and the value of each round."""

    kind: str
    mode: str
    bytes: int
    value: float
    rounds: tuple[float, ...]


def on_core(side: int, command: list[str]) -> list[str]:
    """Return the command for one of the two processes, on its own core if there are two.

    Otherwise the scheduler sometimes puts both on one core, which changes all figures.
    """
    cores = sorted(os.sched_getaffinity(0))
    return ["taskset", "-c", str(cores[side]), *command] if len(cores) > 1 else command


@contextmanager
def pair() -> Iterator[tuple[str, str]]:
    """Yield the names of two namespaces whose interfaces ``e0`` are a veth pair."""
    secret = secrets.token_hex(3)
    names = (f"kp-{secret}-a", f"kp-{secret}-b")
    try:
        for name in names:
            namespaces.add(name)
        peer = f"type veth peer name e0 address {MACS[1]} netns {names[1]}"
        namespaces.ip_batch([f"link add e0 address {MACS[0]} {peer}"], namespace=names[0])
        for name, ip in zip(names, IPS, strict=True):
            up = ["link set e0 up", f"address add {ip}/24 dev e0"]
            namespaces.ip_batch(up, namespace=name)
        yield names
    finally:
        namespaces.remove(names)


def pingpong(names: tuple[str, str], kind: Kind, mode: str, size: int, count: int) -> float:
    """Run knotless-pingpong between namespaces; return one-way microseconds or messages/s."""
    own, peer = IPS if kind.kind == "udp" else MACS
    case = [str(size), str(count), mode, str(kind.poll_us)]
    serve = on_core(1, [str(PINGPONG), "serve", kind.kind, "e0", peer, own, *case])
    ask = on_core(0, [str(PINGPONG), "ask", kind.kind, "e0", own, peer, *case])
    with subprocess.Popen(
        namespaces.enter(names[1], serve), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as server:
        try:
            assert server.stdout is not None  # noqa: S101 - a pipe, as requested
            server.stdout.readline()
            done = subprocess.run(
                namespaces.enter(names[0], ask),
                capture_output=True,
                text=True,
                check=False,
                timeout=LIMIT_S,
            )
        finally:
            server.kill()
    return _value(done, mode)


def _value(done: subprocess.CompletedProcess[str], mode: str) -> float:
    if done.returncode != 0:
        raise EmulationError(f"ping-pong: {' '.join(done.stderr.split())[:300]}")
    return float(json.loads(done.stdout.splitlines()[-1])[_KEY[mode]])


def mpi_missing() -> str | None:
    """Return why Open MPI cannot be measured here, or None."""
    absent = [tool for tool in ("mpirun", "mpicc") if shutil.which(tool) is None]
    # Debian's openmpi-bin has mpicc, but not the header.
    if (
        not absent
        and subprocess.run(
            ["mpicc", "-E", "-x", "c", "-"],
            input=b"#include <mpi.h>\n",
            capture_output=True,
            check=False,
        ).returncode
    ):
        absent = ["mpi.h"]
    if absent:
        return f"{', '.join(absent)} not installed (Debian: openmpi-bin libopenmpi-dev)"
    return None


def mpi(names: tuple[str, str], program: Path, mode: str, size: int, count: int) -> float:
    """Run the same over MPI: one process in each namespace, connected by the veth pair only."""
    process = [str(program), str(size), str(count), mode]
    only = ["btl_tcp_if_include", "oob_tcp_if_include"]
    command = ["mpirun", "--mca", "pml", "ob1", "--mca", "btl", "tcp,self"]
    command += [word for key in only for word in ("--mca", key, "e0")]
    command += ["--oversubscribe", "--bind-to", "none", "-x", "PMIX_MCA_ptl_base_if_include"]
    command += ["-np", "1", *on_core(0, process)]
    command += [":", "-np", "1", *namespaces.enter(names[1], on_core(1, process))]
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(
        namespaces.enter(names[0], command),
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
        env={**os.environ, **root, "PMIX_MCA_ptl_base_if_include": "e0"},
    )
    return _value(done, mode)


def measure(rounds: int, scale: float) -> list[Row]:
    """Measure all kinds in turn, ``rounds`` times."""
    values_of: dict[tuple[str, str, int], list[float]] = {}
    without_mpi = mpi_missing()
    if without_mpi:
        click.echo(f"SKIPPED: Open MPI: {without_mpi}", err=True)
    with pair() as names, tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "mpi_pingpong"
        if not without_mpi:
            source = Path(__file__).parent / "support" / "mpi_pingpong.c"
            subprocess.run(["mpicc", "-O2", source, "-o", program], check=True)
        for _ in range(rounds):
            for mode, size, full in CASES:
                count = max(1000, int(full * scale))
                for kind in KINDS:
                    if kind.kind != "mpi":
                        value = pingpong(names, kind, mode, size, count)
                    elif without_mpi:
                        continue
                    else:
                        value = mpi(names, program, mode, size, count)
                    values_of.setdefault((kind.name, mode, size), []).append(value)
    return [
        Row(*key, statistics.median(values), tuple(values)) for key, values in values_of.items()
    ]


def ratios(rows: list[Row]) -> Mapping[str, float]:
    """Return how many times better messages are than the better of the UDP rows, by case."""
    better: dict[str, float] = {}
    for mode, size, _ in CASES:
        of_case = {row.kind: row.value for row in rows if (row.mode, row.bytes) == (mode, size)}
        udp = [value for kind, value in of_case.items() if kind.startswith("UDP")]
        value = of_case["messages"]
        ratio = min(udp) / value if mode == "latency" else value / max(udp)
        better[f"{mode} {size} B"] = ratio
    return better


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the table in docs/messages.md, and how messages compare with UDP."""
    lines = [
        "| | " + " | ".join(_HEADS[mode].format(size) for mode, size, _ in CASES) + " |",
        "|---" * (len(CASES) + 1) + "|",
    ]
    for kind in KINDS:
        values = {
            (row["mode"], row["bytes"]): row["value"]
            for row in run["rows"]
            if row["kind"] == kind.name
        }
        if values:
            cells = [
                f"{values[mode, size]:,.{0 if mode == 'rate' else 2}f}" for mode, size, _ in CASES
            ]
            lines.append(f"| {kind.name} | {' | '.join(cells)} |")
    rounds = min(len(row["rounds"]) for row in run["rows"])
    factors = ", ".join(f"{case}: {factor:.2f}" for case, factor in run["times_udp"].items())
    return [
        *lines,
        "",
        f"Medians of {rounds} rounds. The better of the UDP rows over messages (rate: messages over"
        f" the better UDP row): {factors}. {machine_line(run)}",
    ]


def _cell(row: Row) -> str:
    digits = 0 if row.mode == "rate" else 2
    low, high = min(row.rounds), max(row.rounds)
    return f"{row.value:,.{digits}f} ({low:,.{digits}f} to {high:,.{digits}f})"


@click.command()
@click.option("--rounds", default=5, show_default=True, help="Number of measurements of each case.")
@click.option("--quick", is_flag=True, help="A tenth of the messages, two rounds.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@table_option(table_of)
def main(rounds: int, quick: bool, as_json: bool) -> None:
    """Compare latency and rate of small messages between two processes, in one run.

    Example: python -m bench.endpoint --json > docs/benchmarks/endpoint.json
    """
    require_root()
    begun = about()
    rows = measure(2 if quick else rounds, 0.1 if quick else 1.0)
    if as_json:
        plain = [asdict(row) for row in rows]
        click.echo(as_stored(begun, rows=plain, times_udp=ratios(rows)))
        return
    table = Table(title="Two processes over one veth pair: median of rounds (minimum to maximum)")
    table.add_column("")
    for mode, size, _ in CASES:
        unit = "one way, us" if mode == "latency" else "messages/s"
        table.add_column(f"{size} B: {unit}", justify="right")
    for kind in KINDS:
        of_kind = [row for row in rows if row.kind == kind.name]
        cells = [_cell(row) for row in of_kind]
        if cells:
            table.add_row(kind.name, *cells)
    console = Console()
    console.print(table)
    for case, ratio in ratios(rows).items():
        console.print(f"messages, {case}: {ratio:.2f} times as good as the better UDP")


if __name__ == "__main__":
    run_benchmark(main)
