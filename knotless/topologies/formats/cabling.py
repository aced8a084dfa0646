"""The common part of formats that list cables between named interfaces."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import islice

from knotless.topologies.partial_fabric import PartialHost

_PORT = re.compile(r"[0-9]{1,4}$")

End = tuple[str, str]
"""A device and its interface, which is empty if it is not known."""


def ports_of(cables: Sequence[tuple[End, End]]) -> dict[End, int]:
    """Return the ports of the devices whose interfaces all end in different numbers, from 1."""
    by_device: dict[str, list[End]] = {}
    for ends in cables:
        for end in ends:
            by_device.setdefault(end[0], []).append(end)
    ports: dict[End, int] = {}
    for ends_of_device in by_device.values():
        numbers = [_PORT.search(interface) for _, interface in ends_of_device]
        values = {int(number[0]) for number in numbers if number}
        if len(values) == len(ends_of_device) and 0 not in values:
            ports |= {
                end: int(number[0])
                for end, number in zip(ends_of_device, numbers, strict=True)
                if number
            }
    return ports


def one_host_each(switches: Collection[str]) -> list[PartialHost]:
    """Return a host for each switch, named with the first of h1, h2.. that no switch has."""
    names = (f"h{i}" for i in range(1, 2 * len(switches) + 1) if f"h{i}" not in switches)
    return [PartialHost(host, i) for i, host in enumerate(islice(names, len(switches)))]
