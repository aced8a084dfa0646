"""The model of a fabric: switches, hosts and links.

A fabric is pure description. It has no routes, and this module does no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self, TypeVar

from knotless.base.errors import FabricError
from knotless.topologies.link_names import LinkNames
from knotless.topologies.numbering import ip_value

DEFAULT_RATE_MBPS = 10.0
"""Default line rate: low enough for emulation with real frames on a small machine."""
DEFAULT_DELAY_US = 500.0
"""Default one-way delay; docs/emulation.md explains why it is not shorter."""


@dataclass(frozen=True)
class Switch:
    """A switch.

    Attributes
    ----------
    name : str
        The name, which is unique among switches and hosts.
    dpid : int
        The OpenFlow datapath id, 1 to 2**64 - 1.
    hub : bool
        Whether it is a repeater hub: its hosts share one half-duplex medium and collide. A hub
        connects only hosts, and only the simulator supports it.

    """

    name: str
    dpid: int
    hub: bool = False


@dataclass(frozen=True)
class Host:
    """A host, and its link to a switch.

    Attributes
    ----------
    name : str
        The name, which is unique among switches and hosts.
    mac : str
        The MAC address, ``02:00:00:00:01:01``.
    ip : str
        The IPv4 address.
    switch : str
        The name of the switch.
    port : int
        The port of the switch, from 1.
    rate_mbps : float
        The rate of the link in each direction.
    delay_us : float
        The one-way delay of the link.
    ip_invented : bool
        Whether ``ip`` is only a number in its place, because nothing says which one the host has.
    server : str or None
        The server of which the host is a network interface, if a server has several.
    jitter_us, loss : float
        As of a :class:`Link`.

    """

    name: str
    mac: str
    ip: str
    switch: str
    port: int
    rate_mbps: float = DEFAULT_RATE_MBPS
    delay_us: float = DEFAULT_DELAY_US
    ip_invented: bool = False
    server: str | None = None
    jitter_us: float = 0.0
    loss: float = 0.0


@dataclass(frozen=True)
class Link:
    """A cable between two switches, which carries a channel in each direction.

    Attributes
    ----------
    a, b : str
        The names of the switches.
    a_port, b_port : int
        Their ports, from 1.
    rate_mbps : float
        The rate of each channel.
    delay_us : float
        The one-way delay of each channel.
    jitter_us : float
        Frames arrive up to this much later, at random but in order.
    loss : float
        The share of frames that each channel loses at random, 0 to 1. PAUSE and PFC are never lost.

    Examples
    --------
    >>> Link("s1", 2, "s2", 3).name
    's1:2-s2:3'

    """

    a: str
    a_port: int
    b: str
    b_port: int
    rate_mbps: float = DEFAULT_RATE_MBPS
    delay_us: float = DEFAULT_DELAY_US
    jitter_us: float = 0.0
    loss: float = 0.0

    @property
    def name(self) -> str:
        """Both ends, ``a`` first: ``s1:2-s2:3``."""
        return f"{self.a}:{self.a_port}-{self.b}:{self.b_port}"


@dataclass(frozen=True)
class Grid:
    """The grid of a mesh or torus: switch ``i`` has x coordinate ``i % dims[0]``, and so on.

    ``wrap`` is true for a torus. Dimension-order routing needs this.
    """

    dims: tuple[int, ...]
    wrap: bool


@dataclass(frozen=True)
class FamilyMember:
    """The family of a fabric, and the parameters with which the family builds it.

    ``sizes``, ``hosts`` (of each switch that has hosts) and the family's own ``options`` are those
    of a spec, defaults included. Rates and delays of links are no parameters of a family.
    """

    name: str
    sizes: tuple[int, ...]
    hosts: int
    options: Mapping[str, int]


@dataclass(frozen=True)
class Fabric:
    """Switches, hosts and links, in numbering order.

    Build one with a family (:mod:`knotless.topologies.spec`) or from a file
    (:mod:`knotless.topologies.formats.files`); both call
    :func:`knotless.topologies.validate.validate`.

    ``family`` is None unless :meth:`with_family` has set it: a copy that ``dataclasses.replace``
    makes with other switches, hosts or links belongs to no family.

    ``notes`` say what the file of the fabric has that the fabric has not, a line for each.
    """

    name: str
    switches: tuple[Switch, ...]
    hosts: tuple[Host, ...]
    links: tuple[Link, ...]
    grid: Grid | None = None
    notes: tuple[str, ...] = field(default=(), compare=False, repr=False, kw_only=True)
    family: FamilyMember | None = field(default=None, init=False, compare=False, repr=False)
    is_numbered: bool = field(default=False, init=False, compare=False, repr=False)

    def with_family(self, family: FamilyMember | None) -> Self:
        """Return a copy that belongs to ``family``, or to none."""
        copy = replace(self)
        object.__setattr__(copy, "family", family)
        return copy

    def as_numbered(self) -> Self:
        """Return a copy whose names, addresses and ports are known to be distinct and valid.

        All its links have the same rate and delay. Further copies do not say this of themselves.
        """
        copy = replace(self)
        object.__setattr__(copy, "is_numbered", True)
        return copy

    def with_notes(self, notes: Iterable[str]) -> Self:
        """Return a copy with these notes."""
        return replace(self, notes=tuple(notes)).with_family(self.family)

    @cached_property
    def switch_index(self) -> Mapping[str, int]:
        """Map each switch name to its index in ``switches``."""
        return {switch.name: i for i, switch in enumerate(self.switches)}

    @cached_property
    def host_index(self) -> Mapping[str, int]:
        """Map each host name to its index in ``hosts``."""
        return {host.name: i for i, host in enumerate(self.hosts)}

    @cached_property
    def neighbours(self) -> Mapping[str, Mapping[int, tuple[str, int]]]:
        """Map each switch to {its port: (neighbour, neighbour's port)}; links to hosts excluded."""
        ports: dict[str, dict[int, tuple[str, int]]] = {s.name: {} for s in self.switches}
        for link in self.links:
            ports[link.a][link.a_port] = (link.b, link.b_port)
            ports[link.b][link.b_port] = (link.a, link.a_port)
        return {name: dict(sorted(by_port.items())) for name, by_port in ports.items()}

    @cached_property
    def link_names(self) -> LinkNames[Link]:
        """The links between switches by the texts that name them: ``s1:2-s2:3`` and ``s1-s2``."""
        return LinkNames(
            (link, (link.a, link.a_port), (link.b, link.b_port)) for link in self.links
        )

    @property
    def hub(self) -> Switch | None:
        """The repeater hub to which all hosts are connected, or None."""
        return next((switch for switch in self.switches if switch.hub), None)

    def refuse_hub(self, what: str) -> None:
        """Raise FabricError if the fabric has a hub; ``what`` is what a hub cannot be."""
        if self.hub is not None:
            raise FabricError(
                f"{self.name}: {self.hub.name} is a repeater hub, which cannot be {what};"
                " hubs can only be simulated"
            )

    @cached_property
    def hosts_at(self) -> Mapping[str, Mapping[int, Host]]:
        """Map each switch to {its port: the host on it}."""
        ports: dict[str, dict[int, Host]] = {s.name: {} for s in self.switches}
        for host in self.hosts:
            ports[host.switch][host.port] = host
        return {name: dict(sorted(by_port.items())) for name, by_port in ports.items()}


Part = TypeVar("Part", Host, Link)


def with_lines(fabric: Fabric, rate_mbps: float | None, delay_us: float | None) -> Fabric:
    """Return a fabric with another rate or delay of all its links, those to hosts included.

    Parameters
    ----------
    fabric : Fabric
        The fabric, which stays as it is.
    rate_mbps : float or None
        The new rate; None: each link keeps its own.
    delay_us : float or None
        The new one-way delay; None: each link keeps its own.

    Returns
    -------
    Fabric
        The same switches, hosts and links, of the same name and family.

    Examples
    --------
    >>> from knotless.topologies import load
    >>> fast = with_lines(load("ring,4"), 1000.0, None)
    >>> fast.links[0].rate_mbps, fast.links[0].delay_us
    (1000.0, 500.0)

    """

    def changed(part: Part) -> Part:
        rate = part.rate_mbps if rate_mbps is None else rate_mbps
        delay = part.delay_us if delay_us is None else delay_us
        return replace(part, rate_mbps=rate, delay_us=delay)

    copy = replace(
        fabric,
        hosts=tuple(changed(host) for host in fabric.hosts),
        links=tuple(changed(link) for link in fabric.links),
    )
    return copy.with_family(fabric.family)


def known_ips(fabric: Fabric) -> list[int | None]:
    """Return the IPv4 address of each host, None where it is invented.

    Examples
    --------
    >>> from knotless.topologies import load
    >>> [hex(ip) for ip in known_ips(load("ring,3")) if ip]
    ['0xa000101', '0xa000201', '0xa000301']

    """
    return [None if host.ip_invented else ip_value(host.ip) for host in fabric.hosts]


def hosts_across_switches(fabric: Fabric) -> list[int]:
    """Return the indices of all hosts: the first host of every switch, then the second ones, ..

    Examples
    --------
    >>> from knotless.topologies import load
    >>> hosts_across_switches(load("ring,3,hosts=2"))
    [0, 2, 4, 1, 3, 5]

    """
    rank = {h.name: r for hosts in fabric.hosts_at.values() for r, h in enumerate(hosts.values())}
    return sorted(range(len(fabric.hosts)), key=lambda i: (rank[fabric.hosts[i].name], i))
