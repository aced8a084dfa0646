"""The parts of a fabric that nobody has declared, as probes and frames of hosts show. Pure.

A cable between switches is a link when probes have crossed it in both directions and arrived
nowhere else. A host is whoever sends the first frame to a port that gets no probes. Switches and
hosts may be hostile, so whatever they say takes a bounded amount of memory, and what contradicts
itself is not used, but reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from knotless.base.errors import FabricError
from knotless.controller.observed import port_text
from knotless.controller.probes.cables import Cables, PortId
from knotless.controller.probes.frames import Sender
from knotless.topologies.fabric import Fabric, Host, Link, Switch
from knotless.topologies.failures import NO_FAILURES, parts
from knotless.topologies.numbering import MAX_PORT, host_ip, mac_text
from knotless.topologies.validate import validate

MAX_SWITCHES = 1024
MAX_PORTS = 1024
"""Of one switch; those with higher numbers are not used."""
MAX_HOSTS = 16_384
MAX_FRAMES = 16
"""So many frames of a host are read until one has its IP address."""
MIN_HOSTS = 2
_SHOWN = 3


@dataclass
class _SeenHost:
    """A host that has sent frames; ``ip`` is None as long as none of them had it."""

    mac: int
    ip: str | None
    frames: int = 1


@dataclass
class Discovery:
    """The parts that were found so far; times are the caller's monotonic clock, in seconds.

    ``declared`` are hosts that need not send anything: their switches are named as learned ones.
    What was found is complete when nothing new was found for ``quiet_s``. ``base`` is the fabric
    that is in use (:meth:`use`), if there is one already: only what it does not have is learned.
    """

    quiet_s: float
    declared: tuple[Host, ...] = ()
    base: Fabric | None = None
    _up: dict[int, set[int]] = field(default_factory=dict)
    """The ports of each connected switch that have a carrier and are not those of ``base``."""
    _cables: Cables = field(default_factory=Cables)
    _hosts: dict[PortId, _SeenHost] = field(default_factory=dict)
    _refused: set[int] = field(default_factory=set)
    """Dpids of switches that are too many."""
    _names: Mapping[int, str] = field(default_factory=dict)
    """Of the switches of ``base``, by dpid."""
    _seen_last: object = None
    _changed_s: float = 0.0

    def use(self, base: Fabric) -> None:
        """Go on with another fabric in use."""
        self.base = base
        self._names = {switch.dpid: switch.name for switch in base.switches}

    # --- what happens ------------------------------------------------------------------------

    def see_ports(self, dpid: int, ports: Mapping[int, bool]) -> bool:
        """Take the ports of a switch, and whether they are up; False: it is one too many."""
        if dpid not in self._up and len(self._up) >= MAX_SWITCHES:
            if len(self._refused) < MAX_SWITCHES:
                self._refused.add(dpid)
            return False
        usable = sorted(port for port, up in ports.items() if up and 1 <= port <= MAX_PORT)
        up = set(usable[:MAX_PORTS])
        for port in self._up.get(dpid, set()) - up:
            self._forget((dpid, port))
        self._up[dpid] = up
        return True

    def disconnected(self, dpid: int) -> None:
        """Forget a switch: when it connects again, it may have other cables."""
        for port in self._up.pop(dpid, set()):
            self._forget((dpid, port))
        self._refused.discard(dpid)

    def _forget(self, port: PortId) -> None:
        self._hosts.pop(port, None)
        self._cables.forget(port)

    def see_probe(self, sender: PortId, receiver: PortId) -> None:
        """Take a probe that has arrived."""
        if self._is_up(sender) and self._is_up(receiver):
            self._cables.see(sender, receiver)

    def see_frame(self, port: PortId, sender: Sender) -> None:
        """Take a frame of a host. The first one decides whose port it is."""
        if not self._is_up(port) or not self._is_open(port):
            return
        host = self._hosts.get(port)
        if host is None and len(self._hosts) >= MAX_HOSTS:
            return
        if host is None:
            self._hosts[port] = _SeenHost(sender.mac, sender.ip)
        else:
            host.frames += 1
            if sender.mac == host.mac:
                host.ip = host.ip or sender.ip

    def _is_up(self, port: PortId) -> bool:
        return port[1] in self._up.get(port[0], ())

    # --- ports -------------------------------------------------------------------------------

    @property
    def dpids(self) -> set[int]:
        """The switches that are connected."""
        return set(self._up)

    def ports(self, dpid: int) -> set[int]:
        """Return the ports of a switch that send probes."""
        return self._up.get(dpid, set())

    def host_ports(self, dpid: int) -> set[int]:
        """Return the ports of a switch on which there may be hosts: they get no probes."""
        return {port for port in self.ports(dpid) if not self._cables.is_at((dpid, port))}

    def open_ports(self, dpid: int) -> set[int]:
        """Return the ports of a switch from which frames are still wanted: nobody knows a host."""
        return {port for port in self.ports(dpid) if self._is_open((dpid, port))}

    def _is_open(self, port: PortId) -> bool:
        host = self._hosts.get(port)
        is_known = host is not None and (host.ip is not None or host.frames >= MAX_FRAMES)
        return not (is_known or self._cables.is_at(port))

    def problems(self) -> list[str]:
        """Return what is not used because it contradicts itself, one line each."""
        lines = list(self._cables.lines(self._text))
        _, clashes = self._learned_hosts()
        if self._refused:
            lines.append(
                f"{len(self._refused)} switches more than {MAX_SWITCHES} are connected: they are"
                " not used"
            )
        return lines + clashes

    def _learned_hosts(self) -> tuple[list[Host], list[str]]:
        """Return the hosts in the order of switches and ports, and what is wrong with others."""
        lines = list[str]()
        hosts = [host for host in self.declared if self._port_of(host) is not None]
        taken = {self._port_of(host) for host in hosts}
        declared = (*self.declared, *(self.base.hosts if self.base else ()))
        macs = {host.mac.lower(): host for host in declared}
        seen_ips = {seen_host.ip for seen_host in self._hosts.values() if seen_host.ip is not None}
        ips = {host.ip for host in declared}
        names = {host.name for host in declared} | {self.name(dpid) for dpid in self._up}
        names |= set(self.base.switch_index) if self.base else set()
        for host in self.declared:
            if (port := self._port_of(host)) is None:
                lines.append(f"host {host.name} is declared at {host.switch}: not connected yet")
            elif self._cables.is_at(port):
                lines.append(
                    f"host {host.name} is declared at {self._text(port)}: a switch is there"
                )
        number = 0
        for port, seen_host in sorted(self._hosts.items()):
            if port in taken or self._cables.is_at(port):
                continue
            mac = mac_text(seen_host.mac)
            if (other := macs.get(mac)) is not None:
                lines.append(
                    f"{self._text(port)} has sent frames with address {mac} of host {other.name} at"
                    f" {other.switch}:{other.port}: it is not used"
                )
                continue
            number = _next(number, names)
            is_own = seen_host.ip is not None and seen_host.ip not in ips
            ip = seen_host.ip if seen_host.ip is not None and is_own else _free_ip(ips | seen_ips)
            host = Host(f"h{number}", mac, ip, self.name(port[0]), port[1], ip_invented=not is_own)
            macs[mac] = host
            ips.add(ip)
            hosts.append(host)
        return hosts, lines

    def _port_of(self, host: Host) -> PortId | None:
        """Return the port of a declared host, if its switch is connected."""
        dpid = next((dpid for dpid in self._up if self.name(dpid) == host.switch), None)
        return None if dpid is None else (dpid, host.port)

    def name(self, dpid: int) -> str:
        """Return the name of a switch."""
        name, base = f"s{dpid}", self.base
        if base is None or dpid in self._names:
            return self._names.get(dpid, name)
        return f"dpid{dpid}" if name in base.switch_index or name in base.host_index else name

    def _text(self, port: PortId) -> str:
        return port_text((self.name(port[0]), port[1]))

    def as_json(self, now_s: float) -> dict[str, object]:
        """Return how much was found, and for how long nothing new must be."""
        hosts, _ = self._learned_hosts()
        return {
            "switches": len(self._up),
            "links": len(list(self._cables.links())),
            "hosts": len(hosts),
            "rest_s": round(self.rest_s(now_s), 1),
        }

    # --- the fabric --------------------------------------------------------------------------

    def look(self, now_s: float) -> None:
        """Note whether something new was found; to be called a few times a second."""
        hosts, _ = self._learned_hosts()
        seen = (frozenset(self._up), tuple(self._cables.links()), tuple(hosts))
        if seen != self._seen_last:
            self._seen_last, self._changed_s = seen, now_s

    def rest_s(self, now_s: float) -> float:
        """Return for how long nothing new must be found until all is complete."""
        return max(0.0, self._changed_s + self.quiet_s - now_s)

    def _seen(self, name: str) -> Fabric:
        """Return all that was found."""
        hosts, _ = self._learned_hosts()
        return Fabric(
            name,
            tuple(Switch(self.name(dpid), dpid) for dpid in sorted(self._up)),
            tuple(hosts),
            tuple(
                Link(self.name(a[0]), a[1], self.name(b[0]), b[1]) for a, b in self._cables.links()
            ),
        )

    def fabric(self, name: str) -> Fabric:
        """Return the fabric that was found.

        Raises
        ------
        FabricError
            It is not complete; the message says what is missing.

        """
        fabric = self._seen(name)
        if not fabric.switches:
            raise FabricError("no switch has connected yet")
        if len(set(parts(fabric, NO_FAILURES))) > 1:
            raise FabricError(_divided(fabric))
        if (count := len(fabric.hosts)) < MIN_HOSTS:
            raise FabricError(
                f"{count} host{'' if count == 1 else 's'} found: a host is found by the first frame"
                " that it sends; declare those that send none under 'hosts'"
            )
        if late := [host.name for host in self.declared if self._port_of(host) is None]:
            raise FabricError(f"the switch of {', '.join(late[:_SHOWN])} is not connected")
        validate(fabric)
        return fabric

    def grown(self, base: Fabric) -> Fabric:
        """Return ``base`` with what was found besides; the same if there is nothing.

        A switch is one of it when a link leads there from others. Raises FabricError.
        """
        seen = self._seen(base.name)
        new = tuple(switch for switch in seen.switches if switch.name not in base.switch_index)
        whole = replace(
            base,
            switches=(*base.switches, *new),
            hosts=(*base.hosts, *seen.hosts),
            links=(*base.links, *seen.links),
            grid=None,
        )
        part = dict(zip(whole.switch_index, parts(whole, NO_FAILURES), strict=True))
        reached = {name for name in part if part[name] == part[base.switches[0].name]}
        if not (seen.links or any(host.switch in reached for host in seen.hosts)):
            return base
        grown = replace(
            whole,
            switches=tuple(switch for switch in whole.switches if switch.name in reached),
            hosts=tuple(host for host in whole.hosts if host.switch in reached),
            links=tuple(link for link in whole.links if link.a in reached),
        )
        validate(grown)
        same = (grown.hosts, grown.links) == (base.hosts, base.links)
        return base if same else grown


def _divided(fabric: Fabric) -> str:
    """Describe a fabric that is not connected."""
    part = parts(fabric, NO_FAILURES)
    first = [fabric.switches[part.index(number)].name for number in sorted(set(part))]
    more = ", .." if len(first) > _SHOWN else ""
    return f"the switches are not connected with each other: {', '.join(first[:_SHOWN])}{more}"


def _next(number: int, names: Iterable[str]) -> int:
    """Return the next number whose host has a name of its own."""
    number += 1
    while f"h{number}" in names:
        number += 1
    return number


def _free_ip(taken: set[str]) -> str:
    """Return an address that no host has, for one whose own is not known."""
    number = 1
    while (ip := host_ip(number >> 8, number & 0xFF)) in taken or number & 0xFF in (0, 255):
        number += 1
    return ip
