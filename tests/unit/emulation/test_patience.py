"""Time limits of which a busy machine takes nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from knotless.emulation.patience import LONGEST_STEP_S, Patience, effort_of


class Watched:
    """A clock, and a process that is waited for."""

    def __init__(self) -> None:
        self.now_s, self.had_s, self.wants = 100.0, 0.0, False
        self.patience = Patience(10.0, lambda: (self.had_s, self.wants), lambda: self.now_s)

    def looks(self, count: int, step_s: float, had_s: float = 0.0) -> bool:
        """Look so often; return whether the limit is reached at last."""
        over = False
        for _ in range(count):
            self.now_s += step_s
            self.had_s += had_s
            over = self.patience.is_over()
        return over


def test_what_sleeps_has_its_limit_in_real_time() -> None:
    watched = Watched()
    assert not watched.looks(99, 0.1)
    assert watched.looks(3, 0.1)


def test_what_waits_for_a_processor_has_no_limit() -> None:
    watched = Watched()
    watched.wants = True
    assert not watched.looks(10_000, 1.0)
    assert watched.patience.spent_s == 0


def test_what_computes_has_its_limit_in_processor_time() -> None:
    watched = Watched()
    watched.wants = True
    assert not watched.looks(99, 5.0, 0.1)
    assert watched.looks(3, 5.0, 0.1)


def test_who_did_not_look_has_not_waited() -> None:
    watched = Watched()
    assert not watched.looks(10, 3600.0)
    assert watched.patience.spent_s == pytest.approx(10 * LONGEST_STEP_S)


@pytest.fixture
def computing() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        yield process
        process.kill()


def test_the_effort_of_a_process_grows_while_it_computes(
    computing: subprocess.Popen[bytes],
) -> None:
    before, wants = effort_of([computing.pid])
    while not wants or effort_of([computing.pid])[0] <= before:
        wants = wants or effort_of([computing.pid])[1]
    assert Patience.with_processes(0.0, computing.pid, None).limit_s == 0


def test_a_process_that_has_ended_does_nothing(computing: subprocess.Popen[bytes]) -> None:
    computing.kill()
    computing.wait()
    assert effort_of([computing.pid]) == (0.0, False)
