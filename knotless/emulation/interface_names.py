"""The names that the kernel and Open vSwitch have for the nodes of a fabric.

A name of an interface has at most 15 characters, so not every name of a switch or host can begin
one. A node whose name fits keeps it. Any other is numbered there: ``s7-eth2`` is port 2 of the
seventh switch, whatever its name. Users read and write the name of the fabric everywhere else.

Pure functions of the fabric, so that all programs on a running fabric agree.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import count

from knotless.base.errors import EmulationError
from knotless.topologies.fabric import Fabric

LONGEST = 15
"""Characters of the name of an interface: IFNAMSIZ without its final zero byte."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_RESERVED = frozenset({"lo", "ovs-netdev", "ovs-system", "default", "all"})


def interface_names(fabric: Fabric) -> dict[str, str]:
    """Return the name of each switch and host in the names of its interfaces.

    The name of a switch is also that of its bridge in Open vSwitch.

    Parameters
    ----------
    fabric : Fabric
        The fabric.

    Returns
    -------
    dict of str to str
        Switches, then hosts, in the fabric's order. A node has its own name if all of its
        interfaces can have it; else ``s`` or ``h`` and its number, from 1, or the next number after
        those of all nodes if another node has that name.

    Raises
    ------
    EmulationError
        Two nodes have the same name, or the number of a port is too long.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from knotless.topologies import load
    >>> pair = load("ring,3")
    >>> hosts = (replace(pair.hosts[0], name="A.long.name"), *pair.hosts[1:])
    >>> interface_names(replace(pair, hosts=hosts))["A.long.name"]
    'h1'

    """
    ports: dict[str, list[int]] = {switch.name: [] for switch in fabric.switches}
    for host in fabric.hosts:
        ports.setdefault(host.switch, []).append(host.port)
    for link in fabric.links:
        ports.setdefault(link.a, []).append(link.a_port)
        ports.setdefault(link.b, []).append(link.b_port)
    kinds = [(switch.name, "s") for switch in fabric.switches]
    kinds += [(host.name, "h") for host in fabric.hosts]
    ports |= {host.name: [0] for host in fabric.hosts}
    if len(ports) < len(kinds):
        twice = next(
            name for name, times in Counter(name for name, _ in kinds).items() if times > 1
        )
        raise EmulationError(f"{twice!r} names two switches or hosts")
    taken = set(_RESERVED)

    def taken_by(name: str, kind: str, numbers: Iterable[int]) -> set[str] | None:
        """Return the names of a node's interfaces, None if it cannot have this name."""
        own = {interface(name, port) for port in numbers} | ({name} if kind == "s" else set())
        fits = _NAME.fullmatch(name) and max(map(len, own)) <= LONGEST
        return own if fits and taken.isdisjoint(own) else None

    names: dict[str, str] = {}
    for name, kind in kinds:
        if (own := taken_by(name, kind, ports[name])) is not None:
            names[name] = name
            taken |= own
    place = {"s": 0, "h": 0}
    for name, kind in kinds:
        place[kind] += 1
        for number in _numbers(place[kind], len(kinds)):
            if name in names:
                break
            candidate = f"{kind}{number}"
            last = interface(candidate, max(ports[name], default=0))
            if len(last) > LONGEST:
                raise EmulationError(
                    f"{name}: no interface can be called {last}: it may have {LONGEST} characters;"
                    " use smaller port numbers"
                )
            if (own := taken_by(candidate, kind, ports[name])) is not None:
                names[name] = candidate
                taken |= own
    return {name: names[name] for name, _ in kinds}


def interface(name: str, port: int) -> str:
    """Return the interface of a port of a node, by the node's name in :func:`interface_names`."""
    return f"{name}-eth{port}"


def host_interface(fabric: Fabric, host: str) -> str:
    """Return the name of a host's interface, as in its namespace."""
    return interface(interface_names(fabric)[host], 0)


def numbered(fabric: Fabric) -> dict[str, str]:
    """Return the nodes whose interfaces do not have their name, and the name that they have."""
    names: Mapping[str, str] = interface_names(fabric)
    return {node: name for node, name in names.items() if node != name}


def _numbers(first: int, nodes: int) -> Iterator[int]:
    """Yield the number of a node, and then those that are no node's."""
    yield first
    yield from count(nodes + 1)
