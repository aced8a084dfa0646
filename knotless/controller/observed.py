"""Reports of switches: connections, ports, rules, counters. Nothing is sent from here.

Pure. Which links are up follows from the ports as they are now, not from a history of events, so
that a controller that has just started and one that has run for a year see the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite

from knotless.controller.reconcile import FoundRule
from knotless.forwarding.openflow.compiler import is_source_check
from knotless.forwarding.openflow.rules import Field
from knotless.topologies.fabric import Fabric, Link
from knotless.topologies.failures import Failures, hosts_by_part

Port = tuple[str, int]
"""The name of a switch, and the number of a port."""
Channel = tuple[Port, Port]
"""The sending and the receiving port of one direction of a link."""
Counters = Mapping[Port, tuple[int, int]]
"""By port of a switch: frames received and sent."""
ProbesGiven = Mapping[Port, tuple[int, int]]
"""By sending port: probes that it was given so far, and those of them that may not have left."""
ProbeNumbers = Mapping[Port, int]
"""By sending port: the number of a probe; probes that are sent later have higher ones."""

DUPLICATE_MEMORY_S = 30.0
"""A refused switch retries within seconds; if it has not by this time, it is gone."""


def port_text(port: Port) -> str:
    """Return ``s1:2``."""
    return f"{port[0]}:{port[1]}"


def channels_between(links: Sequence[Link]) -> list[Channel]:
    """Return both channels of each link."""
    ends = [((link.a, link.a_port), (link.b, link.b_port)) for link in links]
    return [*ends, *((b, a) for a, b in ends)]


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
    is_unread: bool = False
    """Whether the controller went on without having read its rules. It counts as failed until it
    has been read and holds those that are wanted."""
    is_known: bool = False
    """Whether it has held what was wanted of it on any connection, or rules are there since an
    earlier controller: frames may pass a switch with this dpid."""
    is_inherited: bool = False
    """Whether its rules were read for a takeover on a connection of which no probe has shown since
    that it is the right switch."""
    is_doubted: bool = False
    """Whether it may be another one with the same dpid: no probe shows a cable of it."""
    is_contested: bool = False
    """Whether another one has claimed its dpid since it was last proven to be the right one: what
    probes have shown meanwhile need not be true of it."""
    connected: bool = False
    installed: bool = False
    ports: Mapping[int, bool] | None = None
    refused: tuple[str, ...] = ()
    refused_probes: tuple[str, ...] = ()
    """The same of rules of probes; without them it is installed, but less is known of its links."""
    received: Mapping[int, int] = field(default_factory=dict, repr=False, compare=False)
    """The most frames that each port has said to have received since it began to count."""
    foreign: tuple[FoundRule, ...] = ()
    """The rules of others that it held when it was read last."""
    foreign_unread: int = 0
    """More of them, which were only counted."""
    changed_by_others: int = 0
    """The rules and groups that it has lost, or that were changed, and that are put back now."""
    probe_rules_lost: int = 0
    """The rules of probes that it had lost when it was read last; they were put back."""
    read_s: float | None = None
    """When it was read last and held what it should, on the clock of the controller; None: never
    since it has connected."""
    _last_down: tuple[object, object, frozenset[int]] = field(
        default=(None, None, frozenset()), repr=False, compare=False
    )
    """The ports and needs from which :attr:`ports_down` was computed last, and its value."""

    def connect(self, ports: Mapping[int, bool]) -> None:
        """Record that the switch has connected with ``ports``; its rules are not known yet."""
        self.connected, self.installed, self.refused, self.foreign = True, False, (), ()
        self.refused_probes, self.is_doubted = (), False
        self.foreign_unread, self.changed_by_others, self.read_s = 0, 0, None
        self.probe_rules_lost = 0
        self.ports = dict(ports)

    def see_ports(self, ports: Mapping[int, bool]) -> None:
        """Record the switch's ports as they are now."""
        self.ports = dict(ports)

    def disconnect(self) -> None:
        """Record that the switch has disconnected; it keeps its rules, which are now unknown."""
        self.connected = self.installed = False

    def age_s(self, now_s: float) -> float:
        """Return how long ago it was read, and held what it should; infinite if it was not."""
        return inf if self.read_s is None else now_s - self.read_s

    @property
    def is_wrong(self) -> bool:
        """Whether it is connected, and known not to hold what it should."""
        return self.connected and bool(self.changed_by_others or self.refused)

    @property
    def first_foreign(self) -> str:
        """The first of the rules of others."""
        if not self.foreign:
            return "too many to be read"
        return f"cookie {self.foreign[0].cookie:#x} in table {self.foreign[0].table}"

    @property
    def changed_text(self) -> str:
        """The report that others have changed rules."""
        return (
            f"{self} does not hold its rules: others have changed {self.changed_by_others} of them,"
            " which are put back"
        )

    @property
    def probes_lost_text(self) -> str:
        """The report that others have deleted rules of probes."""
        return (
            f"{self} had lost {self.probe_rules_lost} of its rules of probes, which are put back:"
            " while they are missing, less is known of its links"
        )

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
        ports, needs, down = self._last_down
        if ports is not self.ports or needs is not self.needs:
            down = frozenset(port for port in self.needs if not self.ports.get(port))
            self._last_down = (self.ports, self.needs, down)
        return down

    def see_counters(
        self, received: Mapping[int, int], asked_after: Mapping[int, int]
    ) -> frozenset[int]:
        """Record the frames received by each port; return the ports that count from zero again.

        They were made anew, or the switch has started again: what was under way is lost.
        ``asked_after`` is what :attr:`received` was when the switch was asked. Later answers may
        have come before this one, and show more frames.
        """
        anew = frozenset(
            port for port, frames in received.items() if frames < asked_after.get(port, 0)
        )
        self.received = {
            port: frames if port in anew else max(frames, self.received.get(port, 0))
            for port, frames in received.items()
        }
        return anew

    def is_up(self, port: int) -> bool | None:
        """Return whether a port is up; None if the switch has never reported its ports."""
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
    """Name of a link -> its fault, although it may have a carrier, as probes show; see
    :meth:`knotless.controller.probes.paths.PathMonitor.faults`."""
    fault_lines: tuple[str, ...] = ()
    """The same and wrong cables, one line each."""
    deaf: frozenset[str] = frozenset()
    """The switches that are deaf: see :mod:`knotless.controller.probes.deaf`."""
    too_many_deaf: frozenset[str] = frozenset()
    """Those that are or would be, if they are too many to route around them."""
    foreign_verdict: str = ""
    """The verdict on all that switches hold, if some hold rules of others."""
    ages_of_update_s: Mapping[str, float | None] = field(default_factory=dict)
    """What :meth:`read_ages_s` was when the last update was planned."""
    reflecting: frozenset[str] = frozenset()
    """The switches without a controller that send probes of their neighbours back."""

    def __post_init__(self) -> None:
        self.switches = {}
        self._index()

    def fit(self, fabric: Fabric) -> None:
        """Go on with another fabric; what is known of switches of both stays known."""
        earlier, self.fabric, self.switches = self.switches, fabric, {}
        self._index()
        for dpid, switch in self.switches.items():
            if (before := earlier.get(dpid)) is not None:
                before.needs = switch.needs
                self.switches[dpid] = self.by_name[switch.name] = before
            else:
                switch.is_new = True
        duplicates = self.duplicate_dpids.items()
        self.duplicate_dpids = {dpid: at_s for dpid, at_s in duplicates if dpid in self.switches}
        links = {link.name for link in fabric.links}
        faults = self.link_faults.items()
        self.link_faults = {name: fault for name, fault in faults if name in links}
        self.deaf &= self.by_name.keys()
        self.too_many_deaf &= self.by_name.keys()

    def _index(self) -> None:
        for switch in self.fabric.switches:
            hosts = self.fabric.hosts_at[switch.name]
            neighbours = self.fabric.neighbours[switch.name]
            needs = {port: f"host {host.name}" for port, host in hosts.items()}
            needs |= {port: f"{name} port {there}" for port, (name, there) in neighbours.items()}
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

    def read_ages_s(self, now_s: float) -> dict[str, float | None]:
        """Return how long ago each switch was read, and held what it should; None: it was not."""
        ages_s = {switch.name: switch.age_s(now_s) for switch in self.switches.values()}
        return {
            name: round(age_s, 3) if isfinite(age_s) else None for name, age_s in ages_s.items()
        }

    def links_down(self) -> tuple[str, ...]:
        """Return the names (``s1:2-s2:3``) of links between switches that carry no frames now.

        They have no carrier, or probes have found a fault.
        """
        switches = self.switches.values()
        down = ((switch.name, port) for switch in switches for port in switch.ports_down)
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
        down = {*self.links_down(), *self.switches_down(), *self.deaf}
        by_part = hosts_by_part(self.fabric, Failures.from_names(self.fabric, down)) if down else []
        return by_part if len(by_part) > 1 else []

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

        Every link of a dead switch is among them. Deaf switches do not forward. A switch that was
        added, or that was not read, carries frames when it has the rules that are wanted.
        """
        switches = self.switches.values()
        new = {switch.name for switch in switches if switch.is_new or switch.is_unread}
        links = {link.name for link in self.fabric.links if new and {link.a, link.b} & new}
        return frozenset({*self.links_down(), *self.switches_down(), *self.deaf, *links, *new})

    def may_carry(self, failures: Failures) -> bool:
        """Return whether frames may still cross a link that counts as failed: both ends are up."""
        return any(
            self.by_name[link.a].is_up(link.a_port) is not False
            and self.by_name[link.b].is_up(link.b_port) is not False
            for link in failures.dead_links(self.fabric)
        )

    def _is_down(self, link: Link) -> bool:
        """Return whether a link is down: probes or one of its ends say so.

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
        """Return whether a switch is not connected, and nothing comes from it on any link."""
        peers, switch = self.fabric.neighbours[name].values(), self.by_name[name]
        if switch.connected or not peers:
            return False
        return all(self._is_silent(end, probed=not switch.is_contested) for end in peers)

    def _is_silent(self, end: tuple[str, int], *, probed: bool) -> bool:
        """Return whether a connected switch reports that nothing comes over a link to it.

        ``probed``: probes can tell, not only the carrier.
        """
        switch, port = self.by_name[end[0]], end[1]
        if not switch.connected:
            return False
        is_lost = probed and self.link_faults.get(self._link_at[end]) == "silent"
        return not switch.is_up(port) or is_lost


# --- frames that hosts may not send -----------------------------------------------------------

WINDOW_S = 15.0
"""Frames dropped in this time are reported together."""
LEAST = 10
"""Fewer in this time are counted, but are no problem: hosts send odd frames."""


@dataclass(frozen=True)
class AdmissionCounters:
    """Counters of one switch: the frames that no rule admitted, and per port.

    ``received`` are the frames of each port, ``admitted`` those that a rule admitted. ``local``
    are frames that are for the link only (LLDP, for example), of any port. ``refused`` are the
    frames of each port with a foreign source in an ARP frame or IPv4 packet; ``dropped`` has them
    too. Switches count rules late (Open vSwitch: by up to some seconds), and ports at once.
    """

    dropped: int
    received: Mapping[int, int]
    admitted: Mapping[int, int]
    local: int = 0
    refused: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def counted(cls, rules: Iterable[tuple[tuple[Field, ...], int]]) -> AdmissionCounters:
        """Return the counters of our rules of the first table: of each its match and its frames."""
        admitted: dict[int, int] = {}
        refused: dict[int, int] = {}
        dropped = local = 0
        for match, frames in rules:
            port = next((field.value for field in match if field.name == "in_port"), None)
            if port is not None and is_source_check(match):
                refused[port] = refused.get(port, 0) + frames
                dropped += frames
            elif port is not None:
                admitted[port] = admitted.get(port, 0) + frames
            elif match:
                local += frames
            else:
                dropped += frames
        return cls(dropped, {}, admitted, local, refused)


class UnadmittedFrames:
    """Frames that were not admitted to a fabric; times are on the caller's clock, in seconds."""

    def __init__(self, fabric: Fabric) -> None:
        self._seen: dict[str, deque[tuple[float, AdmissionCounters]]] = {}
        self.total = 0
        """Frames dropped since the controller started."""
        self.fit(fabric)

    def fit(self, fabric: Fabric) -> None:
        """Count the frames of another fabric from now on."""
        self._hosts = {
            name: {port: host.name for port, host in ports.items()}
            for name, ports in fabric.hosts_at.items()
        }
        self.forget()

    def see(self, switch: str, now: AdmissionCounters, now_s: float) -> None:
        """Take the counters of a switch, which is asked every few seconds."""
        if switch not in self._hosts:
            return  # it has been removed meanwhile
        seen = self._seen.setdefault(switch, deque())
        if seen and now.dropped < seen[-1][1].dropped:
            seen.clear()  # it has new rules, or has started again
        if seen:
            self.total += now.dropped - seen[-1][1].dropped
        seen.append((now_s, now))
        while seen[0][0] < now_s - WINDOW_S:
            seen.popleft()

    def forget(self) -> None:
        """Count from the next counters on: what a change of routes drops is nobody's fault."""
        self._seen.clear()

    def problems(self, now_s: float) -> list[str]:
        """Return one line for each switch that drops such frames now, with the hosts at fault.

        A switch that has not been read for a while, because it is not connected, has none.
        """
        lines = []
        for switch, seen in sorted(self._seen.items()):
            if seen[-1][0] < now_s - WINDOW_S:
                continue
            count = seen[-1][1].dropped - seen[0][1].dropped
            if count >= LEAST:
                ports = self._at_fault(switch, [counters for _, counters in seen])
                hosts = ", ".join(f"{self._hosts[switch][port]} (port {port})" for port in ports)
                lines.append(
                    f"{switch} has dropped {count} frames with an address or a VLAN tag that their"
                    f" port may not use, within {WINDOW_S:g} s; of {hosts or 'an unknown port'}"
                )
        return lines

    def _at_fault(self, switch: str, seen: list[AdmissionCounters]) -> list[int]:
        """Return the host ports that certainly sent some of the dropped frames.

        What a port had received when it was asked before the last time has been counted by the
        rules now, however late they count.
        """
        first, before, last = seen[0], seen[-2], seen[-1]
        explained = last.local - first.local
        return [
            port
            for port in sorted(self._hosts[switch])
            if last.refused.get(port, 0) > first.refused.get(port, 0)
            or before.received.get(port, 0) - first.received.get(port, 0)
            > last.admitted.get(port, 0) - first.admitted.get(port, 0) + explained
        ]
