"""Fabrics with missing dpids, ports or addresses, as read from files of other programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from knotless.base.errors import FabricError
from knotless.topologies.fabric import (
    DEFAULT_DELAY_US,
    DEFAULT_RATE_MBPS,
    Fabric,
    Host,
    Link,
    Switch,
)
from knotless.topologies.numbering import (
    MAX_HOSTS,
    MAX_HOSTS_PER_SWITCH,
    MAX_SWITCHES,
    host_ip,
    host_mac,
)
from knotless.topologies.validate import validate


@dataclass(frozen=True)
class PartialSwitch:
    """A switch; the default dpid is the first free one, counting from the switch's number."""

    name: str
    dpid: int | None = None


@dataclass(frozen=True)
class PartialHost:
    """A host on the switch with index ``switch``; None fields are numbered as in families.

    Such an address is invented, as is one that ``ip_invented`` says is.
    """

    name: str
    switch: int
    port: int | None = None
    mac: str | None = None
    ip: str | None = None
    rate_mbps: float = DEFAULT_RATE_MBPS
    delay_us: float = DEFAULT_DELAY_US
    ip_invented: bool = False
    jitter_us: float = 0.0
    loss: float = 0.0
    server: str | None = None


@dataclass(frozen=True)
class PartialLink:
    """A link between the switches with indices ``a`` and ``b``."""

    a: int
    b: int
    a_port: int | None = None
    b_port: int | None = None
    rate_mbps: float = DEFAULT_RATE_MBPS
    delay_us: float = DEFAULT_DELAY_US
    jitter_us: float = 0.0
    loss: float = 0.0


def complete(
    name: str,
    switches: Sequence[PartialSwitch],
    hosts: Sequence[PartialHost],
    links: Sequence[PartialLink],
    *,
    whole: bool = True,
) -> Fabric:
    """Fill in what is missing and return the validated fabric.

    Only if ``whole`` must it be connected and have hosts: a dump may show a part of a fabric.

    Given ports are kept. The hosts of a switch take its lowest free ports, in order; then its
    links take ports in the order of the neighbours. The switch with index i has number i + 1,
    which determines its default dpid and the default MACs and IPs of its hosts.

    Raises
    ------
    FabricError
        The fabric is too large to be numbered, or inconsistent.

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
            link.jitter_us,
            link.loss,
        )
        for i, link in enumerate(links)
    ]
    made_switches = tuple(_switches(switches))
    fabric = Fabric(name, made_switches, tuple(made_hosts), tuple(made_links))
    validate(fabric, whole=whole)
    return fabric


def _given_ports(
    count: int, hosts: Sequence[PartialHost], links: Sequence[PartialLink]
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


def _switches(switches: Sequence[PartialSwitch]) -> Iterator[Switch]:
    used = {switch.dpid for switch in switches if switch.dpid is not None}
    for number, switch in enumerate(switches, 1):
        dpid = switch.dpid
        if dpid is None:
            dpid = number
            while dpid in used:
                dpid += 1
            used.add(dpid)
        yield Switch(switch.name, dpid)


def _host(host: PartialHost, switch: str, free: Iterator[int]) -> Host:
    port = next(free) if host.port is None else host.port
    number = host.switch + 1
    if not 1 <= port <= MAX_HOSTS_PER_SWITCH and (host.mac is None or host.ip is None):
        raise FabricError(
            f"host {host.name}: on port {port} it needs an explicit MAC and IP;"
            f" only ports 1 to {MAX_HOSTS_PER_SWITCH} have default ones"
        )
    return Host(
        host.name,
        host.mac.lower() if host.mac is not None else host_mac(number, port),
        host.ip if host.ip is not None else host_ip(number, port),
        switch,
        port,
        host.rate_mbps,
        host.delay_us,
        ip_invented=host.ip is None or host.ip_invented,
        server=host.server,
        jitter_us=host.jitter_us,
        loss=host.loss,
    )
