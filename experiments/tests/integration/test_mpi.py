"""Open MPI on the hosts of a fabric: kernels get the official results, no process is left."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import psutil
import pytest

from tests.support.fabric_fixtures import Knotless

pytestmark = pytest.mark.skipif(
    shutil.which("mpirun") is None, reason="needs openmpi-bin and python3-mpi4py"
)


def leftovers() -> list[str]:
    """Return the processes of jobs, whose command line names the job's folder."""
    commands = (" ".join(each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"]))
    return [command for command in commands if "knotless-mpi-" in command]


@pytest.mark.long
def test_kernels_run_in_hosts(knotless: Knotless, tmp_path: Path) -> None:
    words = (
        "--kernels",
        "is,mg",
        "--fabric",
        "mesh,2,2",
        "--engines",
        "updown",
        "--processes",
        "4",
    )
    done = knotless(
        "run", "nas", *words, "--json", "--out", str(tmp_path), "--traces", str(tmp_path)
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert [row["kernel"] for row in rows] == ["is", "mg"]
    assert all(row["verified"] and row["messages"] > 0 and row["seconds"] > 0 for row in rows)
    trace = (tmp_path / "mg-S-4.program.csv").read_text().splitlines()
    assert trace[0] == "process,kind,peer,bytes,seconds"
    assert sum(",send," in line for line in trace) == rows[1]["messages"]
    assert leftovers() == []


def test_measurements_in_hosts(knotless: Knotless, tmp_path: Path) -> None:
    words = (
        "--measurements",
        "pingpong,barrier",
        "--sizes",
        "1000",
        "--fabric",
        "ring,4,delay=2000",
    )
    done = knotless("run", "parallel", "--quick", *words, "--json", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    pingpong, barrier = json.loads(done.stdout)["rows"]
    # From h1 to h4 are two hosts' links and one between their switches: delays alone are 6 ms.
    assert pingpong["min_us"] >= 6000
    assert barrier["min_us"] >= 6000
    assert pingpong["bytes"] == 1000
    assert leftovers() == []
