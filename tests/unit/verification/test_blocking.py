"""The rule for adaptive choices, against trying all sets, and against the rule of cycles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knotless.base.flow_control import FlowControl
from knotless.forwarding.from_plan import state_of_plan
from knotless.routing.graphs.channels import VCS_PER_CHANNEL
from knotless.routing.graphs.dependencies import Edges, find_cycle, merged, waiting
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.verification.dependencies import (
    Wait,
    blocking_steps,
    edges_of,
    judge,
    removal_order,
)
from tests.support.reference import greatest_blocking_set

NODES = 9
EDGES = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), max_size=14)
SEVERAL = st.sets(st.integers(0, NODES - 1), min_size=1, max_size=4)
WAITS = st.lists(st.tuples(st.integers(0, NODES - 1), SEVERAL), max_size=14)


def array(edges: list[tuple[int, int]]) -> Edges:
    return np.array(sorted(set(edges)), dtype=np.int64).reshape(-1, 2)


@pytest.mark.examples(3)
@given(EDGES, WAITS)
def test_the_greatest_set_is_found(
    edges: list[tuple[int, int]], waits: list[tuple[int, set[int]]]
) -> None:
    rows = array(edges)
    several = [Wait(holds, sorted(requests), 0, 0) for holds, requests in waits]
    everything = [(holds, [requests]) for holds, requests in rows.tolist()]
    everything += [(wait.holds, wait.requests) for wait in several]
    by_hand = greatest_blocking_set(
        [(("", holds, 0), frozenset(("", node, 0) for node in of)) for holds, of in everything]
    )
    held = {holds for holds, _ in everything}
    blocked = {node for _, node, _ in by_hand}
    order = removal_order(rows, several)
    assert sorted(order) == sorted(held - blocked)
    steps = blocking_steps(rows, several)
    members = {step.holds for step in steps}
    assert bool(steps) == bool(blocked)
    assert members <= blocked
    assert len(members) == len(steps)
    for step in steps:
        assert everything[step.cause] == (step.holds, step.requests)
        assert set(step.requests) <= members


@pytest.mark.examples(3)
@given(EDGES)
def test_without_several_it_is_the_rule_of_cycles(edges: list[tuple[int, int]]) -> None:
    rows = array(edges)
    cycle = find_cycle(rows)
    assert [step.holds for step in blocking_steps(rows, [])] == cycle
    held = set(rows[:, 0].tolist())
    assert (set(removal_order(rows, [])) == held) is (not cycle)


@pytest.mark.parametrize("control", ["pause", "pfc", "none"])
@pytest.mark.parametrize(
    ("spec", "engine"),
    [("torus,5,5", "dor"), ("ring,6", "minimal"), ("fattree3,4", "fattree"), ("mesh,3,3", "lash")],
)
def test_the_core_finds_a_cycle_if_there_is_one(spec: str, engine: str, control: str) -> None:
    state = state_of_plan(make_plan(load(spec), engine))
    links = FlowControl(control).switch_links
    cycle = find_cycle(waiting(edges_of(state), FlowControl(control)))
    classes = merged(np.arange(VCS_PER_CHANNEL), links).tolist()
    if links.pauses:
        assert state.core.is_acyclic(classes) == (not cycle)
    judged = judge(state, FlowControl(control))
    assert (judged.cycle, len(judged.witnesses)) == (cycle, len(cycle))
    columns = state.dependencies[:, [1, 3]]
    assert state.priorities == {*np.unique(columns).tolist()}
