"""With host tagging and tree VLANs, broadcasts use a VLAN that reaches all hosts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from knotless.forwarding.dot1q.from_plan import export
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.routing.plan import Plan, make_plan
from knotless.routing.vlans.assignment import FIRST_VLAN, assign_vlans
from knotless.routing.vlans.host_tags import EVERYTHING_ELSE
from knotless.topologies import load
from knotless.verification.check import check
from knotless.verification.checked_plan import CheckedPlan
from tests.support.dot1q_exports import is_good, verdicts_of

# Missing broadcasts if each host's used the VLAN of most of its paths.
MISSED = [
    ("clos,4,hosts=2", 6),
    ("mesh,3,3", 1),
    ("irregular-b,hosts=2", 16),
    ("clos,8,hosts=2", 28),
]


def planned(spec: str, engine: str = "updown") -> Plan:
    return make_plan(load(spec), engine, tagging="host", vlans="tree")


@pytest.mark.parametrize(("spec", "missed"), MISSED)
def test_the_vlan_of_most_paths_does_not_reach_every_host(spec: str, missed: int) -> None:
    plan = planned(spec)
    assert is_good(export(plan))
    used = np.where((plan.receivers > 0)[None, :, None], plan.routes.channels, -1).astype(np.int32)
    vlans = assign_vlans(plan.channels, used, assignment="tree", tagging="host")
    verdicts = verdicts_of(export(replace(plan, pair_vlans=vlans, broadcast_links={})))
    assert verdicts["tagged"].broadcasts_undelivered == missed


@pytest.mark.parametrize(("spec", "missed"), MISSED)
def test_all_hosts_share_one_vlan_of_the_paths(spec: str, missed: int) -> None:
    del missed
    plan = planned(spec)
    tags = plan.host_tags()
    assert tags is not None
    (vlan,) = plan.broadcast_links
    assert {own[EVERYTHING_ELSE] for own in tags.values()} == {vlan}
    paths = (plan.routes.channels >= 0).any(axis=2) & (plan.receivers > 0)
    assert plan.vlan_count == plan.pair_vlans[paths].max() - FIRST_VLAN + 1
    assert check(plan.fabric, compile_rules(plan), tags=tags).ok


def test_where_no_vlan_of_the_paths_will_do_there_is_one_more() -> None:
    """With L-turns, floods in some spanning VLANs would close a cycle."""
    plan = planned("random,24,degree=4,seed=2,hosts=2", "lturn")
    (vlan,) = plan.broadcast_links
    assert vlan == FIRST_VLAN + plan.vlan_count - 1
    paths = (plan.routes.channels >= 0).any(axis=2) & (plan.receivers > 0)
    assert vlan not in plan.pair_vlans[paths]
    assert is_good(export(plan))


def test_where_no_tree_serves_all_hosts_each_tree_of_the_plan_has_a_vlan() -> None:
    plan = planned("random,9,degree=4,seed=267,hosts=1", "smodk")
    assert not CheckedPlan(plan).cycle
    assert len(plan.broadcast_links) == 9
    assert is_good(export(plan))
    for source, row in zip(plan.row_switch.tolist(), range(9), strict=True):
        tree = plan.routes.tree_channels[source]
        links = np.minimum(tree, plan.channels.reverse[tree])[tree >= 0]
        assert plan.broadcast_links[int(plan.vlans[row])] == tuple(sorted(links.tolist()))


def test_only_trees_and_hosts_that_tag_need_it() -> None:
    for options in ({"tagging": "host"}, {"vlans": "tree"}, {}):
        assert make_plan(load("clos,3,hosts=2"), "updown", **options).broadcast_links == {}
