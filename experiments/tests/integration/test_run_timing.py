"""Times that programs measure in small versions of the papers' experiments."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.tests.integration.test_run_experiments import run


@pytest.mark.long
def test_messages_come_back_over_every_distance_and_tagging(tmp_path: Path) -> None:
    case = ("--switches", "1,3", "--size", "1792", "--duration", "0.5")
    results = run("hops", *case, out=tmp_path)
    assert [(row["tagging"], row["measure"], row["switches"]) for row in results["rows"]] == [
        (tagging, measure, switches)
        for tagging in ("switch", "host", "none")
        for measure in ("messages", "both-ways", "barrier")
        for switches in (1, 3)
    ]
    for row in results["rows"]:
        assert row["messages"] > 5
        assert row["lost_frames"] == 0
        assert row["valid"], row["problems"]
        # No message arrives before lines and delays allow it.
        soonest = row["mean_us"] if row["measure"] == "barrier" else row["min_us"]
        assert soonest >= 0.99 * row["theory_us"]


@pytest.mark.parametrize(("rate", "delay"), [("1000", "1"), ("6000", "0.1")])
def test_a_switch_adds_what_theory_says(rate: str, delay: str, tmp_path: Path) -> None:
    """On the faster links, Open vSwitch takes longer than the links: hosts must not see that.

    The slow-down divides what they would see of it (a third of the time here at 100), and what they
    do see: that other programs delay theirs. Those delay the soonest answer least.
    """
    links = ("--rate", rate, "--delay", delay, "--slow-down", "300", "--duration", "0.01")
    case = ("--switches", "1,8", "--size", "1792", "--tagging", "switch", "--measure", "messages")
    results = run("hops", *case, *links, out=tmp_path)
    near, distant = results["rows"]
    assert near["valid"], near["problems"]
    assert distant["valid"], distant["problems"]
    due_us = distant["theory_us"] - near["theory_us"]
    assert distant["min_us"] - near["min_us"] == pytest.approx(due_us, rel=0.05)


def test_processes_do_not_wait_for_those_of_other_hosts(tmp_path: Path) -> None:
    """Hosts that poll in virtual time would take the processors from those they wait for."""
    links = ("--rate", "100", "--delay", "2.03", "--slow-down", "200")
    case = ("--on", "emulation", "--fabric", "flat,16", "--algorithms", "shuffle")
    costs = ("--computing", "0", "--barriers", "5")
    (row,) = run("barrier", *case, *links, *costs, out=tmp_path)["rows"]
    assert row["valid"], row["problems"]
    assert row["mean_us"] < 1.5 * row["predicted_us"]
