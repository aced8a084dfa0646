"""``knotless sweep --scheduler``: a cluster on the loopback interface, made by the test."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq

from experiments.tests.support.sweep_grid import SMALL
from tests.support.waiting import HANG_S

LIMIT_S = 120


@contextmanager
def running(*words: str, says: str) -> Iterator[str]:
    """Run a Dask program; yield the first output line that contains ``says``."""
    process = subprocess.Popen(
        [sys.executable, "-m", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        yield next(line for line in process.stderr if says in line)
    finally:
        process.terminate()
        process.communicate(timeout=HANG_S)


def sweep(file: Path, out: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a sweep; one that hangs is ended, and says where its threads are."""
    limit = ["timeout", "--signal=ABRT", str(LIMIT_S)]
    program = [sys.executable, "-X", "faulthandler", "-m", "knotless", "sweep"]
    return subprocess.run(
        [*limit, *program, str(file), "--out", str(out), *words],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_cluster_gives_the_same_bytes_as_this_machine(tmp_path: Path) -> None:
    file = tmp_path / "grid.yaml"
    file.write_text(SMALL)
    scheduler = ["distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    worker = ["distributed.cli.dask_worker", "--host", "127.0.0.1", "--nthreads", "1"]
    with running(*scheduler, "--no-dashboard", says="Scheduler at:") as line:
        address = line.split()[-1]
        assert address.startswith("tcp://127.0.0.1:")
        nobody = sweep(file, tmp_path / "nobody", "--scheduler", address)
        assert nobody.returncode == 2
        assert nobody.stderr.strip().splitlines()[-1].endswith("there are no workers")
        with running(*worker, "--no-nanny", "--no-dashboard", address, says="Registered to:"):
            remote = sweep(file, tmp_path / "remote", "--scheduler", address)
    assert remote.returncode == 0, remote.stderr
    local = sweep(file, tmp_path / "local", "--workers", "1")
    assert local.returncode == 0, local.stderr
    samples = [tmp_path / where / "samples.parquet" for where in ("remote", "local")]
    assert samples[0].read_bytes() == samples[1].read_bytes()
    assert len(pq.read_table(samples[0])) == 8
