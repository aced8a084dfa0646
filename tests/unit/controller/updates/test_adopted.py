"""What a controller adopts of the switches where nobody knows what operators have requested."""

from __future__ import annotations

import pytest

from knotless.controller.config import parse
from knotless.controller.desired import DesiredState
from knotless.controller.updates.inherited import adopted_rules
from knotless.controller.updates.state import UpdateState
from knotless.topologies import load
from knotless.topologies.failures import NO_FAILURES, Failures
from tests.support.random_fabrics import seeded, small_fabric


@pytest.mark.parametrize(
    ("spec", "drained", "told"),
    [
        ("torus,4,4", ("s6",), ("s6",)),
        ("torus,4,4", ("s1:2-s2:3",), ("s1:2-s2:3",)),
        ("torus,4,4", ("s1:2-s2:3", "s11"), ("s1:2-s2:3", "s11")),
        ("fattree3,4", ("s20",), ("s20",)),
        ("ring,4", ("s3",), ("s2:2-s3:3",)),
        ("ring,4", (), ()),
    ],
)
def test_drained_parts_are_told_by_the_rules(
    spec: str, drained: tuple[str, ...], told: tuple[str, ...]
) -> None:
    """Of a switch in a ring only one link is unused, which may be drained itself."""
    config, fabric = parse(f"fabric: {spec}\n"), load(spec)
    held = DesiredState.compute(config, fabric, drained)
    plain = DesiredState.compute(config, fabric)
    adopted = adopted_rules(plain, NO_FAILURES, held.rules, fabric)
    assert adopted.plan is not None
    assert adopted.goal.desired.drained == told
    assert adopted.held.rules == held.rules


def test_what_is_adopted_is_what_the_switches_hold() -> None:
    """Any fabric, any drained parts: its rules stay, whether or not the parts can be told."""
    told = 0
    for seed, rng in seeded(range(60)):
        fabric = small_fabric(rng)
        names = [link.name for link in fabric.links] + [s.name for s in fabric.switches]
        drained = Failures.from_names(fabric, rng.sample(names, min(len(names), 2))).names
        plain = DesiredState.compute(parse(""), fabric)
        held = DesiredState.compute(parse(""), fabric, drained)
        adopted = adopted_rules(plain, NO_FAILURES, held.rules, fabric)
        assert adopted.held.rules == held.rules, f"seed {seed}"
        assert adopted.plan is not None or adopted.unused is not None, f"seed {seed}"
        told += adopted.plan is not None
    assert told > 30


def test_rules_of_other_options_stay_until_a_link_fails_that_they_use() -> None:
    fabric = load("torus,4,4")
    plain = DesiredState.compute(parse("engine: dor\n"), fabric)
    held = DesiredState.compute(parse("engine: updown\nroot: s3\n"), fabric, ("s1:2-s2:3",))
    adopted = adopted_rules(plain, NO_FAILURES, held.rules, fabric)
    assert adopted.plan is None
    assert adopted.unused is not None
    assert "s1:2-s2:3" in adopted.unused
    assert set(adopted.goal.desired.drained) == adopted.unused

    update = UpdateState(adopted.goal.desired)
    update.inherit(adopted, is_quiescent=True)
    for name in held.rules:
        update.confirm(name)
        assert update.progress.wanted(name) == held.rules[name]
    for failed in ((), ("s1:2-s2:3",)):
        update.aim(adopted.goal.desired, Failures.from_names(fabric, failed))
        assert update.task() is None, failed
    used = next(link.name for link in fabric.links if link.name not in adopted.unused)
    update.aim(adopted.goal.desired, Failures.from_names(fabric, [used]))
    assert update.task() is not None, "failures are repaired"

    confirmed = UpdateState(adopted.goal.desired)
    confirmed.inherit(adopted, is_quiescent=True)
    for name in held.rules:
        confirmed.confirm(name)
    confirmed.extend(adopted.goal.desired)
    confirmed.aim(adopted.goal.desired, NO_FAILURES)
    assert confirmed.task() is not None, "an operator has confirmed it"


def test_a_failed_link_is_not_told_as_drained() -> None:
    fabric = load("torus,4,4")
    plain = DesiredState.compute(parse("engine: dor\n"), fabric)
    failed = Failures.from_names(fabric, ["s1-s2"])
    held = DesiredState.compute(parse("engine: dor\n"), fabric, ("s1:2-s2:3", "s6"))
    adopted = adopted_rules(plain, failed, held.rules, fabric)
    assert adopted.goal.desired.drained == ("s6",)
    assert adopted.plan is not None
