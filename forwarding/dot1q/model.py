"""What 802.1Q switches are given, as plain values, whoever writes or reads it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from routing.vlans.host_tags import HostTags
from topologies.fabric import Fabric

Macs = dict[int, dict[str, int]]
"""VLAN -> {MAC: port}. A VLAN of the switch without static entries may be absent or empty."""


@dataclass(frozen=True)
class L2Port:
    """A port: its PVID and the VLANs it is a member of, in ascending order.

    Without a PVID, frames that come in untagged are dropped.
    """

    port: int
    pvid: int | None
    untagged: tuple[int, ...]
    tagged: tuple[int, ...]

    @property
    def vlans(self) -> tuple[int, ...]:
        """Return all VLANs that it is a member of, in ascending order."""
        return tuple(sorted((*self.untagged, *self.tagged)))


@dataclass(frozen=True)
class L2Switch:
    """All that an 802.1Q switch must be given; its ports in ascending order."""

    name: str
    ports: tuple[L2Port, ...]
    macs: Macs

    @cached_property
    def vlans(self) -> tuple[int, ...]:
        """Return the VLANs that some port is a member of, in ascending order."""
        return tuple(sorted({vlan for port in self.ports for vlan in port.vlans}))


@dataclass(frozen=True)
class L2Fabric:
    """A fabric of 802.1Q switches, in the fabric's order; ``tags`` where hosts tag."""

    fabric: Fabric
    switches: tuple[L2Switch, ...]
    tags: HostTags | None
