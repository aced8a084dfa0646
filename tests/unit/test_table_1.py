"""Table 1 of Otsuka et al., computed from their definitions by walking the compiled rules.

Where the printed table says something else, that stands beside it, and what we can say
of why is in docs/table-1.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from routing import check, compile_rules, make_plan
from routing.l2 import export
from routing.plan import Plan
from tests.tree_plans import clos_trees, fat_tree_trees, plan_by_trees
from topologies import load
from topologies.errors import PlanError


@dataclass(frozen=True)
class Row:
    """Switches, links, VLANs, mean and maximum switches on a path, paths on a channel."""

    switches: int
    links: int
    vlans: int
    mean: float
    most: int
    load: int


def dimension_order(spec: str) -> Plan:
    """Every tie goes the positive way, on one virtual channel; one VLAN for each row of switches.

    VL(-, y) is all switches, all y links, and the x links of row y: hosts of row y send in it.
    """
    options: dict[str, Any] = {"vcs": 1, "select": "low-port"}
    plan = make_plan(load(spec), "dor", **options)
    assert plan.fabric.grid is not None
    row = plan.row_switch // plan.fabric.grid.dims[0]
    vlans = np.repeat((2 + row)[:, None], len(plan.fabric.switches), axis=1).astype(np.int32)
    return replace(plan, pair_vlans=vlans)


def cut_mesh() -> Plan:
    return make_plan(load("mtree,4,4"), "updown")


def clos() -> Plan:
    fabric = load("clos,4,hosts=2")
    switch = [fabric.switch_index[host.switch] for host in fabric.hosts]
    return plan_by_trees(fabric, clos_trees(fabric), [at % 4 for at in switch])


def fat_tree() -> Plan:
    fabric = load("fattree,2,4,2")
    return plan_by_trees(fabric, fat_tree_trees(fabric, 2, 2), [h % 4 for h in range(16)])


# The plan, what it comes to, and the row as printed.
TABLE: list[tuple[Callable[[], Plan], Row, Row]] = [
    (
        lambda: dimension_order("mesh,2,4,hosts=2"),
        Row(8, 10, 4, 2.75, 5, 32),
        Row(8, 10, 4, 2.75, 5, 24),
    ),
    (
        lambda: dimension_order("torus,2,4,hosts=2"),
        Row(8, 12, 4, 2.50, 4, 24),
        Row(8, 12, 4, 2.50, 3, 32),
    ),
    (clos, Row(8, 16, 4, 2.25, 3, 16), Row(8, 16, 4, 2.25, 3, 12)),
    (cut_mesh, Row(16, 15, 1, 4.81, 10, 64), Row(16, 15, 1, 4.81, 10, 64)),
    (
        lambda: dimension_order("mesh,4,4"),
        Row(16, 24, 4, 3.50, 7, 16),
        Row(16, 24, 4, 3.50, 7, 16),
    ),
    (
        lambda: dimension_order("torus,4,4"),
        Row(16, 32, 4, 3.00, 5, 12),
        Row(16, 32, 4, 3.00, 5, 12),
    ),
    (fat_tree, Row(14, 24, 4, 3.75, 5, 16), Row(14, 24, 4, 3.75, 5, 16)),
]
DIFFERENT = {
    "mesh,2,4,hosts=2": {"load"},
    "torus,2,4,hosts=2": {"most", "load"},
    "clos,4,hosts=2": {"load"},
}


@pytest.mark.parametrize(("make", "computed", "printed"), TABLE)
def test_table_1(make: Callable[[], Plan], computed: Row, printed: Row) -> None:
    plan = make()
    verdict = check(plan.fabric, compile_rules(plan))
    assert verdict.undelivered == 0
    found = Row(
        len(plan.fabric.switches),
        len(plan.fabric.links),
        len(np.unique(plan.vlans)),
        round(verdict.mean_switches, 2),
        verdict.max_switches,
        verdict.max_channel_load,
    )
    assert found == computed
    differ = {key for key in vars(found) if getattr(found, key) != getattr(printed, key)}
    assert differ == DIFFERENT.get(plan.fabric.name, set())


def test_the_loads_of_the_two_small_grids_are_each_others() -> None:
    mesh, torus = TABLE[0], TABLE[1]
    assert (mesh[1].load, torus[1].load) == (torus[2].load, mesh[2].load)


def test_no_path_assignment_has_the_printed_maximum_on_the_small_torus() -> None:
    """Two of its switches are three links apart, so four switches are on every path."""
    plan = make_plan(load("torus,2,4,hosts=2"), "minimal")
    assert plan.summary()["max_switches"] == 4


def test_twelve_on_the_clos_is_sixteen_without_the_pairs_of_its_own_link() -> None:
    """The centre link of tree i carries 16 paths; 4 of these join the hosts at its two ends."""
    plan = clos()
    channel = int(plan.loads.argmax())
    tail, head = (int(end[channel]) for end in (plan.channels.tail, plan.channels.head))
    own = plan.receivers[tail] * plan.receivers[head]
    assert (plan.loads[channel], own, plan.loads[channel] - own) == (16, 4, 12)


def test_the_vlans_of_the_square_torus_are_no_trees() -> None:
    """Unicasts are forwarded right by (VLAN, destination), but floods would go round."""
    with pytest.raises(PlanError, match="has a loop"):
        export(dimension_order("torus,4,4"))
    plan = make_plan(load("torus,4,4"), "dor", vcs=1, select="low-port", vlans="tree")
    assert plan.vlan_count == 16
    assert export(plan).cycle == plan.cycle


@pytest.mark.parametrize("make", [made[0] for made in TABLE if made[1].mean != 3.0])
def test_the_other_vlans_are_trees(make: Callable[[], Plan]) -> None:
    plan = make()
    assert export(plan).cycle == plan.cycle
    assert bool(plan.cycle) == plan.fabric.name.startswith("torus")


def test_the_torus_closes_a_cycle_as_printed() -> None:
    assert dimension_order("torus,4,4").cycle == ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]
