"""Drained links and switches: what routes avoid, and what is kept for the next controller."""

from __future__ import annotations

from pathlib import Path

import pytest

from knotless.base.errors import KnotlessError
from knotless.controller.config import Config, ConfigError, parse
from knotless.controller.desired import DesiredState
from knotless.controller.overrides import Overrides, read_overrides
from knotless.routing.plan import make_plan
from knotless.routing.repair import repair
from knotless.topologies import load
from knotless.topologies.drained import avoided
from knotless.topologies.failures import NO_FAILURES, Failures, hosts_by_part
from knotless.verification.checked_plan import CheckedPlan
from tests.support.random_fabrics import seeded, small_fabric


def test_a_drained_switch_keeps_one_link_for_its_hosts() -> None:
    torus = load("torus,4,4")
    avoidance = avoided(torus, NO_FAILURES, ["s6"])
    links = [link for link in torus.links if "s6" in (link.a, link.b)]
    assert len(avoidance.failures.links) == len(links) - 1 == 3
    assert (avoidance.failures.switches, avoidance.needed) == ((), ())
    plan = repair(make_plan(torus, "dor"), avoidance.failures).plan
    checked = CheckedPlan(plan)
    assert (checked.verdict.undelivered, checked.verdict.acyclic) == (0, True)
    for a in torus.hosts:
        for b in torus.hosts:
            if a != b and "h6" not in (a.name, b.name):
                assert "s6" not in [hop.switch for hop in plan.path(a.name, b.name)]


def test_a_switch_without_hosts_keeps_no_link() -> None:
    tree = load("fattree3,4")
    spine = next(s.name for s in reversed(tree.switches) if not tree.hosts_at[s.name])
    avoidance = avoided(tree, NO_FAILURES, [spine])
    assert len(avoidance.failures.links) == len(tree.neighbours[spine])


def test_a_part_that_is_needed_is_used() -> None:
    line = load("mesh,3")
    avoidance = avoided(line, NO_FAILURES, ["s1-s2", "s3"])
    assert avoidance.needed == ("s1:2-s2:3",)
    assert not avoidance.failures, "s3 has one link"
    ring = load("ring,4")
    assert avoided(ring, NO_FAILURES, ["s1-s2"]).failures.links == ("s1:2-s2:3",)
    failed = Failures.from_names(ring, ["s3-s4"])
    assert avoided(ring, failed, ["s1-s2"]).needed == ("s1:2-s2:3",)
    assert avoided(ring, failed, ["s1-s2"]).failures == failed


def test_neighbours_that_are_drained_together_keep_links_to_others() -> None:
    torus = load("torus,4,4")
    avoidance = avoided(torus, NO_FAILURES, ["s1", "s2"])
    assert avoidance.needed == ()
    between = {link.name for link in torus.links if {link.a, link.b} == {"s1", "s2"}}
    assert between <= set(avoidance.failures.links)


def test_no_host_loses_another_one() -> None:
    for seed, rng in seeded(range(200)):
        fabric = small_fabric(rng)
        names = [link.name for link in fabric.links] + [s.name for s in fabric.switches]
        failures = Failures.from_names(fabric, rng.sample(names, min(len(names), rng.randrange(2))))
        drained = rng.sample(names, min(len(names), rng.randrange(1, 4)))
        avoidance = avoided(fabric, failures, drained)
        after = hosts_by_part(fabric, avoidance.failures)
        assert after == hosts_by_part(fabric, failures), f"seed {seed}"
        used = {link.name for link in fabric.links} - set(avoidance.failures.links)
        for name in set(Failures.from_names(fabric, drained).links) & used:
            assert name in avoidance.needed, f"seed {seed}"


def test_overrides_outlive_the_controller(tmp_path: Path) -> None:
    ring, file = load("ring,4"), tmp_path / "state"
    config = parse("fabric: ring,4\nengine: updown\nmulticast: {1: [h1, h2]}\n")
    assert read_overrides(file) == Overrides()
    overrides = Overrides().with_options(config, {"root": "s3"}).with_drained(ring, ["s1-s2", "s3"])
    overrides.save(file)
    again = read_overrides(file)
    assert again == overrides
    assert again.applied_to(config).root == "s3"
    assert again.drained == ("s1:2-s2:3", "s3")
    desired = DesiredState.compute(again.applied_to(config), ring, again.drained)
    assert desired.plan.failures == NO_FAILURES
    assert desired.routed.failures.links


def test_an_edited_configuration_wins() -> None:
    config = Config(fabric="ring,4", engine="updown")
    overrides = (
        Overrides().with_options(config, {"root": "s3"}).with_drained(load("ring,4"), ["s2"])
    )
    edited = Config(fabric="ring,4", engine="updown", root="s2")
    assert overrides.applied_to(edited) == edited
    assert overrides.current(edited, load("ring,4")) == Overrides(drained=("s2",))
    assert overrides.current(config, load("ring,3")).drained == ("s2",)
    assert overrides.current(config, load("mesh,1,1")).drained == ()
    assert overrides.with_options(config, {}).options == {}


def test_mistakes_are_named(tmp_path: Path) -> None:
    ring = load("ring,4")
    with pytest.raises(KnotlessError, match="^s3 is not drained; drained is s2$"):
        Overrides(drained=("s2",)).without_drained(ring, ["s3"])
    with pytest.raises(KnotlessError, match="has no link or switch 's9'"):
        Overrides().with_drained(ring, ["s9"])
    with pytest.raises(KnotlessError, match="^vcs: "):
        Overrides().with_options(Config(), {"vcs": 9})
    file = tmp_path / "state"
    file.write_text('{"drained": 3}')
    with pytest.raises(ConfigError, match="state: drained: "):
        read_overrides(file)
