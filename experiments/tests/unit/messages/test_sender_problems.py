"""Measurements that are those of the process that sends for all hosts."""

from knotless_experiments.messages.exchange import sender_problems


def test_a_sender_that_mostly_waits_is_no_problem() -> None:
    assert sender_problems(0.4, 1.0) == []
    assert sender_problems(0.0, 0.0) == []


def test_a_busy_sender_is_named_with_the_slow_down_that_would_do() -> None:
    (problem,) = sender_problems(0.9, 1.0)
    assert "computed for 90% of the time" in problem
    assert "--slow-down at least 9 times the stretch" in problem
