"""The cost of the live page to a running fabric: channel-hops per second with and without it.

The fabric, its traffic and the measurement are those of :mod:`bench.capacity`, at a link rate that
the machine does not keep up with, so that the emulator is at capacity. The page's server runs in
both windows of a pair or in none; a client reads its stream as a browser does. Which window comes
first alternates. ``server_cores`` is the processor time of the server, with that of the programs
that it starts, per second of real time.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click
import psutil

from bench.capacity import DELAY_US, Measurement, hops, measure, running
from bench.support.entry import about, as_stored, machine_line, run_benchmark, table_option
from knotless.emulation.names import Names
from knotless.emulation.network import EmulatedFabric
from knotless.emulation.runtime import require_root
from knotless.traffic import theory

PAIRS = 6
RATE_MBPS = 60.0
STOP_LIMIT_S = 10.0
READ_BYTES = 1 << 16
DEADLOCKS = 10
"""The number of deadlocks that the page has to show in Chromium."""


class Page:
    """The server of a fabric's page, and one client that reads all that it sends."""

    def __init__(self, names: Names) -> None:
        words = ("-m", "knotless", "web", "--name", names.name, "--port", "0", "--json")
        self._server = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE)
        self._bytes = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._server.stdout is not None  # noqa: S101
        url = json.loads(self._server.stdout.readline())["url"]
        # Only the stream costs anything again and again.
        with urllib.request.urlopen(f"{url}api/stream") as stream:  # noqa: S310 - our own server
            while text := stream.read1(READ_BYTES):
                self._bytes += len(text)

    @property
    def bytes_read(self) -> int:
        """The bytes that the client has received."""
        return self._bytes

    def processor_s(self) -> float:
        """Return the processor time of the server and of its children that have ended."""
        return sum(psutil.Process(self._server.pid).cpu_times()[:4])

    def close(self) -> None:
        """End both."""
        self._server.terminate()
        try:
            self._server.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
        self._reader.join(STOP_LIMIT_S)
        assert self._server.stdout is not None  # noqa: S101
        self._server.stdout.close()


@contextmanager
def page_of(names: Names) -> Iterator[Page]:
    """Run the page of a fabric until its client has received something."""
    page = Page(names)
    try:
        deadline = time.monotonic() + 2 * STOP_LIMIT_S
        while page.bytes_read == 0:
            if time.monotonic() > deadline:
                raise RuntimeError("the server of the page does not answer")
            time.sleep(0.05)
        yield page
    finally:
        page.close()


def window(lab: EmulatedFabric, rate_mbps: float, *, with_page: bool) -> dict[str, Any]:
    """Measure one window of traffic."""
    if not with_page:
        return _row(lab, measure(lab, rate_mbps, None))
    with page_of(lab.names) as page:
        began, used_s, received = time.monotonic(), page.processor_s(), page.bytes_read
        measurement = measure(lab, rate_mbps, None)
        passed_s = time.monotonic() - began
        return {
            **_row(lab, measurement),
            "server_cores": round((page.processor_s() - used_s) / passed_s, 4),
            "stream_bytes_per_s": round((page.bytes_read - received) / passed_s),
        }


def _row(lab: EmulatedFabric, measurement: Measurement) -> dict[str, Any]:
    """Return a window; ``hops_per_s`` are those of delivered frames per second of real time."""
    keys = ("delivered_mbps", "stretch", "valid", "lost_frames", "cpu")
    whole = measurement.as_json()
    datagrams_per_s = (
        measurement.delivered_mbps * measurement.hosts * 1e6 / 8 / theory.UDP_PAYLOAD_BYTES
    )
    per_s = {"hops_per_s": round(datagrams_per_s * hops(lab.fabric))}
    return {**per_s, **{key: whole[key] for key in keys}}


def summary(pairs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the mean ratio of a pair, with its 95 % interval (normal approximation)."""
    ratios = [pair["open"]["hops_per_s"] / pair["closed"]["hops_per_s"] for pair in pairs]
    mean = statistics.fmean(ratios)
    error = statistics.stdev(ratios) / math.sqrt(len(ratios)) if len(ratios) > 1 else math.nan
    cores = [pair["open"]["server_cores"] for pair in pairs]
    return {
        "ratio_mean": round(mean, 4),
        "ratio_from": round(mean - 1.96 * error, 4),
        "ratio_to": round(mean + 1.96 * error, 4),
        "server_cores_median": statistics.median(cores),
    }


def table_of(stored: Mapping[str, Any]) -> list[str]:
    """Return the lines of the table of a stored run."""
    lines = [
        "| pair | hops/s, page closed | page open | ratio | server, cores |",
        "|---|---|---|---|---|",
    ]
    for number, pair in enumerate(stored["pairs"], 1):
        shut, opened = pair["closed"], pair["open"]
        ratio = opened["hops_per_s"] / shut["hops_per_s"]
        lines.append(
            f"| {number} | {shut['hops_per_s']:,} | {opened['hops_per_s']:,}"
            f" | {ratio:.3f} | {opened['server_cores']:.3f} |"
        )
    means = stored["summary"]
    return [
        *lines,
        "",
        f"Mean ratio {means['ratio_mean']:.3f}, 95 % interval {means['ratio_from']:.3f} to"
        f" {means['ratio_to']:.3f}; server {means['server_cores_median']:.3f} cores."
        f" {machine_line(stored)}",
    ]


def browser_table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the table in docs/web.md of a run of ``tests/measure_page.py``."""
    lines = [
        "| Chromium | frames/s | frame ms | script ms | draw ms | CPU ms: page | compositing |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in run["replay"].items():
        used = row["processor_ms"]
        lines.append(
            f"| {name} | {row['frames_per_s']} | {row['frame_ms']} | {row['script_ms']}"
            f" | {row['draw_ms']} | {used['renderer']} | {used['gpu-process']} |"
        )
    live = run["live"]
    return [
        *lines,
        "",
        f"A deadlock is red {live['red_after_ms_median']} ms after its detection (median of"
        f" {DEADLOCKS}; longest {live['red_after_ms_longest']} ms). The server of 16 switches"
        f" takes {live['server_share_of_a_core']:.3f} of a core. {machine_line(run)}",
    ]


@click.command()
@click.option("--pairs", default=PAIRS, show_default=True, type=click.IntRange(min=2))
@click.option("--rate", "rate_mbps", default=RATE_MBPS, show_default=True, help="Mbit/s of links.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of the table.")
@table_option(table_of)
def main(pairs: int, rate_mbps: float, as_json: bool) -> None:
    """Measure a 4x4 torus at capacity with the page open and closed in turn.

    Example: sudo .venv/bin/python -m bench.page --json > docs/benchmarks/page.json
    """
    require_root()
    begun, measured = about(), []
    with running(1, "emulated", DELAY_US) as lab:
        measure(lab, rate_mbps, None)  # switches learn, caches fill
        for number in range(pairs):
            order = (False, True) if number % 2 == 0 else (True, False)
            windows = {shown: window(lab, rate_mbps, with_page=shown) for shown in order}
            measured.append({"closed": windows[False], "open": windows[True]})
            click.echo(f"pair {number + 1} of {pairs}: {json.dumps(measured[-1])}", err=True)
    run = {"rate_mbps": rate_mbps, "pairs": measured, "summary": summary(measured)}
    click.echo(as_stored(begun, **run) if as_json else "\n".join(table_of({**begun, **run})))


if __name__ == "__main__":
    run_benchmark(main)
