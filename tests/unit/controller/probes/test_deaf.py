"""Deaf switches: each condition is needed, and what looks alike is not taken for one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from knotless.controller.observed import Observed, Port
from knotless.controller.probes.deaf import LEAST_S, LOST_PROBES, DeafSwitches, Look, lost_probes
from knotless.controller.probes.frames import ETHER_TYPE, may_take_probes
from knotless.controller.reconcile import FoundRule
from knotless.controller.status import deaf_switch, many_deaf
from knotless.forwarding.openflow.rules import Field, Rule
from knotless.topologies import load
from tests.support.probed_fabric import ProbedFabric
from tests.tiers.depth import numbers_of_the_seed

_LOOK_TICKS = 10
DECLARED_S = 6.0
"""A deaf switch is declared within this time."""


class SearchedFabric(ProbedFabric):
    """A fabric whose deaf switches are searched for, with what can be in the way.

    A switch in ``dead`` that is connected is deaf: its ports count, and nothing comes out.
    """

    def __init__(self, spec: str = "torus,3,3", seed: int = 0) -> None:
        super().__init__(load(spec), seed)
        self.deaf = DeafSwitches(self.probing)
        self.silent_echoes = set[str]()
        self.lack_rules = set[str]()
        """Switches that have lost rules, which are put back when they are read."""
        self.dropped: dict[str, int] = dict.fromkeys(self.observed.by_name, 0)
        self.sessions: dict[str, object] = {name: object() for name in self.observed.by_name}
        self.uncounted = set[str]()
        """Switches whose counters cannot be read."""
        self.is_deadlocked = False
        self.reports: list[frozenset[str]] = [frozenset()]

    def tick(self) -> None:
        super().tick()
        names = self.deaf.observe(self.now_s)
        if self.ticks % _LOOK_TICKS == 0:
            paths = [path for name in names for path in self.deaf.incoming(name)]
            looks = {path.sender: self.look(path.sender) for path in paths}
            asked = {p for p in looks if not {p[0], self.cables[p][0]} & self.uncounted}
            self.deaf.see({port: looks[port] for port in asked})
            for name in names:
                if self.deaf.is_evident(name) and name not in self.silent_echoes:
                    self.deaf.answered(name, self.dropped[name])
            for name in self.deaf.unread():
                self.deaf.rules_read(name, held=name not in self.lack_rules)
                self.lack_rules.discard(name)
            self.declare()
        if self.reports[-1] != self.deaf.declared:
            self.reports.append(self.deaf.declared)

    def declare(self) -> None:
        ready = self.deaf.ready(len(self.observed.switches), self.now_s)
        if ready and self.is_deadlocked:
            self.deaf.forget_all()
        for name in [] if self.is_deadlocked else ready:
            self.deaf.declare(name, self.now_s)

    def look(self, port: Port) -> Look:
        wire, path = self.wires[port], self.probing.paths[port]
        receiver = path.receiver[0]
        return Look(
            at_s=self.now_s,
            given=path.given,
            crossed=path.crossed,
            received=wire.received,
            sent=wire.sent,
            waiting=len(wire.queue),
            time_us=int(self.links_s * 1e6),
            dropped=self.dropped[receiver],
            connections=(self.sessions[port[0]], self.sessions[receiver]),
        )

    def incoming(self, name: str) -> list[Port]:
        return [port for port, peer in self.cables.items() if peer[0] == name]


@pytest.fixture
def searched() -> SearchedFabric:
    fabric = SearchedFabric()
    fabric.run(1.0)
    return fabric


@pytest.mark.seeds(10)
@pytest.mark.parametrize("traffic", [0.0, 0.5])
def test_a_deaf_switch_is_declared_and_comes_back(seed: int, traffic: float) -> None:
    searched = SearchedFabric(seed=seed)
    searched.traffic = traffic
    searched.run(1.0 + searched.rng.random())
    searched.dead.add("s6")
    began_s = searched.now_s
    while not searched.deaf.declared:
        searched.tick()
        assert searched.now_s - began_s < DECLARED_S
    assert searched.now_s - began_s > LEAST_S
    searched.run(20.0)
    searched.dead.clear()
    searched.run(1.0)
    assert searched.reports == [frozenset(), {"s6"}, frozenset()]
    assert searched.faults == [{}], "its links are no fault of their own"


def test_nothing_is_said_of_a_switch_that_is_deaf_for_a_moment(searched: SearchedFabric) -> None:
    for _ in range(10):
        searched.dead.add("s6")
        searched.run(2.5)
        searched.dead.clear()
        searched.run(0.5)
    assert searched.reports == [frozenset()]


def one_link_delivers(searched: SearchedFabric) -> None:
    """Probes of one neighbour still come out: only the other links are deaf."""
    spared = searched.incoming("s6")[0]
    arrived = searched.probing.arrived

    def arrive(sender: Port, receiver: Port, number: int, *, reflected: bool, now_s: float) -> None:
        if receiver[0] != "s6" or sender == spared:
            arrived(sender, receiver, number, reflected=reflected, now_s=now_s)

    searched.dead.clear()
    searched.probing.arrived = arrive  # type: ignore[method-assign]


def a_port_is_paused(searched: SearchedFabric) -> None:
    """And frames of hosts leave all others."""
    searched.traffic = 1.0
    searched.wires[searched.incoming("s6")[0]].paused = True


def a_link_counts_nothing(searched: SearchedFabric) -> None:
    """The frames have left the neighbour, and the port has not counted one."""
    blinded = searched.incoming("s6")[0]
    look = searched.look

    def blind(port: Port) -> Look:
        return replace(look(port), received=0) if port == blinded else look(port)

    searched.look = blind  # type: ignore[method-assign]


def no_echo(searched: SearchedFabric) -> None:
    searched.silent_echoes.add("s6")


def the_guard_drops(searched: SearchedFabric) -> None:
    """Its packet-ins come too fast, again and again."""
    tick = searched.deaf.observe

    def observe(now_s: float) -> list[str]:
        searched.dropped["s6"] += searched.ticks % (4 * _LOOK_TICKS) == 0
        return tick(now_s)

    searched.deaf.observe = observe  # type: ignore[method-assign]


def the_guard_drops_at_last(searched: SearchedFabric) -> None:
    """What has been dropped is known only with the answer to the echo."""
    answered = searched.deaf.answered

    def later(name: str, dropped: int) -> None:
        answered(name, dropped + 1)

    searched.deaf.answered = later  # type: ignore[method-assign]


def a_neighbour_is_not_counted(searched: SearchedFabric) -> None:
    searched.uncounted.add(searched.incoming("s6")[0][0])


def it_is_not_counted(searched: SearchedFabric) -> None:
    searched.uncounted.add("s6")


def connections_come_and_go(searched: SearchedFabric) -> None:
    """Probes that came by the one before are not known."""
    _reconnecting(searched, "s6")


def a_neighbour_connects_again(searched: SearchedFabric) -> None:
    _reconnecting(searched, searched.incoming("s6")[0][0])


def _reconnecting(searched: SearchedFabric, name: str) -> None:
    observe = searched.deaf.observe

    def reconnect(now_s: float) -> list[str]:
        if searched.ticks % 100 == 0:
            searched.sessions[name] = object()
        return observe(now_s)

    searched.deaf.observe = reconnect  # type: ignore[method-assign]


def rules_go_missing(searched: SearchedFabric) -> None:
    """They are put back each time, and go missing again."""
    rules_read = searched.deaf.rules_read

    def read(name: str, *, held: bool) -> None:
        rules_read(name, held=held and name != "s6")

    searched.deaf.rules_read = read  # type: ignore[method-assign]


def it_is_deadlocked(searched: SearchedFabric) -> None:
    searched.is_deadlocked = True


def the_links_stand_still(searched: SearchedFabric) -> None:
    """Virtual time is not real time: frames that have left are still on their way."""
    searched.stretch = 1e6


def it_has_no_connection(searched: SearchedFabric) -> None:
    """Then it is dead, or its probes come back."""
    searched.disconnect("s6")


def a_probe_comes_at_times(searched: SearchedFabric) -> None:
    """By any of its links."""
    observe, port = searched.deaf.observe, searched.incoming("s6")[-1]

    def arrive(now_s: float) -> list[str]:
        if searched.ticks % 120 == 0:
            path = searched.probing.paths[port]
            searched.probing.arrived(
                port, path.receiver, searched.ticks, reflected=False, now_s=now_s
            )
        return observe(now_s)

    searched.deaf.observe = arrive  # type: ignore[method-assign]


@pytest.mark.parametrize(
    "in_the_way",
    [
        one_link_delivers,
        a_port_is_paused,
        a_link_counts_nothing,
        no_echo,
        the_guard_drops,
        the_guard_drops_at_last,
        a_neighbour_is_not_counted,
        it_is_not_counted,
        connections_come_and_go,
        a_neighbour_connects_again,
        rules_go_missing,
        it_is_deadlocked,
        the_links_stand_still,
        it_has_no_connection,
        a_probe_comes_at_times,
    ],
)
def test_without_one_of_the_conditions_no_switch_is_deaf(
    searched: SearchedFabric, in_the_way: Callable[[SearchedFabric], None]
) -> None:
    searched.dead.add("s6")
    in_the_way(searched)
    searched.run(30.0)
    assert searched.reports == [frozenset()]


def test_rules_that_were_missing_once_only_delay_it(searched: SearchedFabric) -> None:
    searched.dead.add("s6")
    searched.lack_rules.add("s6")
    searched.run(DECLARED_S)
    assert searched.reports == [frozenset()]
    searched.run(DECLARED_S)
    assert searched.deaf.declared == {"s6"}


def test_a_pause_that_ends_and_a_deadlock_that_is_released_only_delay_it(
    searched: SearchedFabric,
) -> None:
    searched.dead.add("s6")
    searched.is_deadlocked = True
    a_port_is_paused(searched)
    searched.run(20.0)
    for wire in searched.wires.values():
        wire.paused = False
    searched.run(20.0)
    assert searched.reports == [frozenset()]
    searched.is_deadlocked = False
    searched.run(DECLARED_S)
    assert searched.reports == [frozenset(), {"s6"}]


def test_a_link_that_has_failed_or_is_cut_shows_nothing(searched: SearchedFabric) -> None:
    """The other links of the switch do."""
    failed, down = searched.incoming("s6")[:2]
    searched.wires[failed].lost = True
    searched.set_port(down, up=False)
    searched.run(2.0)
    searched.dead.add("s6")
    searched.run(DECLARED_S)
    assert searched.deaf.declared == {"s6"}


def test_a_switch_all_of_whose_links_have_failed_is_not_deaf(searched: SearchedFabric) -> None:
    for port in searched.incoming("s6"):
        searched.wires[port].lost = True
    searched.run(30.0)
    assert searched.reports == [frozenset()]
    assert set(searched.probing.faults().values()) == {"one-way"}


@pytest.mark.parametrize(
    ("spec", "deaf", "declared"),
    [
        ("torus,3,3", ("s1", "s6"), {"s1", "s6"}),
        ("torus,3,3", ("s1", "s5", "s9"), frozenset()),
        ("ring,4", ("s2",), {"s2"}),
        ("ring,4", ("s2", "s4"), frozenset()),
        ("ring,3", ("s2",), frozenset()),
        ("ring,4", ("s1", "s2", "s3", "s4"), frozenset()),
    ],
)
def test_more_than_a_quarter_is_reported_and_not_declared(
    spec: str, deaf: tuple[str, ...], declared: frozenset[str]
) -> None:
    searched = SearchedFabric(spec)
    searched.run(1.0)
    searched.dead.update(deaf)
    searched.run(30.0)
    assert searched.deaf.declared == declared
    if not declared:
        assert searched.reports == [frozenset()], "not even for a moment"
        assert searched.deaf.suspected == set(deaf)
        assert searched.deaf.are_too_many(len(searched.observed.switches))
        searched.dead.clear()
        searched.run(1.0)
        assert not searched.deaf.suspected
    else:
        searched.dead.add("s3")
        searched.run(DECLARED_S)
        assert searched.deaf.declared == declared, "the routes stay as they are"


@pytest.mark.parametrize("mute", [set[str](), {"s5", "s6"}])
def test_two_neighbours_that_are_deaf_do_not_hide_each_other(
    searched: SearchedFabric, mute: set[str]
) -> None:
    """Whether they send probes, or not even these leave them."""
    searched.dead.update(("s5", "s6"))
    searched.mute = mute
    searched.run(2 * DECLARED_S)
    assert searched.deaf.declared == {"s5", "s6"}
    searched.dead.clear()
    searched.mute = set()
    searched.run(1.0)
    assert not searched.deaf.declared


def test_a_neighbour_that_sends_no_probes_is_not_taken_for_a_deaf_one(
    searched: SearchedFabric,
) -> None:
    """It gets probes: the link counts, and no probe has left by it."""
    searched.dead.add("s6")
    searched.mute = {"s5"}
    searched.run(30.0)
    assert searched.reports == [frozenset()]


def test_those_that_become_deaf_soon_after_each_other_are_many_together(
    searched: SearchedFabric,
) -> None:
    """The first one is not declared before it is known whether the others are deaf too."""
    for name in ("s1", "s5", "s9"):
        searched.dead.add(name)
        searched.run(1.5)
    searched.run(30.0)
    assert searched.reports == [frozenset()]


def test_a_deaf_switch_that_loses_its_connection_stays_deaf_until_probes_come_back(
    searched: SearchedFabric,
) -> None:
    searched.dead.add("s6")
    searched.run(DECLARED_S)
    searched.disconnect("s6")
    searched.run(5.0)
    assert searched.deaf.declared == {"s6"}
    searched.dead.clear()
    searched.run(1.0)
    assert not searched.deaf.declared


def test_a_controller_on_standby_knows_of_no_deaf_switch(searched: SearchedFabric) -> None:
    """When it leads again, what was seen before counts for nothing."""
    searched.dead.add("s6")
    searched.run(DECLARED_S)
    searched.deaf.stand_by()
    assert not searched.deaf.declared
    began_s = searched.now_s
    while not searched.deaf.declared:
        searched.tick()
    assert searched.now_s - began_s > LEAST_S


def test_a_fabric_that_changes_keeps_the_deaf_switches_that_stay(searched: SearchedFabric) -> None:
    searched.dead.add("s6")
    searched.run(DECLARED_S)
    searched.deaf.fit()
    assert searched.deaf.declared == {"s6"}
    searched.probing.wiring.fit(load("ring,4"))
    searched.probing.fit("new")
    searched.deaf.fit()
    assert not searched.deaf.declared


@pytest.mark.thin(1)
@pytest.mark.parametrize("part", range(4))
def test_delays_pauses_and_slow_links_make_no_switch_deaf(part: int) -> None:
    for seed in numbers_of_the_seed(range(5 * part, 5 * part + 5)):
        searched = SearchedFabric("ring,4", seed)
        rng = searched.rng
        searched.traffic = rng.random()
        for _ in range(200):
            searched.stretch = rng.choice((1.0, 30.0, 300.0))
            wire = rng.choice(list(searched.wires.values()))
            wire.paused = rng.random() < 0.8
            searched.run(rng.random() * 0.5)
        assert searched.reports == [frozenset()], seed


# --- what counters show ------------------------------------------------------------------------


def looks_of(*counts: tuple[int, int, int, int]) -> list[Look]:
    """Return looks, a second after the other, of (given, received, sent, waiting)."""
    return [
        Look(float(at), given, 0, received, sent, waiting, 1_000_000 * at)
        for at, (given, received, sent, waiting) in enumerate(counts)
    ]


@pytest.mark.parametrize(
    ("counts", "lost"),
    [
        (((0, 0, 0, 0), (10, 10, 10, 0), (20, 20, 20, 0), (30, 30, 30, 0)), 10),
        # Those that were received before the time of flight may be older.
        (((0, 0, 0, 0), (10, 30, 10, 0), (20, 30, 20, 0), (30, 30, 30, 0)), 0),
        # They wait: what has left was there before them.
        (((0, 0, 0, 500), (10, 90, 90, 420), (20, 180, 180, 340), (30, 270, 270, 260)), 0),
        # Here all that was there at the second look has left at the third.
        (((0, 0, 0, 50), (10, 40, 40, 20), (20, 80, 80, 0), (30, 90, 90, 0), (40, 99, 99, 0)), 19),
        # Paused: they were given, and nothing has left.
        (((0, 0, 0, 0), (10, 0, 0, 10), (20, 0, 0, 20), (30, 0, 0, 30)), 0),
        (((0, 0, 0, 0),), 0),
        ((), 0),
    ],
)
def test_only_probes_that_have_left_and_were_counted_are_lost(
    counts: tuple[tuple[int, int, int, int], ...], lost: int
) -> None:
    assert lost_probes(looks_of(*counts), 20_000) == lost


def test_the_time_of_flight_is_on_the_clock_of_the_links() -> None:
    looks = looks_of(*((10 * at, 10 * at, 10 * at, 0) for at in range(6)))
    assert lost_probes(looks, 20_000) >= LOST_PROBES
    assert lost_probes([replace(look, time_us=at) for at, look in enumerate(looks)], 20_000) == 0


def test_counters_that_start_again_begin_anew(searched: SearchedFabric) -> None:
    searched.dead.add("s6")
    ports = searched.incoming("s6")
    searched.run(2.0)
    searched.deaf.see({port: replace(searched.look(port), received=0, sent=0) for port in ports})
    assert all(len(searched.deaf._looks[port]) == 1 for port in ports)


def test_only_so_many_looks_are_remembered(searched: SearchedFabric) -> None:
    searched.dead.add("s6")
    a_port_is_paused(searched)
    searched.run(120.0)
    assert max(map(len, searched.deaf._looks.values())) <= 64


# --- what follows ------------------------------------------------------------------------------


def test_a_deaf_switch_has_failed_and_its_hosts_are_cut_off() -> None:
    observed = Observed(load("torus,3,3"))
    for switch in observed.switches.values():
        switch.connect(dict.fromkeys(switch.needs, True))
    observed.deaf = frozenset({"s6"})
    assert observed.failures() == {"s6"}
    assert observed.switches_down() == ()
    assert ["h6"] in observed.separated()
    assert not observed.dead_dpids(), "it is connected, and has a vote"
    observed.fit(load("ring,4"))
    assert observed.deaf == frozenset()


def test_lines_name_the_switches() -> None:
    switch = Observed(load("ring,4")).by_name["s2"]
    assert deaf_switch(switch).startswith("s2 (dpid 2) is deaf: ")
    assert many_deaf(["s1", "s2"], 4).endswith(
        ": 2 of 4 switches are more than a quarter, so the routes stay"
    )


@pytest.mark.parametrize(
    ("table", "priority", "may"), [(0, 0xFFFF, True), (0, 0xFFFE, False), (1, 0xFFFF, False)]
)
def test_rules_of_others_may_take_probes(table: int, priority: int, *, may: bool) -> None:
    rule = Rule(table, priority, (Field("eth_type", ETHER_TYPE),), (), cookie=7)
    assert may_take_probes([FoundRule(table, priority, rule.match, 7, rule)]) == may
    assert may_take_probes([FoundRule(table, priority, (), 7, None)]) == may
