"""What a campaign measures on running fabrics, and again if the machine was too busy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from knotless_experiments.framework import campaign, recorded
from knotless_experiments.framework.campaign import Campaign
from knotless_experiments.framework.excluded_runs import SLOWER
from knotless_experiments.framework.experiment import EMULATION
from knotless_experiments.framework.routed import slow_down

LATE = "timers of TCP may have noticed that virtual time is slower: ..."


@dataclass
class Fabrics:
    """Fabrics that are not started, and what was measured on them."""

    late: set[str]
    measured: list[tuple[str, float, int]] = field(default_factory=list)
    rows: list[Mapping[str, Any]] = field(default_factory=list)
    starts: int = 0
    steps: int = 0

    @contextmanager
    def running(self) -> Iterator[Any]:
        self.starts += 1
        yield SimpleNamespace(slow_down=slow_down.get())

    def live(self, lab: Any, case: Any, seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        self.measured.append((case.name, lab.slow_down, seed))
        problems = [LATE] if case.name in self.late and lab.slow_down < SLOWER else []
        if case.name == "lost":
            problems = ["frames were abandoned"]
        valid = not problems
        row = {"case": case.name, "valid": valid, "problems": problems, "slow_down": lab.slow_down}
        return row, [{"case": case.name}]

    def begin(self, what: str) -> None:
        assert what

    def advance(self) -> None:
        self.steps += 1

    def record(self, row: Mapping[str, Any], samples: Sequence[Mapping[str, Any]]) -> None:
        assert samples == [{"row": len(self.rows), "case": row["case"]}]
        self.rows.append(row)


@pytest.fixture
def fabrics(monkeypatch: pytest.MonkeyPatch) -> Fabrics:
    monkeypatch.setattr(recorded, "emulated", lambda *_: nullcontext())
    monkeypatch.setattr(campaign, "programs_seen", lambda _: nullcontext([]))
    return Fabrics({"b", "c"})


def run(fabrics: Fabrics, names: str) -> None:
    routed: Any = SimpleNamespace(name="ring", routes="dor", running=fabrics.running)
    cases: list[Any] = [SimpleNamespace(name=name, routed=routed) for name in names.split()]
    wanted = Campaign(EMULATION, cases, {}, 100, live=fabrics.live)
    wanted.run(fabrics.record, fabrics)
    assert fabrics.steps == wanted.steps


def test_what_was_too_slow_for_tcp_is_measured_again_on_a_slower_fabric(fabrics: Fabrics) -> None:
    run(fabrics, "a b lost c")
    first = [("a", 1.0, 100), ("b", 1.0, 101), ("lost", 1.0, 102), ("c", 1.0, 103)]
    assert fabrics.measured == [*first, ("b", SLOWER, 101), ("c", SLOWER, 103)]
    kept = [(row["case"], row["slow_down"], row["valid"]) for row in fabrics.rows]
    assert kept == [
        ("a", 1.0, True),
        ("lost", 1.0, False),
        ("b", SLOWER, True),
        ("c", SLOWER, True),
    ]
    assert fabrics.starts == 2
    assert slow_down.get() == 1.0


def test_a_fabric_that_is_as_slow_already_is_not_started_again(fabrics: Fabrics) -> None:
    token = slow_down.set(SLOWER)
    try:
        run(fabrics, "a b")
    finally:
        slow_down.reset(token)
    assert [name for name, _, _ in fabrics.measured] == ["a", "b"]
    assert fabrics.starts == 1
