"""The reference interpreter, against all walks through tiny random tables, one by one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise, product
from typing import Any, NamedTuple

import pytest

from tests.support.cycles import has_cycle
from tests.support.reference import CUT, LOOP, TAGGED, Node, Place, Reference


class Packet(NamedTuple):
    """A packet of one of a few kinds, with a tag that tables look at as well."""

    kind: int
    priority: int
    tagged: bool


Entries = dict[tuple[Place, Packet], list[list[tuple[int, Packet]]]]
Hop = tuple[Place, Packet]
PACKETS = [Packet(kind, priority, bool(kind)) for kind in range(2) for priority in range(2)]


def random_case(rng: random.Random) -> tuple[dict[str, Any], Entries]:
    """Return a fabric of two to four switches with a host each, and a table of any entries."""
    names = [f"s{number}" for number in range(rng.randint(2, 4))]
    hosts = [{"name": f"h-{name}", "switch": name, "port": 0} for name in names]
    ports: Counter[str] = Counter()
    links = []
    for _ in range(rng.randint(1, 4)):
        a, b = rng.sample(names, 2)
        ports.update((a, b))
        links.append({"a": a, "a_port": ports[a], "b": b, "b_port": ports[b]})

    def copies(switch: str, most: int) -> list[tuple[int, Packet]]:
        # The port after the last one has no cable.
        every = range(ports[switch] + 1 + (rng.random() < 0.2))
        count = rng.randint(0, 1) if rng.random() < 0.1 else rng.randint(1, most)
        taken = rng.sample(every, min(count, len(every)))
        return [(port, rng.choice(PACKETS)) for port in taken]

    most_copies, most_choices = rng.choice([(1, 2), (1, 3), (2, 1), (2, 2)])
    table = {
        ((name, port), packet): [
            copies(name, most_copies) for _ in range(rng.randint(1, most_choices))
        ]
        for name in names
        for port in range(ports[name] + 1)
        for packet in PACKETS
    }
    return {"links": links, "hosts": hosts}, table


MOST_LIVES = 2_000


class TooManyError(Exception):
    """There are more than :data:`MOST_LIVES`."""


class EveryWalk:
    """Lists what can become of a packet, without remembering anything."""

    def __init__(self, fabric: dict[str, Any], table: Entries) -> None:
        self.table = table
        self.cables = [((e["a"], e["a_port"]), (e["b"], e["b_port"])) for e in fabric["links"]]
        self.hosts = {(host["switch"], host["port"]): host["name"] for host in fabric["hosts"]}
        self.listed = 0

    def behind(self, place: Place) -> Place | None:
        for one, other in self.cables:
            if place in (one, other):
                return other if place == one else one
        return None

    def lives(self, trail: tuple[Hop, ...]) -> Iterator[list[tuple[tuple[Node, ...], str]]]:
        """Yield the copies of each way to choose, as (channels of this copy, its end)."""
        self.listed += 1
        if self.listed > MOST_LIVES:
            raise TooManyError
        place, packet = trail[-1]
        if trail[-1] in trail[:-1]:
            yield [((), LOOP)]
            return
        for copies in self.table[place, packet]:
            each = [list(self.copy(trail, port, copy)) for port, copy in copies]
            for together in product(*each):
                self.listed += 1
                if self.listed > MOST_LIVES:
                    raise TooManyError
                yield [life for lives in together for life in lives]

    def copy(
        self, trail: tuple[Hop, ...], port: int, copy: Packet
    ) -> Iterator[list[tuple[tuple[Node, ...], str]]]:
        place = (trail[-1][0][0], port)
        if place in self.hosts:
            yield [((), TAGGED if copy.tagged else self.hosts[place])]
        elif (there := self.behind(place)) is None:
            yield [((), CUT)]
        else:
            node = (*place, copy.priority)
            for lives in self.lives((*trail, (there, copy))):
                # What is dropped has been on the channel as well.
                yield [((node, *walk), end) for walk, end in lives or [((), "")]]


Lives = list[list[tuple[tuple[Node, ...], str]]]


def listed_case(rng: random.Random) -> tuple[dict[str, Any], Entries, dict[Hop, Lives]]:
    """Return a random case, and for a packet of each host all that can become of it."""
    while True:
        fabric, table = random_case(rng)
        every = EveryWalk(fabric, table)
        starts = [(place, rng.choice(PACKETS)) for place in every.hosts]
        try:
            return fabric, table, {start: list(every.lives((start,))) for start in starts}
        except TooManyError:
            continue


@pytest.mark.seeds(400, gate=60)
def test_the_interpreter_finds_what_all_walks_show(seed: int) -> None:
    fabric, table, listed = listed_case(random.Random(seed))  # noqa: S311
    reference: Reference[Packet] = Reference(fabric, lambda place, packet: table[place, packet])
    edges: set[tuple[Node, Node]] = set()
    for (place, packet), lives in listed.items():
        ends = {tuple(sorted(end for _, end in each if end)) for each in lives}
        assert reference.outcomes(place, packet) == ends
        edges |= {step for each in lives for walk, _ in each for step in pairwise(walk)}
        assert reference.edges == edges
        assert {(a, b) for a, waits in reference.waits for b in waits} == edges
        is_copied = any(len(each) != 1 for each in lives)
        if not is_copied and ends in [{(host["name"],)} for host in fabric["hosts"]]:
            taken = reference.walks(place, packet)
            assert set(taken) == {walk for [(walk, _)] in lives}
            assert sum(taken.values()) == 1
    assert reference.has_cycle() == has_cycle(edges)


def test_shares_of_equal_walks_add_up() -> None:
    """Two choices that meet again, and a third that goes directly."""
    links = [("a", 1, "b", 1), ("a", 2, "c", 1), ("a", 3, "d", 3), ("b", 2, "d", 1)]
    links.append(("c", 2, "d", 2))
    fabric = {
        "links": [dict(zip(("a", "a_port", "b", "b_port"), link, strict=True)) for link in links],
        "hosts": [{"name": f"h-{name}", "switch": name, "port": 0} for name in "abcd"],
    }
    outputs = {"a": [1, 2, 3], "b": [2], "c": [2], "d": [0]}
    packet = Packet(0, 0, tagged=False)
    reference: Reference[Packet] = Reference(
        fabric, lambda place, packet: [[(port, packet)] for port in outputs[place[0]]]
    )
    third = Fraction(1, 3)
    assert reference.walks(("a", 0), packet) == {
        (("a", 1, 0), ("b", 2, 0)): third,
        (("a", 2, 0), ("c", 2, 0)): third,
        (("a", 3, 0),): third,
    }
    assert reference.edges == {(("a", 1, 0), ("b", 2, 0)), (("a", 2, 0), ("c", 2, 0))}
    assert not reference.has_cycle()
