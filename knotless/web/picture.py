"""The picture on the page: the switches, hosts and channels of a fabric, with their places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from knotless.topologies.fabric import Fabric
from knotless.topologies.layout import fan, place_switches


@dataclass(frozen=True)
class Channel:
    """One direction of a link, named by its output port: ``s1:2``, or ``h1`` for a host's."""

    name: str
    sender: str
    receiver: str
    link: str
    rate_mbps: float


@dataclass(frozen=True)
class Picture:
    """A fabric with the places of its switches and hosts; the indices of channels are its own."""

    fabric: Fabric

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        """The channels: of links between switches, both directions of each, then of hosts."""
        channels = []
        for link in self.fabric.links:
            a, b = f"{link.a}:{link.a_port}", f"{link.b}:{link.b_port}"
            channels.append(Channel(a, link.a, link.b, link.name, link.rate_mbps))
            channels.append(Channel(b, link.b, link.a, link.name, link.rate_mbps))
        for host in self.fabric.hosts:
            switch_port, rate = f"{host.switch}:{host.port}", host.rate_mbps
            channels.append(Channel(host.name, host.name, host.switch, host.name, rate))
            channels.append(Channel(switch_port, host.switch, host.name, host.name, rate))
        return tuple(channels)

    @cached_property
    def index(self) -> Mapping[str, int]:
        """The index of each channel by its name."""
        return {channel.name: i for i, channel in enumerate(self.channels)}

    @cached_property
    def hosts_by_mac(self) -> Mapping[str, str]:
        """The name of each host by its MAC address."""
        return {host.mac: host.name for host in self.fabric.hosts}

    def as_json(self) -> dict[str, Any]:
        """Return the picture as the page reads it."""
        places = place_switches(self.fabric)
        nodes = [
            {"name": switch.name, "kind": "switch", "x": _short(x), "y": _short(y)}
            for switch in self.fabric.switches
            for x, y in [places[switch.name]]
        ]
        for switch, hosts in self.fabric.hosts_at.items():
            x, y = places[switch]
            nodes += [
                {"name": host.name, "kind": "host", "x": _short(x + dx), "y": _short(y + dy)}
                for host, (dx, dy) in zip(hosts.values(), fan(len(hosts)), strict=True)
            ]
        return {
            "fabric": self.fabric.name,
            "nodes": nodes,
            "channels": [
                {
                    "name": channel.name,
                    "from": channel.sender,
                    "to": channel.receiver,
                    "link": channel.link,
                    "rate_mbps": channel.rate_mbps,
                }
                for channel in self.channels
            ],
        }


def _short(value: float) -> float:
    return round(value, 4)
