"""Table 1 of Otsuka et al., from the compiled rules of plans with ``--vlans tree``.

Where the printed table says something else, that stands beside it, and what we can say
of why is in docs/table-1.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from knotless.base.errors import PlanError
from knotless.forwarding.dot1q.from_plan import export
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.routing.plan import Plan, make_plan
from knotless.topologies import load
from knotless.verification.check import check
from knotless.verification.checked_plan import CheckedPlan
from tests.support.dot1q_exports import verdicts_of


@dataclass(frozen=True)
class Row:
    """Switches, links, VLANs, mean and maximum switches on a path, paths on a channel."""

    switches: int
    links: int
    vlans: int
    mean: float
    most: int
    load: int


# All ties in the torus go in the positive direction, on one virtual channel.
ONE_WAY: dict[str, Any] = {"vcs": 1, "select": "low-port"}

# Fabric, engine and its options, the computed row, and the printed row.
TABLE: list[tuple[str, str, dict[str, Any], Row, Row]] = [
    (
        *("mesh,2,4,hosts=2", "dor", {}),
        Row(8, 10, 4, 2.75, 5, 32),
        Row(8, 10, 4, 2.75, 5, 24),
    ),
    (
        *("torus,2,4,hosts=2", "dor", ONE_WAY),
        Row(8, 12, 4, 2.50, 4, 24),
        Row(8, 12, 4, 2.50, 3, 32),
    ),
    (
        *("clos,4,hosts=2", "smodk", {"select": "low-port"}),
        Row(8, 16, 4, 2.25, 3, 16),
        Row(8, 16, 4, 2.25, 3, 12),
    ),
    (
        *("mtree,4,4", "updown", {}),
        Row(16, 15, 1, 4.81, 10, 64),
        Row(16, 15, 1, 4.81, 10, 64),
    ),
    (
        *("mesh,4,4", "dor", {}),
        Row(16, 24, 4, 3.50, 7, 16),
        Row(16, 24, 4, 3.50, 7, 16),
    ),
    (
        *("torus,4,4", "dor", ONE_WAY),
        Row(16, 32, 16, 3.00, 5, 12),
        Row(16, 32, 4, 3.00, 5, 12),
    ),
    (
        *("fattree,2,4,2", "smodk", {}),
        Row(14, 24, 4, 3.75, 5, 16),
        Row(14, 24, 4, 3.75, 5, 16),
    ),
]
DIFFERENT = {
    "mesh,2,4,hosts=2": {"load"},
    "torus,2,4,hosts=2": {"most", "load"},
    "clos,4,hosts=2": {"load"},
    "torus,4,4": {"vlans"},
}


def planned(number: int) -> Plan:
    """Return the plan of a row."""
    spec, engine, options, _, _ = TABLE[number]
    return make_plan(load(spec), engine, vlans="tree", **options)


ROWS = range(len(TABLE))


@pytest.mark.parametrize("number", ROWS, ids=[row[0] for row in TABLE])
def test_table_1(number: int) -> None:
    plan, (*_, computed, printed) = planned(number), TABLE[number]
    verdict = check(plan.fabric, compile_rules(plan))
    assert verdict.undelivered == 0
    row = Row(
        len(plan.fabric.switches),
        len(plan.fabric.links),
        plan.vlan_count,
        round(verdict.mean_switches, 2),
        verdict.max_switches,
        int(verdict.max_channel_load),
    )
    assert row == computed
    differ = {key for key in vars(row) if getattr(row, key) != getattr(printed, key)}
    assert differ == DIFFERENT.get(plan.fabric.name, set())


@pytest.mark.parametrize("number", ROWS, ids=[row[0] for row in TABLE])
def test_the_vlans_are_trees(number: int) -> None:
    """Ordinary switches can use them; floods close no cycle that paths do not close."""
    plan = planned(number)
    assert verdicts_of(export(plan))["untagged"].cycle == CheckedPlan(plan).cycle
    assert bool(CheckedPlan(plan).cycle) == plan.fabric.name.startswith("torus")


def rows_as_vlans() -> Plan:
    """The square torus as in the paper: VL(-, y) is all y links and the x links of row y."""
    plan = make_plan(load("torus,4,4"), "dor", **ONE_WAY)
    vlans = np.repeat((2 + plan.row_switch // 4)[:, None], 16, axis=1).astype(np.int32)
    return replace(plan, pair_vlans=vlans)


def test_the_printed_vlans_of_the_square_torus_are_no_trees() -> None:
    """Unicasts are forwarded correctly by (VLAN, destination), but floods would loop."""
    plan = rows_as_vlans()
    verdict = check(plan.fabric, compile_rules(plan))
    assert (plan.vlan_count, verdict.undelivered, verdict.max_channel_load) == (4, 0, 12)
    with pytest.raises(PlanError, match="has a loop"):
        export(plan)


def test_the_loads_of_the_two_small_grids_are_each_others() -> None:
    mesh, torus = TABLE[0], TABLE[1]
    assert (mesh[3].load, torus[3].load) == (torus[4].load, mesh[4].load)


def test_no_path_assignment_has_the_printed_maximum_on_the_small_torus() -> None:
    """Two of its switches are three links apart, so four switches are on every path."""
    plan = make_plan(load("torus,2,4,hosts=2"), "minimal")
    assert CheckedPlan(plan).summary()["max_switches"] == 4


def test_twelve_on_the_clos_is_sixteen_without_the_pairs_of_its_own_link() -> None:
    """The centre link of tree i carries 16 paths; 4 of these join the hosts at its two ends."""
    plan = planned(2)
    channel = int(CheckedPlan(plan).loads.argmax())
    tail, head = (int(end[channel]) for end in (plan.channels.tail, plan.channels.head))
    own = plan.receivers[tail] * plan.receivers[head]
    assert (CheckedPlan(plan).loads[channel], own, CheckedPlan(plan).loads[channel] - own) == (
        16,
        4,
        12,
    )


def test_the_torus_closes_a_cycle_as_printed() -> None:
    assert CheckedPlan(rows_as_vlans()).cycle == ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]
