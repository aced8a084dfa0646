"""Desired state, observations and reports of the controller, without any switch."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from knotless.controller.config import Config
from knotless.controller.desired import DesiredState, Difference
from knotless.controller.observed import DUPLICATE_MEMORY_S, Observed
from knotless.controller.reconcile import FoundRule
from knotless.controller.status import Status, separation
from knotless.controller.updates.fabric_state import FabricState
from knotless.topologies import KnotlessError, load

STARTED_S = 1000.0
SOON_S = STARTED_S + 1
LATER_S = STARTED_S + 60


@pytest.fixture(scope="module")
def desired() -> DesiredState:
    config = Config(fabric="ring,4", engine="updown")
    return DesiredState.compute(config, load(config.fabric))


@pytest.fixture
def status(desired: DesiredState) -> Status:
    status = Status(FabricState(desired))
    status.start(STARTED_S)
    return status


def connect(observed: Observed, *dpids: int) -> None:
    for dpid in dpids:
        switch = observed.switches[dpid]
        switch.connect(dict.fromkeys(switch.needs, True))
        switch.installed = True


def connect_all(status: Status) -> None:
    connect(status.state.observed, *status.state.observed.switches)


def set_port(observed: Observed, dpid: int, port: int, up: bool) -> None:
    switch = observed.switches[dpid]
    assert switch.ports is not None
    switch.see_ports({**switch.ports, port: up})


# --- desired ---------------------------------------------------------------------------------


def test_every_switch_has_rules_and_ports(status: Status) -> None:
    switches = status.state.observed.switches.values()
    assert [(s.name, s.dpid) for s in switches] == [("s1", 1), ("s2", 2), ("s3", 3), ("s4", 4)]
    for switch in switches:
        assert status.state.desired.rules[switch.name].rules
        assert len(switch.needs) == 3, "one host and two neighbours"


def test_an_engine_that_does_not_fit_is_an_error_of_one_line() -> None:
    with pytest.raises(KnotlessError) as caught:
        DesiredState.compute(Config(fabric="ring,4", engine="magic"), load("ring,4"))
    assert "magic" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_same_configuration_changes_nothing(desired: DesiredState) -> None:
    again = DesiredState.compute(desired.config, load("ring,4"))
    assert Difference.between(desired, again).nothing
    patient = desired.config.model_copy(update={"connect_timeout_s": 99.0})
    assert Difference.between(desired, DesiredState.compute(patient, load("ring,4"))).nothing


def test_another_root_changes_the_rules_of_all_switches(desired: DesiredState) -> None:
    config = Config(fabric="ring,4", engine="updown", root="s3")
    difference = Difference.between(desired, DesiredState.compute(config, load("ring,4")))
    assert not difference.nothing
    assert not difference.fabric
    assert difference.switches == ("s1", "s2", "s3", "s4")


def test_another_fabric_is_seen_even_if_no_rule_changes(desired: DesiredState) -> None:
    fabric = load("ring,4")
    slower = replace(fabric, links=(replace(fabric.links[0], rate_mbps=5.0), *fabric.links[1:]))
    difference = Difference.between(desired, DesiredState.compute(desired.config, slower))
    assert difference == Difference(fabric=True, switches=())
    assert not difference.nothing


# --- observed --------------------------------------------------------------------------------


def test_a_link_is_up_only_if_both_ends_are(status: Status) -> None:
    observed = status.state.observed
    assert observed.failures() == frozenset(), "nothing is known yet"
    connect_all(status)
    assert observed.failures() == frozenset()
    for dpid, port in ((1, 2), (2, 3)):
        set_port(observed, dpid, port, up=False)
        assert observed.links_down() == ("s1:2-s2:3",)
    set_port(observed, 1, 2, up=True)
    assert observed.failures() == {"s1:2-s2:3"}
    set_port(observed, 2, 3, up=True)
    assert observed.failures() == frozenset()


def test_a_port_that_is_missing_is_down(status: Status) -> None:
    connect_all(status)
    status.state.observed.switches[1].see_ports({1: True, 2: True})
    assert status.state.observed.links_down() == ("s4:2-s1:3",)


def test_a_port_that_no_cable_is_declared_for_does_not_matter(status: Status) -> None:
    connect_all(status)
    set_port(status.state.observed, 1, 99, up=False)
    assert status.state.observed.failures() == frozenset()
    assert status.problems(LATER_S) == []


def test_a_hosts_link_is_no_failure_of_the_fabric(status: Status) -> None:
    connect_all(status)
    set_port(status.state.observed, 3, 1, up=False)
    assert status.state.observed.hosts_down() == ("h3",)
    assert status.state.observed.failures() == frozenset()
    assert status.problems(LATER_S) == ["the link of host h3 is down"]


def test_what_a_switch_said_before_it_left_counts_less_than_its_neighbour(status: Status) -> None:
    observed = status.state.observed
    connect_all(status)
    set_port(observed, 1, 2, up=False)
    observed.switches[1].disconnect()
    assert observed.links_down() == (), "s2 has a carrier"
    observed.switches[2].disconnect()
    assert observed.links_down() == ("s1:2-s2:3",), "nobody knows better"
    connect(observed, 1)
    assert observed.links_down() == ()


def test_a_switch_is_dead_if_all_of_its_neighbours_lost_their_carrier(status: Status) -> None:
    observed = status.state.observed
    connect_all(status)
    observed.switches[2].disconnect()
    assert observed.switches_down() == (), "it may have lost its controller only"
    set_port(observed, 1, 2, up=False)
    assert observed.switches_down() == ()
    set_port(observed, 3, 3, up=False)
    assert observed.switches_down() == ("s2",)
    assert observed.failures() == {"s2", "s1:2-s2:3", "s2:2-s3:3"}
    assert "s2 (dpid 2) is dead: nothing comes from it on any link" in (status.problems(LATER_S))
    connect(observed, 2)
    assert observed.switches_down() == ()
    assert observed.failures() == {"s1:2-s2:3", "s2:2-s3:3"}


def test_hosts_that_failures_separate_are_reported_until_a_link_returns(status: Status) -> None:
    connect_all(status)
    set_port(status.state.observed, 1, 2, up=False)
    assert status.state.observed.separated() == [], "one link of a ring"
    set_port(status.state.observed, 3, 2, up=False)
    report = status.as_json(LATER_S)
    assert report["separated"] == [["h1", "h4"], ["h2", "h3"]]
    assert report["unreachable"] == 8
    line = "failures separate h1, h4 from h2, h3: 8 pairs of hosts cannot reach each other"
    assert line in report["problems"]
    set_port(status.state.observed, 1, 2, up=True)
    report = status.as_json(LATER_S)
    assert (report["separated"], report["unreachable"]) == ([], 0)
    assert line not in report["problems"]


def test_the_hosts_of_a_dead_switch_are_separated_from_all_others(status: Status) -> None:
    connect_all(status)
    status.state.observed.switches[2].disconnect()
    for dpid, port in ((1, 2), (3, 3)):
        set_port(status.state.observed, dpid, port, up=False)
    line = "failures separate h1, h3, h4 from h2: 6 pairs of hosts cannot reach each other"
    assert line in status.problems(LATER_S)


def test_many_hosts_in_many_parts_make_one_short_line() -> None:
    by_part = [[f"h{5 * part + i}" for i in range(1, 6)] for part in range(6)]
    assert separation(by_part) == (
        "failures separate h1, h2, h3 and 2 more from h6, h7, h8 and 2 more, and from h11, h12, h13"
        " and 2 more, and from h16, h17, h18 and 2 more, and from 2 more parts: 750 pairs of hosts"
        " cannot reach each other"
    )


def test_the_order_of_reports_does_not_matter(desired: DesiredState) -> None:
    failures = []
    for order in ((1, 2, 3, 4), (4, 3, 2, 1)):
        observed = Observed(desired.fabric)
        for dpid in order:
            connect(observed, dpid)
            if dpid == 3:
                set_port(observed, 3, 2, up=False)
        failures.append(observed.failures())
    assert failures[0] == failures[1] == {"s3:2-s4:3"}


# --- status ----------------------------------------------------------------------------------


def test_a_switch_gets_time_to_connect_before_it_is_a_problem(status: Status) -> None:
    assert status.problems(SOON_S) == []
    assert status.problems(LATER_S) == [f"s{i} (dpid {i}) is not connected" for i in range(1, 5)]


def test_ready_means_all_installed(status: Status) -> None:
    observed = status.state.observed
    assert not observed.ready
    connect_all(status)
    assert observed.ready
    observed.switches[2].disconnect()
    assert not observed.ready
    observed.switches[2].connect({1: True, 2: True, 3: True})
    assert not observed.ready, "what it holds is not known yet"


def test_missing_ports_are_named_with_their_far_ends(status: Status) -> None:
    connect_all(status)
    switch = status.state.observed.switches[1]
    switch.see_ports({1: True, 99: True})
    assert switch.missing_ports == (2, 3)
    first, second, third = status.problems(LATER_S)
    assert first.startswith("s1 (dpid 1) has no port 2, which the fabric declares to s")
    assert second.startswith("s1 (dpid 1) has no port 3, which the fabric declares to s")
    assert third.startswith("failures separate h1 from h2, h3, h4:")
    assert status.state.observed.links_down() == ("s1:2-s2:3", "s4:2-s1:3")
    switch.see_ports({1: True, 2: True, 3: True})
    assert status.problems(LATER_S) == []


def test_refusals_are_reported_up_to_a_limit(status: Status) -> None:
    connect_all(status)
    status.state.observed.switches[3].refused = tuple(f"to add rule {i}: FULL" for i in range(1000))
    lines = status.problems(LATER_S)
    assert lines[0] == "s3 (dpid 3) refused to add rule 0: FULL"
    assert lines[-1] == "s3 (dpid 3) refused 997 more such changes"
    assert len(lines) == 4


def test_foreign_rules_are_reported(status: Status) -> None:
    connect_all(status)
    status.state.observed.switches[4].foreign = (FoundRule(0, 1, (), 0xABC, None),)
    (line,) = status.problems(LATER_S)
    assert line.startswith("s4 (dpid 4) holds 1 rules that are not Knotless's (cookie 0xabc")


def test_unknown_and_duplicate_dpids_are_reported(status: Status) -> None:
    connect_all(status)
    status.state.observed.unknown.add(77)
    status.state.observed.duplicate_dpids[2] = LATER_S
    unknown, duplicate = status.problems(LATER_S + 1)
    assert "dpid 77" in unknown
    assert "(it has 1 to 4)" in unknown
    assert duplicate == "two switches say they are s2 (dpid 2): only one is served"
    assert status.problems(LATER_S + DUPLICATE_MEMORY_S + 1) == [unknown]


@pytest.mark.parametrize("count", [1, 3, 4, 5000])
def test_thousands_of_unknown_switches_make_few_short_lines(status: Status, count: int) -> None:
    status.state.observed.unknown = set(range(100, 100 + count))
    lines = status.problems(0.0)
    assert len(lines) == min(count, 4)
    assert sum(map(len, lines)) < 1000
    if count > 3:
        assert lines[3].startswith(f"{count - 3} more such switches are connected, with dpids from")
        assert lines[3].endswith(f"103 to {99 + count}: nothing is installed on them")


def test_many_duplicate_dpids_are_summed_up(status: Status) -> None:
    observed = status.state.observed
    observed.duplicate_dpids = dict.fromkeys(observed.switches, 1.0)
    lines = status.problems(2.0)
    assert len(lines) == 4
    assert lines[3] == "1 more dpids are claimed by two switches: only one is served"


def test_status_is_json_with_all_that_others_read(status: Status) -> None:
    report = json.loads(json.dumps(status.as_json(SOON_S)))
    assert report["fabric"] == "ring,4"
    assert report["engine"] == "updown"
    assert report["ready"] is False
    assert report["switches"]["s1"] == {
        "dpid": 1,
        "connected": False,
        "installed": False,
        "rules": len(status.state.desired.rules["s1"].rules),
        "missing_ports": [],
    }
    assert (report["links_down"], report["hosts_down"], report["switches_down"]) == ([], [], [])
    assert report["plan"]["acyclic"] is True
    assert report["check"]["undelivered"] == 0


def test_refused_rules_of_probes_are_a_problem_but_the_switch_is_installed(status: Status) -> None:
    connect_all(status)
    switch = status.state.observed.switches[2]
    switch.refused_probes = ("to add the rule in table 0, priority 65535: OFPFMFC_TABLE_FULL",)
    (line,) = status.problems(LATER_S)
    assert line.startswith("s2 (dpid 2) refused to add the rule in table 0")
