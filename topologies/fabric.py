"""What a fabric is: switches, hosts, and the links between them.

A fabric is pure description. It says nothing of routes, and nothing here does I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from common.errors import FabricError

DEFAULT_RATE_MBPS = 10.0
"""Line rate of a link that states none: low enough for real frames on a small machine."""
DEFAULT_DELAY_US = 500.0
"""One-way delay of a link that states none; see docs/emulation.md for why not shorter."""


@dataclass(frozen=True)
class Switch:
    """A switch. ``dpid`` is its OpenFlow datapath id, 1..2**64-1.

    A ``hub`` is no switch but a repeater in its place: its hosts share one half-duplex
    medium and collide. It has hosts only, and can be simulated only.
    """

    name: str
    dpid: int
    hub: bool = False


@dataclass(frozen=True)
class Host:
    """A host, on port ``port`` of switch ``switch`` (names; ports count from 1)."""

    name: str
    mac: str
    ip: str
    switch: str
    port: int
    rate_mbps: float = DEFAULT_RATE_MBPS
    delay_us: float = DEFAULT_DELAY_US


@dataclass(frozen=True)
class Link:
    """A cable between port ``a_port`` of switch ``a`` and port ``b_port`` of ``b``.

    It carries two channels, one in each direction, both with the same rate (Mbit/s)
    and delay (microseconds, one way).
    """

    a: str
    a_port: int
    b: str
    b_port: int
    rate_mbps: float = DEFAULT_RATE_MBPS
    delay_us: float = DEFAULT_DELAY_US


@dataclass(frozen=True)
class Grid:
    """The coordinates of a mesh or torus: switch ``i`` is at ``i % dims[0]``, and so on.

    ``wrap`` is true for a torus. Kept with the fabric because dimension order needs it.
    """

    dims: tuple[int, ...]
    wrap: bool


@dataclass(frozen=True)
class Fabric:
    """Switches, hosts and links, in the order in which they are numbered.

    Build one with a family (:mod:`topologies.spec`) or from a file
    (:mod:`topologies.formats.files`); both call :func:`topologies.validate.validate`.
    """

    name: str
    switches: tuple[Switch, ...]
    hosts: tuple[Host, ...]
    links: tuple[Link, ...]
    grid: Grid | None = None

    @cached_property
    def switch_index(self) -> Mapping[str, int]:
        """Name of a switch -> its place in ``switches``."""
        return {switch.name: i for i, switch in enumerate(self.switches)}

    @cached_property
    def host_index(self) -> Mapping[str, int]:
        """Name of a host -> its place in ``hosts``."""
        return {host.name: i for i, host in enumerate(self.hosts)}

    @cached_property
    def neighbours(self) -> Mapping[str, Mapping[int, tuple[str, int]]]:
        """Switch -> {its port: (far switch, far port)} for switch-to-switch links."""
        ports: dict[str, dict[int, tuple[str, int]]] = {s.name: {} for s in self.switches}
        for link in self.links:
            ports[link.a][link.a_port] = (link.b, link.b_port)
            ports[link.b][link.b_port] = (link.a, link.a_port)
        return {name: dict(sorted(by_port.items())) for name, by_port in ports.items()}

    @property
    def hub(self) -> Switch | None:
        """The repeater hub that all hosts are on, if there is one."""
        return next((switch for switch in self.switches if switch.hub), None)

    def refuse_hub(self, what: str) -> None:
        """Raise FabricError where there is a hub, which cannot be ``what`` (``given rules``)."""
        if self.hub is not None:
            raise FabricError(
                f"{self.name}: {self.hub.name} is a repeater hub, which cannot be {what};"
                " only simulations have hubs"
            )

    @cached_property
    def hosts_at(self) -> Mapping[str, Mapping[int, Host]]:
        """Switch -> {its port: the host there}."""
        ports: dict[str, dict[int, Host]] = {s.name: {} for s in self.switches}
        for host in self.hosts:
            ports[host.switch][host.port] = host
        return {name: dict(sorted(by_port.items())) for name, by_port in ports.items()}
