"""Frames that switches do not admit: what is counted, reported, and of whom."""

from __future__ import annotations

import random

import pytest

from knotless.controller.observed import LEAST, WINDOW_S, AdmissionCounters, UnadmittedFrames
from knotless.topologies import load

FABRIC = load("mesh,2,1,hosts=3")
INTERVAL_S = 5.0


@pytest.fixture
def counted() -> UnadmittedFrames:
    return UnadmittedFrames(FABRIC)


def see(counted: UnadmittedFrames, interval: int, dropped: int, **ports: tuple[int, int]) -> None:
    """Take counters at a multiple of the interval: of each port, received and admitted frames."""
    received = {int(port[1:]): counts[0] for port, counts in ports.items()}
    admitted = {int(port[1:]): counts[1] for port, counts in ports.items()}
    counted.see("s1", AdmissionCounters(dropped, received, admitted), interval * INTERVAL_S)


def test_what_was_dropped_before_is_not_counted(counted: UnadmittedFrames) -> None:
    see(counted, 0, 5000)
    assert counted.problems(0 * INTERVAL_S) == []
    see(counted, 1, 5000)
    assert counted.problems(1 * INTERVAL_S) == []
    assert counted.total == 0


def test_few_frames_are_counted_only(counted: UnadmittedFrames) -> None:
    see(counted, 0, 0)
    see(counted, 1, LEAST - 1)
    assert counted.problems(1 * INTERVAL_S) == []
    see(counted, 2, LEAST)
    assert len(counted.problems(2 * INTERVAL_S)) == 1
    assert counted.total == LEAST


def test_the_host_is_named_once_it_is_certain(counted: UnadmittedFrames) -> None:
    see(counted, 0, 0, p1=(0, 0), p2=(0, 0))
    see(counted, 1, 400, p1=(400, 0), p2=(90, 90))
    (line,) = counted.problems(1 * INTERVAL_S)
    assert line.startswith("s1 has dropped 400 frames")
    assert line.endswith("of an unknown port")
    see(counted, 2, 400, p1=(400, 0), p2=(200, 200))
    (line,) = counted.problems(2 * INTERVAL_S)
    assert line.endswith("of h1 (port 1)")


def test_frames_for_the_link_only_are_no_fault(counted: UnadmittedFrames) -> None:
    for interval, local in ((0, 0), (1, 3), (2, 3)):
        received = {1: 10 * interval + local, 2: 0, 3: 100 * interval}
        counted.see(
            "s1",
            AdmissionCounters(100 * interval, received, {1: 10 * interval}, local),
            interval * INTERVAL_S,
        )
    (line,) = counted.problems(2 * INTERVAL_S)
    assert line.endswith("of h3 (port 3)")


def test_a_problem_ends(counted: UnadmittedFrames) -> None:
    see(counted, 0, 0)
    see(counted, 1, 100)
    for interval in range(2, 2 + round(WINDOW_S / INTERVAL_S)):
        assert len(counted.problems((interval - 1) * INTERVAL_S)) == 1
        see(counted, interval, 100)
    see(counted, interval + 1, 100)
    assert counted.problems((interval + 1) * INTERVAL_S) == []


def test_a_switch_that_is_not_read_any_more_has_no_problem(counted: UnadmittedFrames) -> None:
    see(counted, 0, 0)
    see(counted, 1, 100)
    assert len(counted.problems(2 * INTERVAL_S)) == 1
    assert counted.problems(2 * INTERVAL_S + WINDOW_S) == []


def test_a_switch_with_new_rules_begins_at_zero(counted: UnadmittedFrames) -> None:
    see(counted, 0, 700)
    see(counted, 1, 20)
    see(counted, 2, 20)
    assert (counted.problems(2 * INTERVAL_S), counted.total) == ([], 0)


@pytest.mark.seeds(50)
def test_no_host_is_named_that_sent_only_its_own_frames(seed: int) -> None:
    """Rules are counted late, by any time up to the interval; ports at once."""
    rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
    rates = {port: rng.choice([0, 30, 1000, 100_000]) for port in (1, 2, 3)}
    forged = dict.fromkeys(rates, 0) | {rng.choice([1, 2, 3]): rng.choice([5, 300])}
    counted = UnadmittedFrames(FABRIC)
    late_before = dict.fromkeys(rates, 0.0)
    for interval in range(8):
        now_s = interval * INTERVAL_S
        late = {
            port: min(rng.uniform(0, INTERVAL_S), late_before[port] + INTERVAL_S) for port in rates
        }
        received = {port: round((rates[port] + forged[port]) * now_s) for port in rates}
        admitted = {port: round(rates[port] * max(0.0, now_s - late[port])) for port in rates}
        dropped = round(sum(forged.values()) * now_s)
        counted.see("s1", AdmissionCounters(dropped, received, admitted), now_s)
        late_before = late
        for line in counted.problems(now_s):
            for port, count in forged.items():
                assert count or f"port {port})" not in line
