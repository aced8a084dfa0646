"""InfiniBand subnets whose switches choose among several ports, as ibdiagnet writes them."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import count
from typing import NamedTuple

from tests.support.infiniband_dumps import Subnet, random_subnet
from tests.support.reference import Alternatives, Place, Reference

Choices = dict[tuple[int, int], set[int]]
"""The further ports that packets may take, by (switch, LID)."""


def far_text(subnet: Subnet, choices: Choices) -> str:
    """Return the content of ``ibdiagnet2.far``: a group for each set of ports."""
    lines = ["# generated", "File version: 1"]
    for switch, lft in enumerate(subnet.lfts):
        numbers = count()
        groups = {lid: (next(numbers), ports) for (s, lid), ports in choices.items() if s == switch}
        lines += [
            f"Switch 0x{0x500000 + switch:016x}",
            "Groups Definition:",
            "Group    Sub Group    WHBF    Ports",
            "-" * 40,
        ]
        for number, ports in groups.values():
            for part, half in enumerate((sorted(ports)[:1], sorted(ports)[1:])):
                lines.append(f"{number:<9d}{part:<13d}0       {''.join(f'{p},' for p in half)}")
        top = max(lft, default=0)
        lines += [
            "LFT Definition:",
            f"PLFT_NUM: 0, top: 0x{top:x}",
            "LID       Static Port    Lid State    Group",
            "-" * 40,
        ]
        for lid, port in sorted(lft.items()):
            state, group = ("Free", groups[lid][0]) if lid in groups else ("Static", 0)
            lines.append(f"0x{lid:04x}    {port:<15d}{state:<13s}{group}")
    return "\n".join(lines) + "\n"


def random_adaptive(seed: int) -> tuple[Subnet, Choices]:
    """Return a random subnet on VL 0, and further ports of some entries."""
    rng = random.Random(seed)  # noqa: S311
    subnet = random_subnet(seed)
    subnet.sl2vl, subnet.path_sls = {}, {}
    choices: Choices = {}
    for switch, lft in enumerate(subnet.lfts):
        ports = [port for s, port in subnet.ends if s == switch]
        for lid in lft:
            if rng.random() < 0.3:
                choices[switch, lid] = set(rng.sample(ports, min(2, len(ports))))
    return subnet, choices


def add_stale_lids(subnet: Subnet, choices: Choices, rng: random.Random) -> list[int]:
    """Add entries for LIDs that no port has, and return these.

    The static ports of the second are those of the first; the further ports differ.
    """
    first, second = 500, 501
    for switch, lft in enumerate(subnet.lfts):
        ports = [port for s, port in subnet.ends if s == switch]
        if ports and rng.random() < 0.9:
            lft[first] = lft[second] = rng.choice(ports)
            if rng.random() < 0.5:
                choices[switch, second] = set(rng.sample(ports, min(2, len(ports))))
    return [first, second]


class Packet(NamedTuple):
    """A packet to a LID, on VL 0."""

    lid: int
    priority: int = 0
    tagged: bool = False


def judged(subnet: Subnet, choices: Choices, stale: Iterable[int] = ()) -> tuple[bool, int]:
    """Return whether no dependencies close a cycle, and how many packets may not arrive.

    Hosts also send to ``stale`` LIDs, which no port has: these packets arrive nowhere.
    """

    def table(place: Place, packet: Packet) -> Alternatives[Packet]:
        switch = int(place[0])
        outs = {subnet.lfts[switch].get(packet.lid, 255)} | choices.get((switch, packet.lid), set())
        return [[(out, packet)] for out in outs - {255}] or [[]]

    links = [
        {"a": str(a), "a_port": a_port, "b": str(b), "b_port": b_port}
        for a, a_port, b, b_port in subnet.links
    ]
    hosts = [
        {"name": str(number), "switch": str(switch), "port": port}
        for number, (_, switch, port) in enumerate(subnet.hosts)
    ]
    reference: Reference[Packet] = Reference({"links": links, "hosts": hosts}, table)
    lost = 0
    for source, (_, switch, port) in enumerate(subnet.hosts):
        for lid in stale:
            reference.follow((str(switch), port), Packet(lid))
        for target in range(len(subnet.hosts)):
            for lid in subnet.lids(target) if target != source else ():
                fates = reference.outcomes((str(switch), port), Packet(lid))
                lost += fates != {(str(target),)}
    return not reference.has_cycle(), lost
