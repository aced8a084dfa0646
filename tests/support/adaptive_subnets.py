"""InfiniBand subnets whose switches choose among several ports, as ibdiagnet writes them."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import count

from tests.support.cycles import has_cycle
from tests.support.infiniband_dumps import Subnet, random_subnet

Choices = dict[tuple[int, int], set[int]]
"""The further ports that packets may take, by (switch, LID)."""
Channel = tuple[int, int]


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
    draw = random.Random(seed)  # noqa: S311
    subnet = random_subnet(seed)
    subnet.sl2vl, subnet.path_sls = {}, {}
    choices: Choices = {}
    for switch, lft in enumerate(subnet.lfts):
        ports = [port for s, port in subnet.ends if s == switch]
        for lid in lft:
            if draw.random() < 0.3:
                choices[switch, lid] = set(draw.sample(ports, min(2, len(ports))))
    return subnet, choices


def add_stale_lids(subnet: Subnet, choices: Choices, draw: random.Random) -> list[int]:
    """Add entries for LIDs that no port has, and return these.

    The static ports of the second are those of the first; the further ports differ.
    """
    first, second = 500, 501
    for switch, lft in enumerate(subnet.lfts):
        ports = [port for s, port in subnet.ends if s == switch]
        if ports and draw.random() < 0.9:
            lft[first] = lft[second] = draw.choice(ports)
            if draw.random() < 0.5:
                choices[switch, second] = set(draw.sample(ports, min(2, len(ports))))
    return [first, second]


def judged(subnet: Subnet, choices: Choices, stale: Iterable[int] = ()) -> tuple[bool, int]:
    """Return whether no dependencies close a cycle, and how many packets may not arrive.

    Hosts also send to ``stale`` LIDs, which no port has: these packets arrive nowhere.
    """
    edges: set[tuple[Channel, Channel]] = set()
    lost = 0
    for source in range(len(subnet.hosts)):
        for lid in stale:
            edges |= _follow(subnet, choices, source, -1, lid)[1]
        for target in range(len(subnet.hosts)):
            for lid in subnet.lids(target) if target != source else ():
                arrives, of_packet = _follow(subnet, choices, source, target, lid)
                edges |= of_packet
                lost += not arrives
    return not has_cycle(edges), lost


def _follow(
    subnet: Subnet, choices: Choices, source: int, target: int, lid: int
) -> tuple[bool, set[tuple[Channel, Channel]]]:
    start = subnet.hosts[source][1]
    arrives, edges = True, set()
    waiting: list[tuple[int, Channel | None]] = [(start, None)]
    seen = set(waiting)
    while waiting:
        switch, held = waiting.pop()
        static = subnet.lfts[switch].get(lid, 255)
        for out in ({static} | choices.get((switch, lid), set())) - {255} or {255}:
            end = subnet.ends.get((switch, out))
            if end is None or end[0] == "host":
                arrives &= end is not None and end[1] == target
                continue
            channel = (switch, out)
            if held is not None:
                edges.add((held, channel))
            onward = (end[1], channel)
            if onward not in seen:
                seen.add(onward)
                waiting.append(onward)
    return arrives and not has_cycle(edges), edges
