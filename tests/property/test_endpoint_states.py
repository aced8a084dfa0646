"""Verdicts with end points, against all states of tiny fabrics."""

from __future__ import annotations

import random
from contextlib import suppress
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

from knotless.base.flow_control import FlowControl
from knotless.forwarding.from_plan import state_of_plan
from knotless.forwarding.state import ForwardingState
from knotless.routing.graphs.dependencies import virtual_channel
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.traffic.endpoints import EndpointModel
from knotless.verification.endpoint_verdict import verdict_with_endpoints
from knotless.verification.endpoint_waits import EndpointWaits
from tests.support.host_messages import AllStates, Buffer, TooManyStatesError
from tests.support.random_fabrics import small_fabric

MOST_STATES = 60_000
CONTROLS = (FlowControl.PAUSE, FlowControl.PFC)


def random_model(rng: random.Random, hosts: list[str], *, with_roles: bool) -> EndpointModel:
    """Return a chain of up to three classes, each of which is sent for the one before."""
    names = ["request", "reply", "ack"][: rng.choice([1, 2, 2, 2, 3])]
    values: dict[str, dict[str, Any]] = {}
    for place, name in enumerate(names):
        values[name] = {"priority": rng.choice([0, 0, place])}
        if place + 1 < len(names):
            values[name]["sends_before_taking"] = [names[place + 1]]
            values[name]["reserve"] = rng.choice([0, 0, 1, 2])
    if rng.random() < 0.6:
        values["request"]["outstanding"] = rng.choice([1, 2])
    roles = {role: rng.sample(hosts, rng.choice([1, 2])) for role in ("clients", "servers")}
    if not with_roles:
        return EndpointModel.from_values({"classes": values}, "random")
    return EndpointModel.from_values({"classes": values, "roles": roles}, "random")


def node_of(waits: EndpointWaits, buffer: Buffer) -> int:
    kind, number, priority = buffer
    if kind == "sends":
        number = waits.sends_on(number)
    elif kind == "receives":
        number = waits.receives_on(number)
    return virtual_channel(number, priority)


class Case(NamedTuple):
    """Whether a fabric is called safe, reaches a deadlock, and reaches the cycle that is named."""

    safe: bool
    reaches: bool
    reaches_named: bool


def judged_case(rng: random.Random) -> Case:
    """Judge a random fabric and random end points; raises TooManyStatesError."""
    with_roles = rng.random() < 0.3
    fabric = small_fabric(rng, most_switches=3, most_hosts=2 + with_roles)
    state = state_of_plan(make_plan(fabric, rng.choice(["updown", "minimal"])))
    model = random_model(rng, [host.name for host in fabric.hosts], with_roles=with_roles)
    return judged(state, model, rng.choice(CONTROLS))


def judged(state: ForwardingState, model: EndpointModel, control: FlowControl) -> Case:
    """Judge a fabric, and follow all of its states; raises TooManyStatesError."""
    verdict = verdict_with_endpoints(state, model, control)
    waits = EndpointWaits(state, model, control)
    steps = {(holds, requests) for holds, requests in waits.edges.tolist()}
    reached = []
    for cycle in AllStates(state, model, control, waits.vcs).deadlocks(MOST_STATES):
        nodes = [node_of(waits, buffer) for buffer in cycle]
        assert not verdict.safe, (state.fabric, model.text, cycle)
        assert {*pairwise([*nodes, nodes[0]])} <= steps, (state.fabric, model.text, cycle)
        reached.append({*map(waits.name_of, nodes)})
    return Case(verdict.safe, bool(reached), {*verdict.blocked} in reached)


@pytest.mark.seeds(200)
def test_nothing_called_safe_reaches_a_deadlock(seed: int) -> None:
    """And each deadlock that is reached is a cycle of the waits that the verdict is on."""
    with suppress(TooManyStatesError):
        judged_case(random.Random(seed))  # noqa: S311


def requests(**of_request: int) -> EndpointModel:
    values = {"request": {"sends_before_taking": ["reply"], **of_request}, "reply": {}}
    return EndpointModel.from_values({"classes": values}, "requests")


@pytest.mark.parametrize(
    ("of_request", "case"),
    [
        ({}, Case(False, True, True)),
        ({"outstanding": 3, "reserve": 3}, Case(True, False, False)),
        ({"outstanding": 2, "reserve": 1}, Case(False, False, False)),
        ({"outstanding": 3, "reserve": 1}, Case(False, True, True)),
        ({"outstanding": 9, "reserve": 1}, Case(False, True, True)),
        ({"reserve": 2}, Case(False, True, True)),
    ],
)
def test_two_hosts_of_one_switch(of_request: dict[str, int], case: Case) -> None:
    """Without a bound, requests fill any reserve; a small bound leaves buffers empty."""
    state = state_of_plan(make_plan(load("flat,2")))
    assert judged(state, requests(**of_request), FlowControl.PAUSE) == case
