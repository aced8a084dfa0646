"""Multicast groups with any members on generated fabrics, with every engine that supports them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knotless.base.errors import PlanError
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.directory import write_dir
from knotless.routing.plan import make_plan
from knotless.topologies import Fabric
from knotless.topologies.numbering import mac_text
from knotless.verification.check import check
from knotless.verification.checked_plan import CheckedPlan
from knotless.verification.dependencies import edges_of
from tests.support.fabric_strategies import graphs, grids
from tests.support.one_switch import OneByOne
from tests.support.reference_rules import RuleReference
from tests.support.rule_engines import RULE_ENGINES

FABRICS = st.one_of(graphs(), grids())


@st.composite
def groups(draw: st.DrawFn, fabric: Fabric) -> dict[int, list[str]]:
    """One to three groups of hosts of the fabric."""
    names = [host.name for host in fabric.hosts]
    members = st.lists(st.sampled_from(names), min_size=1, unique=True)
    return draw(st.dictionaries(st.integers(1, 65535), members, min_size=1, max_size=3))


@pytest.mark.parametrize("engine", RULE_ENGINES)
@pytest.mark.examples(0.15)
@given(data=st.data())
def test_members_get_one_copy_and_nothing_new_waits(engine: str, data: st.DataObject) -> None:
    fabric = data.draw(FABRICS)
    wanted = data.draw(groups(fabric))
    try:
        plan = make_plan(fabric, engine, multicast=wanted)
    except PlanError:
        return  # an engine for other fabrics
    rules = compile_rules(plan)
    verdict = check(fabric, rules, multicast=plan.multicast)
    assert verdict.problems == []
    assert (verdict.undelivered, verdict.multicasts_undelivered) == (0, 0)
    assert verdict.acyclic is not bool(CheckedPlan(plan).cycle)

    tracer = OneByOne(fabric, rules)
    tracer.floods(plan.multicast)
    without_groups = edges_of(CheckedPlan(make_plan(fabric, engine)).state)
    assert tracer.edges <= set(map(tuple, without_groups.tolist()))


@pytest.mark.examples(0.25)
@given(data=st.data())
def test_a_second_reading_of_the_files_agrees(data: st.DataObject) -> None:
    fabric = data.draw(FABRICS)
    plan = make_plan(fabric, "updown", multicast=data.draw(groups(fabric)))
    with tempfile.TemporaryDirectory() as folder:
        write_dir(fabric, compile_rules(plan), folder)
        reference = RuleReference(Path(folder))
    for group in plan.multicast:
        for source in reference.hosts:
            due = tuple(sorted(set(group.members) - {source}))
            assert reference.sent(source, mac_text(group.address)) == {due}
