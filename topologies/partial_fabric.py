"""A fabric with gaps, as other programs' files describe one, and how the gaps are filled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from common.errors import FabricError
from topologies.fabric import DEFAULT_DELAY_US, DEFAULT_RATE_MBPS, Fabric, Host, Link, Switch
from topologies.numbering import (
    MAX_HOSTS,
    MAX_HOSTS_PER_SWITCH,
    MAX_SWITCHES,
    host_ip,
    host_mac,
)
from topologies.validate import validate


@dataclass(frozen=True)
class DraftSwitch:
    """A switch; without a dpid it gets the lowest free one from its own number."""

    name: str
    dpid: int | None = None


@dataclass(frozen=True)
class DraftHost:
    """A host on the switch with index ``switch``; what is None is numbered as in families."""

    name: str
    switch: int
    port: int | None = None
    mac: str | None = None
    ip: str | None = None
    rate_mbps: float = DEFAULT_RATE_MBPS
    delay_us: float = DEFAULT_DELAY_US


@dataclass(frozen=True)
class DraftLink:
    """A link between the switches with indices ``a`` and ``b``."""

    a: int
    b: int
    a_port: int | None = None
    b_port: int | None = None
    rate_mbps: float = DEFAULT_RATE_MBPS
    delay_us: float = DEFAULT_DELAY_US


def complete(
    name: str,
    switches: Sequence[DraftSwitch],
    hosts: Sequence[DraftHost],
    links: Sequence[DraftLink],
) -> Fabric:
    """Return the fabric, every gap filled, validated.

    Ports that are given stay; then the hosts of a switch, in order, take its lowest free ports,
    and then its links, in the order of their far switch. The switch with index i has the number
    i + 1, from which dpid, MAC and IP come.

    Raises
    ------
    FabricError
        Too large to be numbered, or the fabric contradicts itself.

    """
    if len(switches) > MAX_SWITCHES:
        raise FabricError(f"{len(switches)} switches are too many, at most {MAX_SWITCHES}")
    if len(hosts) > MAX_HOSTS:
        raise FabricError(f"{len(hosts)} hosts are too many, at most {MAX_HOSTS}")
    ports = [_free_ports(used) for used in _given_ports(len(switches), hosts, links)]
    named = [switch.name for switch in switches]
    made_hosts = [_host(host, named[host.switch], ports[host.switch]) for host in hosts]
    far_first = sorted(
        [(link.a, link.b, i, 0) for i, link in enumerate(links) if link.a_port is None]
        + [(link.b, link.a, i, 1) for i, link in enumerate(links) if link.b_port is None]
    )
    taken = {(i, end): next(ports[near]) for near, _, i, end in far_first}
    made_links = [
        Link(
            named[link.a],
            taken[i, 0] if link.a_port is None else link.a_port,
            named[link.b],
            taken[i, 1] if link.b_port is None else link.b_port,
            link.rate_mbps,
            link.delay_us,
        )
        for i, link in enumerate(links)
    ]
    made_switches = tuple(_switches(switches))
    fabric = Fabric(name, made_switches, tuple(made_hosts), tuple(made_links))
    validate(fabric)
    return fabric


def _given_ports(
    count: int, hosts: Sequence[DraftHost], links: Sequence[DraftLink]
) -> list[set[int]]:
    used: list[set[int]] = [set() for _ in range(count)]
    ends = [(host.switch, host.port) for host in hosts]
    ends += [(link.a, link.a_port) for link in links] + [(link.b, link.b_port) for link in links]
    for switch, port in ends:
        if port is not None:
            used[switch].add(port)
    return used


def _free_ports(used: set[int]) -> Iterator[int]:
    port = 0
    while True:
        port += 1
        if port not in used:
            yield port


def _switches(switches: Sequence[DraftSwitch]) -> Iterator[Switch]:
    used = {switch.dpid for switch in switches if switch.dpid is not None}
    for number, switch in enumerate(switches, 1):
        dpid = switch.dpid
        if dpid is None:
            dpid = number
            while dpid in used:
                dpid += 1
            used.add(dpid)
        yield Switch(switch.name, dpid)


def _host(host: DraftHost, switch: str, free: Iterator[int]) -> Host:
    port = next(free) if host.port is None else host.port
    number = host.switch + 1
    if not 1 <= port <= MAX_HOSTS_PER_SWITCH and (host.mac is None or host.ip is None):
        raise FabricError(
            f"host {host.name}: on port {port} it needs a MAC and an IP of its own;"
            f" only ports 1 to {MAX_HOSTS_PER_SWITCH} have them by number"
        )
    return Host(
        host.name,
        host.mac.lower() if host.mac is not None else host_mac(number, port),
        host.ip if host.ip is not None else host_ip(number, port),
        switch,
        port,
        host.rate_mbps,
        host.delay_us,
    )
