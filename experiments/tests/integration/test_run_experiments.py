"""Small versions of the papers' experiments on running fabrics."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.waiting import HANG_S

XOFF_BYTES = 32_768
"""Of a receive buffer, by default."""


def run(*args: str, out: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "knotless", "run", *args, "--out", str(out), "--json"],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    output: dict[str, Any] = json.loads(done.stdout)
    assert (Path(output["report"]).parent / "samples.parquet").is_file()
    return output


def test_acknowledged_traffic_never_beats_an_empty_fabric(tmp_path: Path) -> None:
    case = ("--part", "acknowledged", "--fabric", "ring,5,hosts=2", "--engine", "updown,dl:2")
    results = run("traffic", *case, "--pattern", "complement", "--size", "256", out=tmp_path)
    assert [row["routes"] for row in results["rows"]] == ["updown", "dl, 2 VCs"]
    for row in results["rows"]:
        assert len(row["flows"]) == 4
        assert 0 < row["of_theory"] <= 1.01
        assert (row["lost_frames"], row["deadlock"]) == (0, False)
        assert row["valid"], row["problems"]


def test_an_exchange_reaches_everybody_under_both_schedules(tmp_path: Path) -> None:
    results = run("all-to-all", "--configuration", "S2", "--datagrams", "8", out=tmp_path)
    assert [row["schedule"] for row in results["rows"]] == ["shift", "contention-free"]
    for row in results["rows"]:
        assert row["valid"], row["problems"]
        assert 0 < row["of_line"] < 1
        assert row["lost_frames"] == 0


def test_hosts_that_answer_first_freeze_a_fabric_unless_they_have_room(tmp_path: Path) -> None:
    hosts = ("rdma-read", "request-reply", "replies-together", "replies-apart")
    results = run("endpoints", "--quick", "--endpoints", ",".join(hosts), out=tmp_path)
    assert tuple(row["endpoints"] for row in results["rows"]) == hosts
    for row in results["rows"]:
        assert row["valid"], row["problems"]
        assert (
            row["deadlock"]
            is not row["safe"]
            is (row["endpoints"] in ("rdma-read", "replies-apart"))
        )
        assert row["lost_frames"] == 0
        assert bool(row["cycle"]) is row["deadlock"]
        if row["flow_control"] == "pause":
            assert row["deadlock"] is (row["buffer_peak_bytes"] > XOFF_BYTES)
