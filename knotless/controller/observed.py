"""What switches have reported: connections, ports, rules. Nothing is sent from here.

Pure. Which links are up follows from the ports as they are now, not from a history of events, so
that a controller that has just started and one that has run for a year see the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from knotless.controller.draining import Probed
from knotless.controller.steps import FoundRule
from knotless.topologies.fabric import Fabric, Link
from knotless.topologies.failures import Failures, hosts_by_part

DUPLICATE_MEMORY_S = 30.0
"""A refused switch retries within seconds; if it has not by this time, it is gone."""


@dataclass
class ObservedSwitch:
    """One switch.

    ``ports`` has for each port that the switch last reported whether it is up; None if it has
    never been connected. A port is up if it is switched on and has a carrier.
    """

    name: str
    dpid: int
    needs: Mapping[int, str]
    """Port number -> what should be at its other end, for the ports of the fabric."""
    is_new: bool = False
    """Whether it was added while the controller runs, and does not have its first rules yet."""
    connected: bool = False
    installed: bool = False
    ports: Mapping[int, bool] | None = None
    refused: tuple[str, ...] = ()
    foreign: tuple[FoundRule, ...] = ()
    _known_down: tuple[object, object, frozenset[int]] = field(
        default=(None, None, frozenset()), repr=False, compare=False
    )
    """The ports and needs of which :attr:`ports_down` was found last, and what it was."""

    def connect(self, ports: Mapping[int, bool]) -> None:
        """Record that the switch has connected with ``ports``; its rules are not known yet."""
        self.connected, self.installed, self.refused, self.foreign = True, False, (), ()
        self.ports = dict(ports)

    def see_ports(self, ports: Mapping[int, bool]) -> None:
        """Record the switch's ports as they are now."""
        self.ports = dict(ports)

    def disconnect(self) -> None:
        """Record that the switch has disconnected; it keeps its rules, which are now unknown."""
        self.connected = self.installed = False

    @property
    def missing_ports(self) -> tuple[int, ...]:
        """The ports that the fabric declares and the switch does not have."""
        if not self.connected or self.ports is None:
            return ()
        return tuple(sorted(self.needs.keys() - self.ports.keys()))

    @property
    def ports_down(self) -> frozenset[int]:
        """The ports of the fabric that are not up by the last report; none if there was none."""
        if self.ports is None:
            return frozenset()
        known, needs, down = self._known_down
        if known is not self.ports or needs is not self.needs:
            down = frozenset(port for port in self.needs if not self.ports.get(port))
            self._known_down = (self.ports, self.needs, down)
        return down

    def is_up(self, port: int) -> bool | None:
        """Whether a port is up; None if the switch has never reported its ports."""
        return None if self.ports is None else self.ports.get(port, False)

    def __str__(self) -> str:
        return f"{self.name} (dpid {self.dpid})"


@dataclass
class Observed:
    """All switches of a fabric."""

    fabric: Fabric
    switches: dict[int, ObservedSwitch] = field(init=False)
    """By dpid."""
    by_name: dict[str, ObservedSwitch] = field(init=False)
    unknown: set[int] = field(default_factory=set)
    """Dpids of connected switches that are not in the fabric."""
    duplicate_dpids: dict[int, float] = field(default_factory=dict)
    """Dpid of a second switch with the same dpid -> when it last tried to connect."""
    link_faults: Mapping[str, str] = field(default_factory=dict)
    """Name of a link -> what is wrong with it although it may have a carrier, as
    :meth:`knotless.controller.probing.Probing.faults` found."""
    fault_lines: tuple[str, ...] = ()
    """The same and wrong cables, one line each."""
    probed: Callable[[], Probed] = dict
    """Returns the probes that can overtake other frames, for :mod:`controller.draining`."""
    reflecting: frozenset[str] = frozenset()
    """The switches without a controller that send probes of their neighbours back."""

    def __post_init__(self) -> None:
        self.switches = {}
        self._index()

    def fit(self, fabric: Fabric) -> None:
        """Go on with another fabric; what is known of switches of both stays known."""
        known, self.fabric, self.switches = self.switches, fabric, {}
        self._index()
        for dpid, switch in self.switches.items():
            if (before := known.get(dpid)) is not None:
                before.needs = switch.needs
                self.switches[dpid] = self.by_name[switch.name] = before
            else:
                switch.is_new = True
        links = {link.name for link in fabric.links}
        faults = self.link_faults.items()
        self.link_faults = {name: fault for name, fault in faults if name in links}

    def _index(self) -> None:
        for switch in self.fabric.switches:
            hosts, far = self.fabric.hosts_at[switch.name], self.fabric.neighbours[switch.name]
            needs = {port: f"host {host.name}" for port, host in hosts.items()}
            needs |= {port: f"{name} port {at}" for port, (name, at) in far.items()}
            self.switches[switch.dpid] = ObservedSwitch(switch.name, switch.dpid, needs)
        self.by_name = {switch.name: switch for switch in self.switches.values()}
        self._link_at = {
            end: link.name
            for link in self.fabric.links
            for end in ((link.a, link.a_port), (link.b, link.b_port))
        }

    @property
    def ready(self) -> bool:
        """Whether every switch has acknowledged exactly its rules."""
        return all(switch.installed for switch in self.switches.values())

    def links_down(self) -> tuple[str, ...]:
        """Return the names (``s1:2-s2:3``) of links between switches that carry no frames now.

        They have no carrier, or probes have found a fault.
        """
        down = ((of.name, port) for of in self.switches.values() for port in of.ports_down)
        suspects = {self._link_at[end] for end in down if end in self._link_at}
        suspects |= self.link_faults.keys()
        if not suspects:
            return ()  # this is asked at each event, and there can be thousands of links
        links = (link for link in self.fabric.links if link.name in suspects)
        return tuple(link.name for link in links if self._is_down(link))

    def hosts_down(self) -> tuple[str, ...]:
        """Return the names of hosts whose link is down; they are not reachable."""
        return tuple(
            host.name
            for host in self.fabric.hosts
            if self.by_name[host.switch].is_up(host.port) is False
        )

    def switches_down(self) -> tuple[str, ...]:
        """Return the names of switches that are dead, as opposed to those without a controller.

        A switch is dead if it is not connected, and every one of its links is seen down by a
        connected neighbour, or does not return its probes.
        """
        return tuple(switch.name for switch in self.switches.values() if self._is_dead(switch.name))

    def dead_dpids(self) -> set[int]:
        """Return the dpids of switches that carry no frames: dead ones, and those yet to come."""
        return {dpid for dpid, switch in self.switches.items() if self._is_cut_off(switch.name)}

    def separated(self) -> list[list[str]]:
        """Return the hosts of each part into which failures divide the fabric, if they do."""
        down = {*self.links_down(), *self.switches_down()}
        found = hosts_by_part(self.fabric, Failures.of(self.fabric, down)) if down else []
        return found if len(found) > 1 else []

    def ends_missing(self) -> frozenset[str]:
        """Return the names of links, and of hosts, for which a switch does not have the port."""
        missing = {
            (switch.name, port)
            for switch in self.switches.values()
            for port in switch.missing_ports
        }
        if not missing:
            return frozenset()
        links = {
            link.name
            for link in self.fabric.links
            if missing & {(link.a, link.a_port), (link.b, link.b_port)}
        }
        hosts = {host.name for host in self.fabric.hosts if (host.switch, host.port) in missing}
        return frozenset(links | hosts)

    def failures(self) -> frozenset[str]:
        """Return the names of all links and switches that must not carry frames now.

        Every link of a dead switch is among them. A switch that was added carries frames when it
        has its first rules.
        """
        new = {switch.name for switch in self.switches.values() if switch.is_new}
        links = {link.name for link in self.fabric.links if new and {link.a, link.b} & new}
        return frozenset({*self.links_down(), *self.switches_down(), *links, *new})

    def _is_down(self, link: Link) -> bool:
        """Whether a link is down: probes or one of its ends say so.

        Reports of a switch that is not connected are old; they count only if the other end is not
        connected either.
        """
        if link.name in self.link_faults:
            return True
        ends = ((self.by_name[link.a], link.a_port), (self.by_name[link.b], link.b_port))
        fresh = [end for end in ends if end[0].connected]
        return any(switch.is_up(port) is False for switch, port in fresh or ends)

    def _is_dead(self, name: str) -> bool:
        switch = self.by_name[name]
        if switch.is_new and switch.ports is None:
            return False  # it has not come yet
        return self._is_cut_off(name)

    def _is_cut_off(self, name: str) -> bool:
        """Whether a switch is not connected, and nothing comes from it on any link."""
        far = self.fabric.neighbours[name].values()
        connected = self.by_name[name].connected
        return not connected and bool(far) and all(map(self._is_silent, far))

    def _is_silent(self, end: tuple[str, int]) -> bool:
        """Whether a connected switch reports that nothing comes from the other end of a link."""
        switch, port = self.by_name[end[0]], end[1]
        if not switch.connected:
            return False
        return not switch.is_up(port) or self.link_faults.get(self._link_at[end]) == "silent"
