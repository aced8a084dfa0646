"""Whatever the order of reports, the links that are down are those that were cut."""

from __future__ import annotations

import random
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from knotless.controller.observed import Observed
from knotless.topologies import load
from knotless.topologies.fabric import Fabric

FABRICS = tuple(map(load, ("ring,4", "torus,3,3", "lsft,2", "random,12,degree=3,seed=5")))


class Network:
    """The true state of a fabric: cut links, dead switches, and switches without a controller.

    With ``cuts`` false no link is cut.
    """

    def __init__(self, fabric: Fabric, rng: random.Random, *, cuts: bool = True) -> None:
        self.fabric, self.rng, self.cuts = fabric, rng, cuts
        self.cut: set[str] = set()
        self.dead: set[str] = set()
        self.alone: set[str] = set()

    def change(self) -> None:
        """Cut or mend a link, or let a switch die, return, lose or find its controller."""
        links = [link.name for link in self.fabric.links]
        names = [switch.name for switch in self.fabric.switches]
        switches = [(self.dead, names), (self.alone, names)]
        kind, choices = self.rng.choice([(self.cut, links), *switches] if self.cuts else switches)
        kind.symmetric_difference_update({self.rng.choice(choices)})

    def ports(self, name: str) -> dict[int, bool]:
        """Return the ports of a switch as it sees them."""
        up = dict.fromkeys(self.fabric.hosts_at[name], True)
        for link in self.fabric.links:
            for near, port, peer in ((link.a, link.a_port, link.b), (link.b, link.b_port, link.a)):
                if near == name:
                    up[port] = link.name not in self.cut and peer not in self.dead
        return up

    def report(self, observed: Observed) -> None:
        """Let every switch report what it sees, in any order."""
        switches = list(observed.switches.values())
        self.rng.shuffle(switches)
        for switch in switches:
            if switch.name in self.dead | self.alone:
                if switch.connected:
                    switch.disconnect()
            elif switch.connected:
                switch.see_ports(self.ports(switch.name))
            else:
                switch.connect(self.ports(switch.name))

    def changes(self, observed: Observed, count: int) -> Iterator[None]:
        """Report the state, then change and report it ``count`` times; yield after each change."""
        self.report(observed)
        for _ in range(count):
            self.change()
            self.report(observed)
            yield

    def down(self) -> set[str]:
        """Return the links of which a connected switch knows that they are down."""
        silent = self.dead | self.alone
        return {
            link.name
            for link in self.fabric.links
            if (link.name in self.cut and not {link.a, link.b} <= silent)
            or (link.a in self.dead and link.b not in silent)
            or (link.b in self.dead and link.a not in silent)
        }


@given(st.sampled_from(FABRICS), st.randoms(), st.integers(1, 30))
def test_links_that_are_down_are_those_that_somebody_sees(
    fabric: Fabric, rng: random.Random, changes: int
) -> None:
    network, observed = Network(fabric, rng), Observed(fabric)
    for _ in network.changes(observed, changes):
        links_down = set(observed.links_down())
        assert network.down() <= links_down
        # Of the others nobody knows: both ends are silent.
        silent = network.dead | network.alone
        hidden = {x.name for x in fabric.links if {x.a, x.b} <= silent}
        assert links_down <= network.down() | hidden
    network.cut.clear()
    network.dead.clear()
    network.alone.clear()
    network.report(observed)
    assert observed.failures() == frozenset()


@given(st.sampled_from(FABRICS), st.randoms(), st.integers(1, 10))
def test_a_controller_that_has_just_started_sees_the_same(
    fabric: Fabric, rng: random.Random, changes: int
) -> None:
    network, old = Network(fabric, rng), Observed(fabric)
    for _ in range(changes):
        network.change()
        network.alone.clear()
        network.report(old)
    new = Observed(fabric)
    network.report(new)
    dead = network.dead
    visible = {x.name for x in fabric.links if not {x.a, x.b} <= dead}
    assert set(new.links_down()) & visible == set(old.links_down()) & visible
    assert new.switches_down() == old.switches_down()


@given(st.sampled_from(FABRICS), st.randoms(), st.integers(1, 30))
def test_only_dead_switches_are_called_dead(
    fabric: Fabric, rng: random.Random, changes: int
) -> None:
    network, observed = Network(fabric, rng, cuts=False), Observed(fabric)
    for _ in network.changes(observed, changes):
        assert set(observed.switches_down()) <= network.dead
