"""The tables of 802.1Q switches, independent of the file format."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from knotless.routing.vlans.host_tags import HostTags
from knotless.topologies.fabric import Fabric

Macs = dict[int, dict[str, int]]
"""VLAN -> {MAC: port}. A VLAN of the switch without static entries may be absent or empty."""


@dataclass(frozen=True)
class L2Port:
    """A port: its PVID and its VLANs, in ascending order.

    A port without a PVID drops untagged frames.
    """

    port: int
    pvid: int | None
    untagged: tuple[int, ...]
    tagged: tuple[int, ...]

    @property
    def vlans(self) -> tuple[int, ...]:
        """Return all VLANs of the port, in ascending order."""
        return tuple(sorted((*self.untagged, *self.tagged)))


@dataclass(frozen=True)
class L2Switch:
    """The tables of an 802.1Q switch; ports are in ascending order."""

    name: str
    ports: tuple[L2Port, ...]
    macs: Macs

    @cached_property
    def vlans(self) -> tuple[int, ...]:
        """Return the VLANs of all ports, in ascending order."""
        return tuple(sorted({vlan for port in self.ports for vlan in port.vlans}))


@dataclass(frozen=True)
class L2Fabric:
    """The 802.1Q switches of a fabric, in its order; ``tags`` are the hosts' tags, if any."""

    fabric: Fabric
    switches: tuple[L2Switch, ...]
    tags: HostTags | None
