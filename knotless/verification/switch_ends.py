"""The settings of the ports of a fabric, as a file or the tables of its switches have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from knotless.base.flow_control import FlowControl
from knotless.base.printable import listed
from knotless.base.switch_settings import (
    EgressGroup,
    IngressGroup,
    PortSettings,
    SwitchFile,
    SwitchSettings,
    SwitchSettingsError,
)
from knotless.routing.graphs.channels import PRIORITIES
from knotless.topologies.fabric import Fabric
from knotless.verification.pool_waits import Share

EVERY = frozenset(range(PRIORITIES))
"""All priorities."""


@dataclass(frozen=True)
class SwitchEnds:
    """The ports of a fabric with their settings, under a flow control.

    Only PFC knows priorities that do not pause; links that PAUSE stop all. ``used`` are the
    priorities that packets have.
    """

    fabric: Fabric
    file: SwitchFile
    flow_control: FlowControl
    used: frozenset[int] = EVERY

    @cached_property
    def ports(self) -> Mapping[tuple[str, int], PortSettings]:
        """The settings of each port with a cable, by switch and number."""
        return {
            (name, port): self.switch(name).of_port(port)
            for name, port in sorted(self._ends(), key=lambda end: (self._place[end[0]], end[1]))
        }

    @cached_property
    def by_switch(self) -> Mapping[str, list[tuple[str, int]]]:
        """The ports of each switch, in order."""
        ends: dict[str, list[tuple[str, int]]] = {}
        for end in self.ports:
            ends.setdefault(end[0], []).append(end)
        return ends

    def switch(self, name: str) -> SwitchSettings:
        """Return the settings of a switch."""
        return self.file.of_switch(name)

    def lossless(self, end: tuple[str, int]) -> frozenset[int]:
        """Return the priorities for which a port sends and obeys pauses: by default, all."""
        control = self.flow_control
        links = control.host_links if end in self._of_hosts else control.switch_links
        chosen = self.ports[end].lossless
        if not links.pauses:
            return frozenset()
        return EVERY if chosen is None or links.by_channel else frozenset(chosen)

    def filled(self, end: tuple[str, int]) -> frozenset[int]:
        """Return the lossless priorities whose buffers can fill at a port.

        Links that PAUSE have one buffer for all priorities. Of ports for which all priorities are
        lossless since nothing is said, those count that packets have.
        """
        lossless = self.lossless(end)
        if lossless == EVERY and self.flow_control.switch_links.by_channel:
            return frozenset({0})
        return lossless if self.ports[end].lossless is not None else lossless & self.used

    def ingress(self, end: tuple[str, int]) -> Iterator[tuple[IngressGroup, list[int]]]:
        """Yield the ingress groups of a port, each with those of its priorities that fill."""
        for group in self.ports[end].ingress or ():
            yield group, sorted({*group.priorities} & self.filled(end))

    def egress(self, end: tuple[str, int]) -> Iterator[tuple[EgressGroup, list[int]]]:
        """Yield the egress groups of a port, each with those of its priorities that fill."""
        for group in self.ports[end].egress or ():
            yield group, sorted({*group.priorities} & self.filled(end))

    def shares(self, longest_frame_bytes: int) -> dict[tuple[int, int], dict[int, Share]]:
        """Return the pool of each ingress buffer that has one, and whether it has a reserve."""
        return {
            (self._place[end[0]], end[1]): {
                priority: Share(group.pool, group.reserved_bytes >= longest_frame_bytes)
                for group in settings.ingress or ()
                for priority in group.priorities
                if group.pool is not None
            }
            for end, settings in self.ports.items()
        }

    def source_pools(self) -> dict[int, frozenset[str]]:
        """Return by switch (its index) the pools that frames of its own hosts may hold."""
        pools: dict[int, set[str]] = {}
        for host in self.fabric.hosts:
            for group in self.ports[host.switch, host.port].ingress or ():
                if group.pool is not None:
                    pools.setdefault(self._place[host.switch], set()).add(group.pool)
        return {switch: frozenset(names) for switch, names in pools.items()}

    def refuse_unknown_names(self) -> None:
        """Raise SwitchSettingsError if the file names a switch or port that does not exist."""
        for name in self.file.switches:
            if name not in self._place:
                known = listed(self._place, 3)
                raise SwitchSettingsError(
                    f"switches.{name[:40]}: there is no such switch in {self.fabric.name}, which"
                    f" has {known}"
                )
        numbers = {
            name: {port for _, port in self.by_switch.get(name, ())} for name in self.file.switches
        }
        numbers[""] = {port for _, port in self.ports}
        for name, settings in [("", self.file), *self.file.switches.items()]:
            for port in settings.ports:
                if port not in map(str, numbers[name]):
                    where = f"switches.{name}.ports.{port[:40]}" if name else f"ports.{port[:40]}"
                    has = f"{name} has" if name else f"switches of {self.fabric.name} have"
                    ports = listed(map(str, sorted(numbers[name])), 8)
                    raise SwitchSettingsError(f"{where}: {has} ports {ports}")

    @cached_property
    def _of_hosts(self) -> frozenset[tuple[str, int]]:
        return frozenset((host.switch, host.port) for host in self.fabric.hosts)

    @cached_property
    def _place(self) -> Mapping[str, int]:
        return self.fabric.switch_index

    def _ends(self) -> Iterator[tuple[str, int]]:
        for host in self.fabric.hosts:
            yield host.switch, host.port
        for link in self.fabric.links:
            yield link.a, link.a_port
            yield link.b, link.b_port
