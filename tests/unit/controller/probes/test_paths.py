"""Faults shown by probes and counters: lost links, dead switches, wrong cables. No false alarms."""

from __future__ import annotations

import pytest

from knotless.controller.observed import Observed, Port
from knotless.controller.probes.cables import Wiring
from knotless.topologies import load
from knotless.topologies.fabric import Fabric
from tests.support.probed_fabric import INTERVAL_S, ProbedFabric
from tests.tiers.depth import numbers_of_the_seed

LINK = "s1:2-s2:3"
A, B = ("s1", 2), ("s2", 3)
DETECTED_S = 0.5


@pytest.fixture(scope="module")
def ring() -> Fabric:
    return load("ring,4")


@pytest.fixture
def probed(ring: Fabric) -> ProbedFabric:
    fabric = ProbedFabric(ring)
    fabric.run(1.0)
    assert fabric.faults == [{}]
    assert all(path.state == "working" for path in fabric.probing.paths.values())
    return fabric


def cut(probed: ProbedFabric, *ports: Port, lost: bool = True) -> None:
    for port in ports:
        probed.wires[port].lost = lost


@pytest.mark.seeds(20)
@pytest.mark.parametrize("traffic", [0.0, 0.5])
def test_silent_loss_is_found_and_the_link_returns(ring: Fabric, seed: int, traffic: float) -> None:
    probed = ProbedFabric(ring, seed)
    probed.traffic = traffic
    probed.run(1.0 + probed.rng.random() * INTERVAL_S)
    cut(probed, A, B)
    assert probed.run_until({LINK: "silent"}) < DETECTED_S
    assert probed.observed.failures() == {LINK}
    assert probed.probing.lines() == [
        f"link {LINK} loses all frames although it has a carrier (silent)"
    ]
    probed.run(5.0)
    cut(probed, A, B, lost=False)
    probed.run_until({}, limit_s=1.0)
    assert probed.observed.failures() == frozenset()
    assert [f for f in probed.faults if f not in ({}, {LINK: "silent"}, {LINK: "one-way"})] == []


def test_counters_that_do_not_come_are_asked_for_less_and_less_often(probed: ProbedFabric) -> None:
    cut(probed, A)
    probing, asked = probed.probing, 0
    for _ in range(round(10 / probing.tick_s)):
        probed.now_s += probing.tick_s
        probing.observe(probed.observed, probed.now_s)
        suspects = [path for path in probing.suspects(probed.now_s) if path.sender == A]
        probing.read(suspects, {}, probed.now_s)
        asked += len(suspects)
    assert 5 < asked < 50


def test_loss_in_one_direction_is_found(probed: ProbedFabric) -> None:
    cut(probed, B)
    assert probed.run_until({LINK: "one-way"}) < DETECTED_S
    assert probed.probing.lines() == [f"link {LINK} loses all frames from s2:3 (one-way)"]
    probed.run(5.0)
    assert probed.observed.failures() == {LINK}


def test_a_paused_channel_is_no_failure_and_fills_no_queue(probed: ProbedFabric) -> None:
    probed.wires[A].paused = True
    probed.run(60.0)
    assert probed.faults == [{}]
    assert len(probed.wires[A].queue) < 80
    probed.wires[A].paused = False
    probed.run(1.0)
    cut(probed, A)
    probed.run_until({LINK: "one-way"})


def test_a_channel_that_is_cut_while_it_is_paused_fails_when_the_pause_ends(
    probed: ProbedFabric,
) -> None:
    probed.wires[A].paused = True
    cut(probed, A)
    probed.run(10.0)
    assert probed.faults == [{}]
    probed.wires[A].paused = False
    probed.run_until({LINK: "one-way"})


@pytest.mark.thin(2)
@pytest.mark.parametrize("part", range(4))
def test_delays_and_pauses_raise_no_false_alarm(ring: Fabric, part: int) -> None:
    for seed in numbers_of_the_seed(range(5 * part, 5 * part + 5)):
        probed = ProbedFabric(ring, seed)
        rng = probed.rng
        probed.traffic = rng.random()
        for _ in range(300):
            probed.stretch = rng.choice((1.0, 30.0, 300.0))
            wire = rng.choice(list(probed.wires.values()))
            wire.paused = rng.random() < 0.7
            probed.run(rng.random() * 0.3)
        assert probed.faults == [{}], seed


def test_a_controller_that_stands_still_raises_no_alarm(probed: ProbedFabric) -> None:
    for _ in range(20):
        probed.now_s += 3.0
        probed.run(0.3)
    assert probed.faults == [{}]


def test_a_switch_that_has_lost_its_controller_is_not_dead(probed: ProbedFabric) -> None:
    probed.disconnect("s3")
    probed.run(5.0)
    assert probed.faults == [{}]
    assert probed.observed.switches_down() == ()
    assert probed.probing.reflecting() == {"s3"}


def test_a_dead_switch_is_found_by_its_neighbours_though_carriers_stay(
    probed: ProbedFabric,
) -> None:
    probed.disconnect("s3")
    probed.run(1.0)
    probed.dead.add("s3")
    links = {link.name: "silent" for link in probed.fabric.links if "s3" in (link.a, link.b)}
    probed.run_until(links)
    assert probed.observed.switches_down() == ("s3",)
    assert probed.probing.reflecting() == frozenset()
    probed.dead.clear()
    probed.run_until({})
    assert probed.observed.switches_down() == ()


def test_a_switch_without_controller_whose_channels_are_paused_is_not_dead(
    probed: ProbedFabric,
) -> None:
    probed.disconnect("s3")
    for port in (("s3", 2), ("s3", 3)):
        probed.wires[port].paused = True
    probed.run(20.0)
    assert probed.faults == [{}]
    assert probed.observed.switches_down() == ()


def test_a_link_that_gets_its_carrier_back_is_used_when_probes_have_crossed_it(
    probed: ProbedFabric,
) -> None:
    for port in (A, B):
        probed.set_port(port, up=False)
    cut(probed, B)
    probed.run(1.0)
    for port in (A, B):
        probed.set_port(port, up=True)
    probed.tick()
    assert probed.probing.faults() == {LINK: "unproven"}
    probed.run_until({LINK: "one-way"})
    cut(probed, B, lost=False)
    probed.run_until({})


def test_swapped_cables_are_reported_blocked_and_corrected(ring: Fabric) -> None:
    probed = ProbedFabric(ring)
    # Instead of s1:2-s2:3 and s3:2-s4:3: s1:2-s4:3 and s3:2-s2:3.
    declared = dict(probed.cables)
    c, d = ("s3", 2), declared["s3", 2]
    probed.cables |= {A: d, d: A, c: B, B: c}
    probed.run(1.0)
    other = f"{c[0]}:{c[1]}-{d[0]}:{d[1]}"
    assert probed.probing.faults() == {LINK: "wrong cable", other: "wrong cable"}
    assert probed.probing.wiring.wrong_ports == {A, B, c, d}
    assert probed.probing.lines() == [
        "s1:2 is connected to s4:3, declared: s2:3 (s4:3: s3:2)",
        "s2:3 is connected to s3:2, declared: s1:2 (s3:2: s4:3)",
    ]
    assert probed.probing.settled(declared)
    probed.cables = declared
    probed.run_until({})
    assert probed.probing.wiring.wrong_ports == frozenset()
    assert all("silent" not in faults.values() for faults in probed.faults)


def test_a_cable_from_a_port_to_itself_is_wrong(ring: Fabric) -> None:
    wiring = Wiring(ring)
    assert not wiring.see(A, A)
    assert wiring.lines() == ["s1:2 is connected to s1:2, declared: s2:3"]
    assert wiring.links == {LINK}
    wiring.unplug(A)
    assert wiring.lines() == []


def test_large_fabrics_are_probed_less_often() -> None:
    probed = ProbedFabric(load("torus,16,16"))
    paths = len(probed.probing.paths)
    assert probed.probing.interval_s == pytest.approx(paths / 5000)
    assert ProbedFabric(load("torus,4,4")).probing.interval_s == INTERVAL_S


def test_a_switch_whose_neighbours_report_all_faults_is_dead_only_if_it_is_not_connected(
    ring: Fabric,
) -> None:
    observed = Observed(ring)
    for switch in observed.switches.values():
        switch.connect(dict.fromkeys(switch.needs, True))
    links = [link.name for link in ring.links if "s3" in (link.a, link.b)]
    observed.link_faults = dict.fromkeys(links, "silent")
    assert observed.switches_down() == ()
    assert observed.failures() == set(links)
    observed.by_name["s3"].disconnect()
    assert observed.switches_down() == ("s3",)


def test_only_probes_that_a_switch_has_sent_show_a_cable_of_it(probed: ProbedFabric) -> None:
    """Those that come to it may come to another switch that claims to be this one."""
    first = probed.ticks + 1
    cut(probed, ("s1", 2), ("s1", 3))
    probed.run(0.5)
    assert probed.probing.proves("s1", first) is False
    assert probed.probing.proves("s2", first)
    cut(probed, ("s1", 2), lost=False)
    probed.run(1.0)
    assert probed.probing.proves("s1", first)


def test_probes_that_were_on_their_way_show_no_cable_of_a_new_connection(ring: Fabric) -> None:
    """They may come from the switch whose place another one with its dpid has just taken."""
    probed = ProbedFabric(ring)
    probed.run(0.5)
    probing, path = probed.probing, probed.probing.paths["s1", 2]
    number = probed.ticks
    probing.arrived(path.sender, path.receiver, number, reflected=False, now_s=probed.now_s + 1)
    assert probing.proves("s1", None) is False
    assert probing.proves("s1", number + 1) is False
    assert probing.proves("s1", number)


def test_nobody_can_tell_of_a_switch_without_connected_neighbours(ring: Fabric) -> None:
    probed = ProbedFabric(ring)
    for name in ("s2", "s4"):
        probed.observed.by_name[name].disconnect()
    probed.run(0.5)
    assert probed.probing.proves("s1", 1) is None


def test_a_switch_whose_dpid_is_contested_is_not_dead_for_what_probes_show(
    probed: ProbedFabric,
) -> None:
    cut(probed, *((name, port) for name, port in probed.wires if name == "s1"))
    cut(probed, ("s2", 3), ("s4", 2))
    probed.run(1.0)
    switch = probed.observed.by_name["s1"]
    switch.disconnect()
    assert probed.observed.switches_down() == ("s1",)
    switch.is_contested = True
    assert probed.observed.switches_down() == ()
