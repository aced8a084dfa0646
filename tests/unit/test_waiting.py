"""Limits of tests: they count the share of a processor that a thread gets."""

from __future__ import annotations

import pytest

from tests.support import waiting
from tests.support.waiting import Limit, Reading, fair_s, until


@pytest.mark.parametrize(
    ("runnable", "processors", "share"),
    [(1, 2, 1.0), (2, 2, 1.0), (4, 2, 0.5), (3, 1, 1 / 3), (0, 2, 1.0), (3, 64, 1.0)],
)
def test_a_thread_gets_its_share_of_the_processors(
    runnable: int, processors: int, share: float
) -> None:
    before, now = Reading(10.0, 1), Reading(14.0, runnable)
    assert fair_s(before, now, processors) == pytest.approx(4.0 * share)


@pytest.mark.parametrize(
    ("busy", "stolen", "share"),
    # Where no task wants a processor, none is stolen; counters are of different moments.
    [(100, 25, 0.75), (100, 0, 1.0), (100, 100, 0.0), (0, 0, 1.0), (0, 1, 1.0)],
)
def test_what_a_hypervisor_takes_is_no_time_of_a_thread(
    busy: int, stolen: int, share: float
) -> None:
    before = Reading(10.0, 1, 1000, 200)
    now = Reading(14.0, 1, 1000 + busy, 200 + stolen)
    assert fair_s(before, now, 2) == pytest.approx(4.0 * share)


def test_a_limit_beside_busy_threads_lasts_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    wall_s = 0.0
    # 10 s alone, 30 s with half a processor, then alone again.
    monkeypatch.setattr(
        waiting, "read_machine", lambda: Reading(wall_s, 4 if 10 < wall_s <= 40 else 1)
    )
    monkeypatch.setattr("tests.support.waiting.time.monotonic", lambda: wall_s)
    monkeypatch.setattr("tests.support.waiting.os.sched_getaffinity", lambda _: {0, 1})
    limit = Limit(35)
    passed = 0
    while not limit.is_over:
        passed += 1
        wall_s = float(passed)
    assert passed == 50
    with pytest.raises(AssertionError, match="waited 35 s in vain for: a sign"):
        limit.check("a sign")


def test_the_machine_says_how_busy_it_is() -> None:
    before = waiting.read_machine()
    assert before.runnable >= 1
    now = waiting.read_machine()
    assert now.wall_s > before.wall_s
    assert now.busy_ticks >= before.busy_ticks >= before.stolen_ticks >= 0


def test_what_is_awaited_comes_or_is_named() -> None:
    found = iter([False, False, True])
    until("the third", lambda: next(found))
    with pytest.raises(AssertionError, match=r"waited 0\.05 s in vain for: nothing"):
        until("nothing", lambda: False, 0.05)
