"""Rules and packets of any address: foreign rules, addresses worth trying, and a slow walker."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from itertools import chain, product

from knotless.forwarding.openflow.rules import (
    FORWARD,
    FabricRules,
    Field,
    Output,
    Rule,
    SwitchRules,
)
from knotless.topologies.fabric import Fabric
from knotless.topologies.numbering import mac_value

ALL_48 = (1 << 48) - 1
GROUP_BIT = 1 << 40
IPV4, ARP, IPV6 = 0x0800, 0x0806, 0x86DD
Channel = tuple[str, int]
"""The switch and port that it leaves."""


def foreign(rules: FabricRules, added: dict[str, list[Rule]]) -> dict[str, SwitchRules]:
    """Return rules with others added, in their order."""
    joined = {}
    for name, of_switch in rules.items():
        rows = [*of_switch.rules, *added.get(name, ())]
        in_order = tuple(sorted(rows, key=lambda rule: rule.order))
        joined[name] = SwitchRules(in_order, of_switch.groups)
    return joined


def random_rules(fabric: Fabric, rng: random.Random) -> dict[str, list[Rule]]:
    """Return rules for a few classes of addresses that no host has, on most switches.

    They send out of a port at random, mostly one to another switch, or of the first one, or drop.
    Sometimes a switch also sends what a host sends to its own address to another switch.
    """
    added: dict[str, list[Rule]] = {switch.name: [] for switch in fabric.switches}
    for _ in range(rng.randint(1, 3)):
        match = [rng.choice(list(_matches(fabric, rng)))]
        if rng.random() < 0.2:
            match.append(Field("eth_type", rng.choice([IPV4, ARP, IPV6])))
        level = rng.choice([50, 290])  # below the rules of plans, or among them
        same = rng.random() < 0.5
        for name in added:
            ports = [*fabric.neighbours[name]] * 4 + [*fabric.hosts_at[name]]
            port = min(fabric.neighbours[name], default=1) if same else rng.choice(ports or [1])
            actions = (Output(port),) if rng.random() < 0.9 else ()
            if rng.random() < 0.85:
                match_of_rule = tuple(sorted(match))
                added[name].append(Rule(FORWARD, level, match_of_rule, actions))
    if rng.random() < 0.5:
        host = rng.choice(fabric.hosts)
        own = (Field("eth_dst", mac_value(host.mac)), Field("in_port", host.port))
        onward = Output(rng.choice(list(fabric.neighbours[host.switch])))
        added[host.switch].append(Rule(FORWARD, 400, own, (onward,)))
    return added


def _matches(fabric: Fabric, rng: random.Random) -> Iterator[Field]:
    host = mac_value(rng.choice(fabric.hosts).mac)
    yield Field("eth_dst", 0x0200_0000_0901)
    yield Field("eth_dst", host ^ 1 << rng.randrange(40))
    yield Field("eth_dst", host, ALL_48 ^ sum(1 << rng.randrange(16) for _ in range(2)) & ALL_48)
    yield Field("eth_dst", 0x0200_0000_8000, 0xFFFF_FFFF_8000)
    yield Field("eth_dst", 0x0100_5E00_0005)
    yield Field("eth_dst", 0, GROUP_BIT)


def addresses(fabric: Fabric, rules: FabricRules, rng: random.Random) -> list[int]:
    """Return addresses worth trying: those of hosts, near them, matched by rules, and others."""
    hosts = [mac_value(host.mac) for host in fabric.hosts]
    tried = {*hosts, ALL_48, 0x0100_5E00_0005, 0x0100_5E7F_FFFF, 0x0180_C200_000E}
    tried |= {host ^ 1 << bit for host in hosts for bit in range(48)}
    tried |= {rng.getrandbits(48) for _ in range(5)}
    for of_switch in rules.values():
        for rule in of_switch.rules:
            for field in rule.match:
                if field.name == "eth_dst":
                    free = 0 if field.mask is None else ~field.mask & ALL_48
                    tried |= {field.value | rng.getrandbits(48) & free for _ in range(3)}
    return sorted(tried)


def dependencies(
    fabric: Fabric,
    rules: FabricRules,
    destinations: Iterable[int],
    types: Iterable[int] = (IPV4, ARP, IPV6),
) -> set[tuple[Channel, Channel]]:
    """Return which channels wait for which, if every host sends to each destination.

    Each packet is followed alone, copy by copy, as the rules of one switch after the other say; of
    rules of equal priority that match and differ, any may count.
    """
    edges: set[tuple[Channel, Channel]] = set()
    switches = {name: of_switch.parsed for name, of_switch in rules.items()}
    peers = {
        (name, port): peer
        for name, ports in fabric.neighbours.items()
        for port, peer in ports.items()
    }
    for host, destination, eth_type in product(fabric.hosts, destinations, types):
        source = mac_value(host.mac)
        start: tuple[str, int, tuple[int, ...]] = (host.switch, host.port, ())
        seen = {start}
        waiting = [start]
        while waiting:
            name, in_port, tags = waiting.pop()
            sets, _ = switches[name].choices(in_port, destination, source, eth_type, tags)
            for port, out_tags in chain.from_iterable(sets):
                if (name, port) not in peers:
                    continue
                if (name, in_port) in peers:
                    edges.add((peers[name, in_port], (name, port)))
                onward = (*peers[name, port], tuple(out_tags))
                if onward not in seen:
                    seen.add(onward)
                    waiting.append(onward)
    return edges
