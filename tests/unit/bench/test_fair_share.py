"""Memory over time, and the tables of a busy fabric's share of the machine."""

from __future__ import annotations

import os

import pytest
from click.testing import CliRunner

from bench import fair_share
from bench.fair_share import COLUMNS, Memory, Pace, spread, table_of
from knotless.emulation import processes
from knotless.emulation.names import names_of
from knotless.results.machine import machine


def test_who_has_grown_most_since_memory_has_settled() -> None:
    memory = Memory(names_of("fair"))
    memory.words = {1: "ovs-vswitchd", 2: "python", 3: "bash"}
    memory.looks = [
        {1: 10.0, 2: 50.0},
        {1: 100.0, 2: 50.0, 3: 1.0},
        {1: 105.0, 2: 40.0},
        {1: 108.0, 2: 60.0},
        {1: 110.0, 2: 51.0},
    ]
    assert memory.figures() == {
        "processes": 2,
        "memory_mb": 161,
        "switch_process_mb": 110.0,
        "grown": 0.1,
        "grown_process": "ovs-vswitchd",
    }


def test_memory_is_that_of_the_processes_of_the_fabric(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "marked", lambda _name: {processes.ourselves()})
    memory = Memory(names_of("fair"))
    assert 1 < memory.look()[os.getpid()] < 10_000
    assert len(memory.looks) == 1


def test_the_spread_of_times() -> None:
    assert spread([0.1] * 99 + [1.0]) == {
        "median_s": 0.1,
        "p99_s": pytest.approx(0.109),
        "max_s": 1.0,
        "count": 100,
    }


def test_the_pace_is_that_of_all_fabrics() -> None:
    class Emulator:
        def __init__(self, step: int) -> None:
            self.frames, self.step = 0, step

        def counters(self) -> dict[str, object]:
            self.frames += self.step
            return {"channels": [{"rx_frames": self.frames}, {"rx_frames": 0}]}

    times = iter([10.0, 12.0])
    pace = Pace([Emulator(100), Emulator(50)], lambda: next(times))  # type: ignore[list-item]
    assert pace.hops_per_s() == 75


def test_each_part_has_a_table() -> None:
    assert COLUMNS.keys() == fair_share.PARTS.keys()
    figures = {"median_s": 0.1, "p99_s": 0.15, "max_s": 0.2, "count": 9}
    row = {
        **{"part": "machine", "fabric": "ring,4", "switch_processes": 1, "priority": "normal"},
        **{"minutes": 20.0, "version": figures, "sleep": figures, "hops_per_s": 1234},
        **{"stretch": None, "valid": False, "problems": ["one", "two"], "memory_mb": 1900},
        **{"switch_process_mb": 99.6, "grown": 0.04, "grown_process": "bash"},
    }
    lines = table_of({"machine": machine(), "rows": [row]})
    assert lines[2] == (
        "| `ring,4` | 1 | normal | 20 | 0.10 s, 0.20 s | 0.15 s, 0.20 s | 1,234 | -"
        " | no: one; two | 1,900 MB, 100 MB | 4 % (`bash`) |"
    )
    assert len(COLUMNS["machine"][0]) == lines[0].count("|") - 1


def test_a_part_that_there_is_not_is_refused() -> None:
    done = CliRunner().invoke(fair_share.main, ["--part", "nothing"])
    assert done.exit_code == 2
    assert "'nothing' is not one of 'machine', 'busy'" in done.output
