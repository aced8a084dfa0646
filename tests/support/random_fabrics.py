"""Small random fabrics from a seeded random generator."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace

from knotless.base.errors import FabricError
from knotless.topologies import Fabric, Host, Link, Switch
from knotless.topologies.numbering import host_ip, host_mac
from knotless.topologies.validate import validate
from tests.tiers.depth import numbers_of_the_seed

first_seed = numbers_of_the_seed([0])[0]
"""Added to all seeds: it follows from that of the tier; :mod:`tests.prove_changes` uses others."""
drawn = 0
"""The number of generators that :func:`seeded` has made."""


def seeded(seeds: Iterable[int]) -> Iterator[tuple[int, random.Random]]:
    """Yield each seed and a random generator that starts from it."""
    global drawn
    for seed in seeds:
        drawn += 1
        yield seed, random.Random(first_seed + seed)  # noqa: S311 - it only has to be repeatable


def small_fabric(rng: random.Random, *, most_switches: int = 6, most_hosts: int = 6) -> Fabric:
    """Return a connected fabric: a random tree and a few more links, hosts anywhere."""
    count = rng.randint(2, most_switches)
    ends = [(rng.randrange(i), i) for i in range(1, count)]
    linked = {frozenset(pair) for pair in ends}
    for _ in range(rng.randint(0, count)):
        pair = tuple(rng.sample(range(count), 2))
        if frozenset(pair) not in linked:
            linked.add(frozenset(pair))
            ends.append((pair[0], pair[1]))
    port = [0] * count
    hosts = []
    homes = rng.choices(range(count), k=rng.randint(2, most_hosts))
    for number, switch in enumerate(sorted(homes), 1):
        port[switch] += 1
        address = (switch + 1, port[switch])
        hosts.append(
            Host(
                f"h{number}", host_mac(*address), host_ip(*address), f"s{switch + 1}", port[switch]
            )
        )
    links = []
    for a, b in ends:
        port[a] += 1
        port[b] += 1
        links.append(Link(f"s{a + 1}", port[a], f"s{b + 1}", port[b]))
    switches = tuple(Switch(f"s{i}", i) for i in range(1, count + 1))
    return Fabric("random", switches, tuple(hosts), tuple(links))


def two_fabrics(rng: random.Random, **most: int) -> tuple[Fabric, Fabric]:
    """Return two connected fabrics that share hosts: parts of a random one, often different."""
    whole = small_fabric(rng, **most)
    while True:
        first, second = part_of(whole, rng), part_of(whole, rng)
        if first and second and set(first.hosts) & set(second.hosts):
            return first, second


def part_of(whole: Fabric, rng: random.Random) -> Fabric | None:
    """Return ``whole`` without some of its parts, or None if that is no fabric."""
    gone = [one for one in whole.switches if rng.random() < 0.15]
    names = {switch.name for switch in gone}
    part = replace(
        whole,
        switches=tuple(one for one in whole.switches if one not in gone),
        hosts=tuple(one for one in whole.hosts if one.switch not in names and rng.random() > 0.15),
        links=tuple(
            one for one in whole.links if not {one.a, one.b} & names and rng.random() > 0.2
        ),
    )
    try:
        validate(part)
    except FabricError:
        return None
    return part
