"""The guarantees of each engine on generated fabrics, checked by following the compiled rules."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knotless.base.errors import PlanError
from knotless.base.flow_control import FlowControl
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.routing.engine import engines
from knotless.routing.graphs.channels import channels_of
from knotless.routing.graphs.state_graph import plain_graph
from knotless.routing.graphs.task import MAX_VCS
from knotless.routing.plan import make_plan
from knotless.routing.vlans.assignment import TAGGINGS
from knotless.topologies import Fabric, load
from knotless.verification.check import check, verdict_of
from knotless.verification.checked_plan import CheckedPlan
from knotless.verification.dependencies import removal_order, waits_of
from tests.support.fabric_strategies import (
    cluster_fabrics,
    cubes,
    cut,
    dragonflies,
    dragonflies_plus,
    graphs,
    grids,
    hyperxs,
    of_diameter_2,
    rails_and_clos,
    shuffled,
    thinned,
    without_a_switch,
)
from tests.support.rule_engines import RULE_ENGINES


@dataclass(frozen=True)
class Promise:
    """The guarantees of an engine.

    ``needs`` is what fabrics it takes: any, grids (with all their links), trees (by levels),
    whole trees (with all their links), lsft, a family, or small (of diameter 4 at most). ``one_vc``
    engines never use another. Engines of a family ``may_refuse`` a fabric that lacks links.
    """

    engine: str
    needs: str = "any"
    minimal: bool = False
    one_vc: bool = False
    acyclic: bool = True
    may_refuse: bool = False
    most_vcs: int = MAX_VCS


PROMISES = [
    Promise("cube", needs="cubes", minimal=True, most_vcs=2),
    Promise("dfsssp", minimal=True),
    Promise("dimwar", needs="hyperxs", may_refuse=True, most_vcs=2),
    Promise("dl", minimal=True),
    Promise("dor", needs="grids", minimal=True),
    Promise("dragonfly", needs="dragonflies", may_refuse=True, most_vcs=2),
    Promise("dragonfly-valiant", needs="dragonflies", may_refuse=True, most_vcs=3),
    Promise("dragonflyplus", needs="dragonflies+", may_refuse=True, one_vc=True),
    Promise("dragonflyplus-valiant", needs="dragonflies+", may_refuse=True, most_vcs=2),
    Promise("fattree", needs="trees", one_vc=True),
    Promise("hyperx", needs="hyperxs", may_refuse=True, one_vc=True),
    Promise("lash", minimal=True),
    Promise("lsft", needs="lsft", minimal=True, one_vc=True),
    Promise("lturn", one_vc=True),
    Promise("minimal", minimal=True, one_vc=True, acyclic=False),
    Promise("prefix", one_vc=True),
    Promise("rturn", one_vc=True),
    Promise("sbp", minimal=True),
    Promise("sbp-reduced", minimal=True),
    Promise("smodk", needs="whole trees", minimal=True, one_vc=True),
    Promise("updown"),
    Promise("valiant", needs="small"),
]


TREES = [
    "fattree,2,4,2",
    "fattree,1,2,3",
    "fattree,2,2,3",
    "fattree,3,3,2",
    "fattree2,2",
    "fattree2,5",
    "fattree3,2",
    "fattree3,4",
    "lsft,2",
    "lsft,3",
]


@st.composite
def trees(draw: st.DrawFn) -> Fabric:
    """Fat-trees of every kind."""
    spec = draw(st.sampled_from(TREES))
    return load(f"{spec},hosts={draw(st.integers(1, 3))}")


@st.composite
def squares(draw: st.DrawFn) -> Fabric:
    """Latin-square fat-trees of one side and of two."""
    order = draw(st.sampled_from([2, 3, 4]))
    sides = draw(st.integers(1, 2))
    return load(f"lsft,{order},sides={sides},hosts={draw(st.integers(1, 3))}")


def joined_by_going_up_and_down(fabric: Fabric) -> bool:
    """Return whether every two switches with hosts have a common switch above (or are the same)."""
    level = {name: 0 for name, hosts in fabric.hosts_at.items() if hosts}
    for distance in range(1, len(fabric.switches)):
        for name, ports in fabric.neighbours.items():
            if any(level.get(peer) == distance - 1 for peer, _ in ports.values()):
                level.setdefault(name, distance)

    def above(name: str) -> set[str]:
        further = {f for f, _ in fabric.neighbours[name].values() if level[f] > level[name]}
        return {name}.union(*map(above, further))

    tops = [above(name) for name in level if level[name] == 0]
    return all(a & b for a in tops for b in tops)


@st.composite
def random_fabrics(draw: st.DrawFn) -> Fabric:
    """Random regular graphs."""
    switches = 2 * draw(st.integers(3, 10))
    degree = draw(st.integers(2, 4))
    seed, hosts = draw(st.integers(1, 1000)), draw(st.integers(1, 3))
    return load(f"random,{switches},degree={degree},hosts={hosts},seed={seed}")


def damaged(fabrics: st.SearchStrategy[Fabric]) -> st.SearchStrategy[Fabric]:
    """Return fabrics without some links or a switch, and some hosts."""
    return thinned(st.one_of(cut(fabrics), without_a_switch(fabrics)))


FABRICS = {
    "any": st.one_of(
        *(graphs(), cut(grids()), cut(trees()), cut(random_fabrics())),
        *(cut(cluster_fabrics()), without_a_switch(cluster_fabrics())),
    ),
    "cubes": cubes(),
    "dragonflies": st.one_of(thinned(dragonflies()), damaged(dragonflies())),
    "dragonflies+": st.one_of(thinned(dragonflies_plus()), damaged(dragonflies_plus())),
    "hyperxs": st.one_of(thinned(hyperxs()), damaged(hyperxs())),
    "small": st.one_of(thinned(of_diameter_2()), graphs(), damaged(of_diameter_2())),
    "grids": grids(),
    "trees": st.one_of(thinned(trees()), cut(trees()), cut(rails_and_clos())),
    "whole trees": thinned(st.one_of(trees(), squares())),
    "lsft": thinned(squares()),
}


def test_there_is_a_row_for_every_engine_with_rules() -> None:
    assert [promise.engine for promise in PROMISES] == RULE_ENGINES


def promise_holds(promise: Promise, data: st.DataObject) -> bool:
    """Draw a fabric and follow the rules of its plan; return False if the engine must refuse it."""
    fabric = data.draw(FABRICS[promise.needs])
    select = data.draw(st.sampled_from(["spread", "low-port"]))
    root = None
    if engines()[promise.engine].has_root:
        root = data.draw(st.sampled_from([None, *(switch.name for switch in fabric.switches)]))
    diameter = plain_graph(channels_of(fabric)).hops().max()
    if promise.engine.startswith("sbp") and diameter > MAX_VCS:
        return False  # refused: see the test of that
    if promise.engine == "valiant" and 2 * diameter > MAX_VCS:
        return False  # refused: see the test of that
    if promise.engine == "fattree" and not joined_by_going_up_and_down(fabric):
        with pytest.raises(PlanError, match="needs a path up and then down"):
            make_plan(fabric, promise.engine, select=select)
        return False
    tagging = data.draw(st.sampled_from(TAGGINGS))
    try:
        plan = make_plan(fabric, promise.engine, select=select, root=root, tagging=tagging)
    except PlanError as refused:
        if not promise.may_refuse or "which lacks links; updown runs on any" not in str(refused):
            raise
        built = load(fabric.name)
        assert (built.switches, built.links) != (fabric.switches, fabric.links)
        return False
    checked = CheckedPlan(plan)
    summary = checked.summary()
    read = state_of_rules(fabric, checked.rules, tags=plan.host_tags())
    assert checked.state.difference(read) == ""
    verdict = verdict_of(read, "pfc")
    assert verdict.problems == []
    assert (verdict.undelivered, verdict.broadcasts_undelivered) == (0, 0)
    assert verdict.acyclic is summary["acyclic"] is verdict.safe
    _, edges, several = waits_of(read, FlowControl.PFC)
    assert several == []
    everything_is_removed = set(removal_order(edges, [])) == set(edges[:, 0].tolist())
    assert everything_is_removed is verdict.acyclic
    assert verdict.max_channel_load == summary["max_channel_load"]
    if promise.acyclic:
        assert verdict.acyclic
    if promise.minimal:
        assert summary["minimal"] is True
    assert plan.vcs <= (1 if promise.one_vc else promise.most_vcs)
    return True


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.engine)
@pytest.mark.examples(0.4)
@given(data=st.data())
def test_promises_hold(promise: Promise, data: st.DataObject) -> None:
    promise_holds(promise, data)


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.engine)
@pytest.mark.examples(0.1)
@given(data=st.data())
def test_the_order_of_what_a_file_lists_changes_no_path(
    promise: Promise, data: st.DataObject
) -> None:
    fabric = data.draw(FABRICS[promise.needs])
    try:
        a = make_plan(fabric, promise.engine)
    except PlanError:
        return  # told by the test above
    b = make_plan(data.draw(shuffled(fabric)), promise.engine)
    for source in fabric.hosts:
        for target in fabric.hosts:
            assert a.path(source.name, target.name) == b.path(source.name, target.name)


@pytest.mark.examples(0.4)
@given(FABRICS["any"], st.integers(1, 8))
def test_descending_layers_keep_to_any_number_of_virtual_channels(fabric: Fabric, vcs: int) -> None:
    plan = make_plan(fabric, "dl", vcs=vcs)
    assert plan.vcs <= vcs
    verdict = check(fabric, compile_rules(plan))
    assert verdict.ok
    assert verdict.acyclic


@pytest.mark.parametrize("engine", ["lash", "dfsssp", "sbp", "sbp-reduced"])
@pytest.mark.examples(0.3)
@given(fabric=FABRICS["any"])
def test_a_plan_that_needs_more_virtual_channels_is_refused_with_their_number(
    engine: str, fabric: Fabric
) -> None:
    try:
        make_plan(fabric, engine, select="low-port", vcs=1)
        return
    except PlanError as refused:
        message = re.search(r"needs (\d+) virtual channels on .*, 1 are allowed", str(refused))
    assert message is not None
    needed = int(message[1])
    if needed > MAX_VCS:
        return
    assert make_plan(fabric, engine, select="low-port", vcs=needed).vcs == needed
    with pytest.raises(PlanError, match=f"needs {needed} virtual .*, {needed - 1} are allowed"):
        make_plan(fabric, engine, select="low-port", vcs=needed - 1)


@pytest.mark.examples(0.5)
@given(FABRICS["any"])
def test_buffer_pools_count_hops(fabric: Fabric) -> None:
    try:
        plan = make_plan(fabric, "sbp")
    except PlanError:
        return
    counted = np.arange(plan.routes.channels.shape[2])
    used = plan.routes.channels >= 0
    assert (np.where(used, plan.routes.priorities - counted, 0) == 0).all()
