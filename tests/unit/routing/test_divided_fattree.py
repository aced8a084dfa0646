"""Engine ``fattree`` on a divided fabric: the first switch drops frames for the other part."""

from __future__ import annotations

import re

import pytest

from knotless.forwarding.openflow.compiler import compile_rules
from knotless.routing.plan import make_plan
from knotless.routing.repair import repair
from knotless.topologies import load
from knotless.topologies.failures import Failures
from knotless.verification.check import check


@pytest.mark.parametrize("spec", ["fattree,2,4,2", "fattree2,6", "fattree3,4"])
@pytest.mark.parametrize("part", ["leaf", "pod"])
def test_the_first_switch_drops_frames_for_the_other_part(spec: str, part: str) -> None:
    fabric = load(spec)
    leaf = fabric.hosts[0].switch
    inside = {leaf}
    if part == "pod":
        inside |= {name for name, _ in fabric.neighbours[leaf].values()}
    home = {host.name: host.switch for host in fabric.hosts}
    cut = [
        link.name
        for link in fabric.links
        if ({link.a, link.b} & inside)
        and not ({link.a, link.b} <= inside | set(home.values()) and part == "pod")
    ]
    failed = Failures.from_names(fabric, cut)
    verdict = check(fabric, compile_rules(repair(make_plan(fabric, "fattree"), failed).plan))
    pattern = re.compile(r"(\S+) to \S+: the frame is dropped at (\S+)")
    dropped = [match for line in verdict.problems if (match := pattern.match(line))]
    assert verdict.acyclic
    assert bool(dropped) == bool(cut)
    assert all(home[match[1]] == match[2] for match in dropped)
