"""What follows from the reports of switches."""

from __future__ import annotations

from knotless.controller.config import parse
from knotless.controller.desired import DesiredState
from knotless.controller.observed import Observed, ObservedSwitch
from knotless.controller.updates.state import UpdateState
from knotless.topologies import load
from knotless.topologies.failures import NO_FAILURES, Failures

RING = load("ring,4")
CUT = Failures.from_names(RING, ["s1-s2"])


def test_only_ports_that_count_from_zero_again_are_named() -> None:
    switch = ObservedSwitch("s1", 1, {1: "host h1", 2: "s2 port 3"})
    for received, anew in (
        ({1: 10, 2: 20}, set()),
        ({1: 10, 2: 21}, set()),
        ({1: 3, 2: 22}, {1}),
        ({2: 1}, {2}),
    ):
        assert switch.see_counters(received, switch.received) == anew


def test_an_answer_that_a_later_one_has_overtaken_begins_no_count() -> None:
    switch = ObservedSwitch("s1", 1, {1: "host h1"})
    switch.see_counters({1: 10}, {})
    asked_after = switch.received
    assert switch.see_counters({1: 30}, asked_after) == frozenset()
    assert switch.see_counters({1: 20}, asked_after) == frozenset()
    assert switch.see_counters({1: 29}, switch.received) == {1}


def test_a_failed_link_may_carry_frames_while_both_its_ends_are_up() -> None:
    observed = Observed(RING)
    for switch in observed.switches.values():
        switch.connect(dict.fromkeys(switch.needs, True))
    assert observed.may_carry(CUT)
    assert not observed.may_carry(NO_FAILURES)
    (link,) = CUT.dead_links(RING)
    end = observed.by_name[link.a]
    end.see_ports({**dict.fromkeys(end.needs, True), link.a_port: False})
    assert not observed.may_carry(CUT)


def test_a_link_that_returns_is_avoided_before_it_is_used_again() -> None:
    desired = DesiredState.compute(parse("fabric: ring,4\nengine: updown"), RING)
    update = UpdateState(desired)
    for switch in RING.switches:
        update.confirm(switch.name)
    update.aim(desired, CUT)
    update.aim(desired, NO_FAILURES)
    assert update.goal.failures == CUT
    task = update.task()
    assert task is not None
    update.refuse(task, "no order of steps")
    update.aim(desired, NO_FAILURES)
    assert update.goal.failures == NO_FAILURES


def test_links_whose_losses_nobody_has_seen_are_avoided() -> None:
    desired = DesiredState.compute(parse("fabric: ring,4\nengine: updown"), RING)
    update = UpdateState(desired)
    update.may_have_lost(CUT.links)
    update.aim(desired, NO_FAILURES)
    assert update.goal.failures == CUT
