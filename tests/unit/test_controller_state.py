"""What the controller knows and reports, without any switch."""

import json

import pytest

from controller.config import Config
from controller.reconcile import FoundRule
from controller.state import DUPLICATE_MEMORY_S, FabricState
from topologies import KnotlessError, load

STARTED_S = 1000.0
SOON_S = STARTED_S + 1
LATER_S = STARTED_S + 60


@pytest.fixture
def state() -> FabricState:
    config = Config(fabric="ring,4", engine="updown")
    state = FabricState.compute(config, load(config.fabric))
    state.started_s = STARTED_S
    return state


def connect_all(state: FabricState) -> None:
    for switch in state.switches.values():
        switch.connect(set(switch.needs))
        switch.installed = True


def test_every_switch_has_rules_and_ports(state: FabricState) -> None:
    assert [(s.name, s.dpid) for s in state.switches.values()] == [
        ("s1", 1),
        ("s2", 2),
        ("s3", 3),
        ("s4", 4),
    ]
    for switch in state.switches.values():
        assert switch.wanted.rules
        assert len(switch.needs) == 3, "one host and two neighbours"


def test_a_switch_gets_time_to_connect_before_it_is_a_problem(state: FabricState) -> None:
    assert state.problems(SOON_S) == []
    assert state.problems(LATER_S) == [f"s{i} (dpid {i}) is not connected" for i in range(1, 5)]


def test_ready_means_all_installed(state: FabricState) -> None:
    assert not state.ready
    connect_all(state)
    assert state.ready
    state.switches[2].disconnect()
    assert not state.ready
    state.switches[2].connect(set(state.switches[2].needs))
    assert not state.ready, "what it holds is not known yet"


def test_missing_ports_are_named_with_their_far_ends(state: FabricState) -> None:
    connect_all(state)
    switch = state.switches[1]
    switch.see_ports({1, 99})
    assert switch.missing_ports == (2, 3)
    lines = state.problems(LATER_S)
    assert len(lines) == 2
    assert lines[0].startswith("s1 (dpid 1) has no port 2, which the fabric declares to s")
    switch.see_ports({1, 2, 3})
    assert state.problems(LATER_S) == []


def test_refusals_are_reported_up_to_a_limit(state: FabricState) -> None:
    connect_all(state)
    state.switches[3].refused = tuple(f"to add rule {i}: FULL" for i in range(1000))
    lines = state.problems(LATER_S)
    assert lines[0] == "s3 (dpid 3) refused to add rule 0: FULL"
    assert lines[-1] == "s3 (dpid 3) refused 997 more such changes"
    assert len(lines) == 4


def test_foreign_rules_are_reported(state: FabricState) -> None:
    connect_all(state)
    state.switches[4].foreign = (FoundRule(0, 1, (), 0xABC, None),)
    (line,) = state.problems(LATER_S)
    assert line.startswith("s4 (dpid 4) holds 1 rules that are not Knotless's (cookie 0xabc")


def test_unknown_and_duplicate_dpids_are_reported(state: FabricState) -> None:
    connect_all(state)
    state.unknown.add(77)
    state.duplicate_dpids[2] = LATER_S
    unknown, duplicate = state.problems(LATER_S + 1)
    assert "dpid 77" in unknown
    assert "(it has 1 to 4)" in unknown
    assert duplicate == "two switches say they are s2 (dpid 2): only the first is served"
    assert state.problems(LATER_S + DUPLICATE_MEMORY_S + 1) == [unknown]


def test_status_is_json_with_all_that_others_read(state: FabricState) -> None:
    status = json.loads(json.dumps(state.status(SOON_S)))
    assert status["fabric"] == "ring,4"
    assert status["engine"] == "updown"
    assert status["ready"] is False
    assert status["switches"]["s1"] == {
        "dpid": 1,
        "connected": False,
        "installed": False,
        "rules": len(state.switches[1].wanted.rules),
        "missing_ports": [],
    }
    assert status["plan"]["acyclic"] is True
    assert status["check"]["undelivered"] == 0


def test_an_engine_that_does_not_fit_is_an_error_of_one_line() -> None:
    with pytest.raises(KnotlessError) as caught:
        FabricState.compute(Config(fabric="ring,4", engine="magic"), load("ring,4"))
    assert "magic" in str(caught.value)
    assert "\n" not in str(caught.value)
