"""Plans whose paths are given one by one."""

from __future__ import annotations

import pytest

from knotless.forwarding.openflow.compiler import compile_rules
from knotless.routing.given_paths import with_paths
from knotless.routing.plan import make_plan
from knotless.routing.vlans.assignment import FIRST_VLAN
from knotless.topologies import load
from knotless.verification.check import check


@pytest.mark.parametrize("spec", ["ring,4", "mesh,3,2", "fattree2,4,hosts=1"])
def test_rules_send_each_source_along_its_given_paths(spec: str) -> None:
    fabric = load(spec)
    plan = make_plan(fabric, "updown")
    rows, switches = plan.pair_vlans.shape
    given = {(row, to): plan.routes.path(row, to) for row in range(rows) for to in range(switches)}
    again = with_paths(plan, given)
    assert again.pair_vlans.T.tolist() == [list(range(FIRST_VLAN, FIRST_VLAN + rows))] * switches
    for a in fabric.hosts:
        for b in fabric.hosts:
            if a is not b:
                assert again.path(a.name, b.name) == plan.path(a.name, b.name)
    verdict = check(fabric, compile_rules(again), flow_control=plan.flow_control)
    assert (verdict.acyclic, verdict.undelivered) == (True, 0)
