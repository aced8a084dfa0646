"""The experiments with messages between two hosts, on a running fabric."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from knotless_experiments.studies.primitives.stages import STAGES


def rows_of(knotless: Any, out: Path, name: str) -> list[dict[str, Any]]:
    what = ["--on", "emulation", "--fabric", "flat,2", "--sizes", "8,4096", "--count", "10"]
    done = knotless("run", name, *what, "--json", "--out", str(out))
    assert done.returncode == 0, done.stderr
    (run,) = out.iterdir()
    assert (run / "over-size.svg").stat().st_size > 1000
    measured = json.loads(done.stdout)["rows"]
    assert isinstance(measured, list)
    return measured


def test_pingpong(knotless: Any, tmp_path: Path) -> None:
    rows = rows_of(knotless, tmp_path, "pingpong")
    cases = [(row["kind"], row["bytes"]) for row in rows]
    assert cases == [
        ("message", 8),
        ("acknowledged", 8),
        ("udp", 8),
        ("message", 4096),
        ("acknowledged", 4096),
    ]
    for row in rows:
        # Two lines of 500 us are between the hosts; nothing can be faster.
        assert row["median_us"] >= 1000
        assert row["p99_us"] >= row["median_us"]
        assert row["lost_frames"] == 0
        assert row["valid"], row["problems"]


def test_primitives(knotless: Any, tmp_path: Path) -> None:
    *rows, stages = rows_of(knotless, tmp_path, "primitives")
    cases = [(row["operation"], row["bytes"]) for row in rows]
    assert cases == [("push", 8), ("push", 4096), ("pull", 8), ("pull", 4096)]
    assert all(row["median_us"] >= 2000 and row["lost_frames"] == 0 for row in rows)
    assert list(stages["stages_us"]) == list(STAGES)
    times = list(stages["stages_us"].values())
    assert times[0] == 0
    assert times[-1] == pytest.approx(stages["median_us"])
    assert times[4] - times[3] >= 1000
