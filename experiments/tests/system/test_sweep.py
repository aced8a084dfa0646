"""``knotless sweep`` with its processes: results, Ctrl-C, who may connect."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest

from experiments.tests.support.sweep_grid import SMALL, invoke, write
from knotless_experiments.sweeps import grid
from knotless_experiments.sweeps.figures import ERROR
from knotless_experiments.sweeps.plot import axes_of, lines_of
from tests.support import REPOSITORY
from tests.support.waiting import HANG_S, Limit

EXAMPLE = REPOSITORY / "experiments" / "sweeps" / "torus-load.yaml"


def start(file: Path, out: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "knotless", "sweep", str(file), "--out", str(out), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def parts(out: Path) -> list[str]:
    return sorted(path.name for path in out.glob("parts/[0-9]*"))


def until_parts(process: subprocess.Popen[str], out: Path, count: int) -> None:
    limit = Limit()
    while len(parts(out)) < count:
        assert process.poll() is None, process.communicate()
        limit.check(f"{count} parts")
        time.sleep(0.02)


@pytest.mark.deep
def test_one_worker_and_two_give_the_same_bytes(tmp_path: Path) -> None:
    file, samples = write(tmp_path, SMALL), []
    for workers in (1, 2):
        out = tmp_path / str(workers)
        done = invoke(file, "--out", out, "--workers", str(workers))
        assert (done.exit_code, done.stderr) == (0, f"8 points; 8 to run on {workers} processes\n")
        samples.append((out / "samples.parquet").read_bytes())
    assert samples[0] == samples[1]
    rows = pq.read_table(tmp_path / "1" / "samples.parquet").to_pylist()
    assert [row["index"] for row in rows] == list(range(8))
    assert len({row["result_sha256"] for row in rows}) == 8
    assert all(row["packets"] > 0 and row[ERROR] is None for row in rows)


def test_ctrl_c_and_kill_lose_no_finished_point(tmp_path: Path) -> None:
    file = write(tmp_path, SMALL.replace("2000", "8000000").replace("[1, 2]", "[1, 2, 3, 4, 5]"))
    out = tmp_path / "out"
    # As from a terminal: the signal goes to all processes.
    first = start(file, out, "--workers", "2")
    until_parts(first, out, 2)
    os.killpg(first.pid, signal.SIGINT)
    _, errors = first.communicate(timeout=HANG_S)
    assert first.returncode == 130, errors
    assert errors.strip().splitlines()[1:] in (
        ["", "knotless: interrupted"],
        ["knotless: interrupted"],
    )
    kept = {name: (out / "parts" / name).stat().st_mtime_ns for name in parts(out)}
    assert json.loads((out / "run.json").read_text())["status"] == "incomplete"

    second = start(file, out, "--workers", "2")
    until_parts(second, out, len(kept) + 1)
    children = psutil.Process(second.pid).children(recursive=True)
    assert children
    second.kill()
    _, errors = second.communicate(timeout=HANG_S)
    assert f"20 points, {len(kept)} of them done before" in errors
    # The workers end with it.
    _, alive = psutil.wait_procs(children, timeout=HANG_S)
    assert alive == []

    before = len(parts(out))
    done = invoke(file, "--out", out, "--workers", "1", "--json")
    assert f"20 points, {before} of them done before; {20 - before} to run" in done.stderr
    assert done.exit_code == 0
    printed = json.loads(done.stdout)
    assert (printed["points"], printed["failed"]) == (20, 0)
    assert {name: (out / "parts" / name).stat().st_mtime_ns for name in kept} == kept
    fresh = tmp_path / "fresh"
    assert invoke(file, "--out", fresh, "--workers", "2").exit_code == 0
    assert (fresh / "samples.parquet").read_bytes() == (out / "samples.parquet").read_bytes()


@pytest.mark.deep
def test_workers_listen_on_the_loopback_interface_alone(tmp_path: Path) -> None:
    file = write(tmp_path, SMALL.replace("2000", "400000"))
    process = start(file, tmp_path / "out", "--workers", "1")
    until_parts(process, tmp_path / "out", 1)
    mine = psutil.Process(process.pid)
    heard = [
        connection.laddr.ip
        for each in (mine, *mine.children(recursive=True))
        for connection in each.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    process.kill()
    process.communicate()
    assert heard
    assert set(heard) == {"127.0.0.1"}


def test_a_point_that_fails_is_a_row_and_the_exit_status(tmp_path: Path) -> None:
    text = "do: analyse\ngrid: {fabric: 'mesh,3,3', engine: [dor, lsft], pattern: transpose}"
    out = tmp_path / "out"
    done = invoke(write(tmp_path, text), "--out", out, "--workers", "1")
    assert done.exit_code == 1
    assert "point 1 failed: lsft needs" in done.stderr
    good, bad = pq.read_table(out / "samples.parquet").to_pylist()
    assert (good[ERROR], good["flows"], good["hosts"]) == (None, 6, 9)
    assert (bad["flows"], bad["engine"]) == (None, "lsft")
    assert bad[ERROR].startswith("lsft needs")


def test_an_absent_scheduler_is_reported_in_one_line(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("knotless_experiments.sweeps.cluster.CONNECT_LIMIT_S", 1)
    file = write(tmp_path, SMALL)
    done = invoke(file, "--out", tmp_path / "out", "--scheduler", "tcp://127.0.0.1:9")
    assert done.exit_code == 2
    assert "no scheduler answers" in done.stderr.splitlines()[-1]


@pytest.mark.deep
def test_the_example_of_the_documentation_runs_and_draws(tmp_path: Path) -> None:
    plot = tmp_path / "plot.svg"
    done = invoke(EXAMPLE, "--out", tmp_path / "out", "--plot", plot, "--json")
    assert done.exit_code == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    asked = grid.read(EXAMPLE)
    assert axes_of(asked) == ("load", "latency_mean_us")
    lines = lines_of(asked, rows, "load", "latency_mean_us")
    assert set(lines) == {"dor", "updown"}
    # Latency grows with load; each mean is over two seeds.
    for by_load in lines.values():
        means = [spread.mean for spread in by_load.values()]
        assert means == sorted(means)
        assert all(spread.count == 2 for spread in by_load.values())
    assert "<svg" in plot.read_text()
    _, _, shown = EXAMPLE.read_text().partition("\n")
    assert f"```yaml\n{shown}```" in (REPOSITORY / "docs" / "sweeps.md").read_text()
