"""What a fabric that nobody has declared consists of, as probes and frames of hosts show. Pure.

A cable between switches is a link when probes have crossed it in both directions and arrived
nowhere else. A host is whoever sends the first frame to a port that gets no probes. Switches and
hosts may be hostile, so whatever they say takes a bounded amount of memory, and what contradicts
itself is not used, but reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from knotless.base.errors import FabricError
from knotless.controller.cables import At, Cables
from knotless.controller.host_frames import Sender
from knotless.controller.wiring import port_text
from knotless.topologies.fabric import Fabric, Host, Link, Switch
from knotless.topologies.failures import NO_FAILURES, parts
from knotless.topologies.numbering import MAX_PORT, host_ip, mac_text
from knotless.topologies.validate import validate

MOST_SWITCHES = 1024
MOST_PORTS = 1024
"""Of one switch; those with higher numbers are not used."""
MOST_HOSTS = 16_384
MOST_FRAMES = 16
"""So many frames of a host are read until one has its IP address."""
LEAST_HOSTS = 2
_SHOWN = 3


@dataclass
class _Found:
    """A host that has sent frames; ``ip`` is None as long as none of them had it."""

    mac: int
    ip: str | None
    frames: int = 1


@dataclass
class Learning:
    """What was found so far; times are the caller's monotonic clock, in seconds.

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
    _hosts: dict[At, _Found] = field(default_factory=dict)
    _refused: set[int] = field(default_factory=set)
    """Dpids of switches that are too many."""
    _names: Mapping[int, str] = field(default_factory=dict)
    """Of the switches of ``base``, by dpid."""
    _known: object = None
    _changed_s: float = 0.0

    def use(self, base: Fabric) -> None:
        """Go on with another fabric in use."""
        self.base, self._names = base, {of.dpid: of.name for of in base.switches}

    # --- what happens ------------------------------------------------------------------------

    def see_ports(self, dpid: int, ports: Mapping[int, bool]) -> bool:
        """Take the ports of a switch, and whether they are up; False: it is one too many."""
        if dpid not in self._up and len(self._up) >= MOST_SWITCHES:
            if len(self._refused) < MOST_SWITCHES:
                self._refused.add(dpid)
            return False
        usable = sorted(port for port, up in ports.items() if up and 1 <= port <= MAX_PORT)
        up = set(usable[:MOST_PORTS])
        for port in self._up.get(dpid, set()) - up:
            self._forget((dpid, port))
        self._up[dpid] = up
        return True

    def disconnected(self, dpid: int) -> None:
        """Forget a switch: when it connects again, it may have other cables."""
        for port in self._up.pop(dpid, set()):
            self._forget((dpid, port))
        self._refused.discard(dpid)

    def _forget(self, at: At) -> None:
        self._hosts.pop(at, None)
        self._cables.forget(at)

    def see_probe(self, sender: At, receiver: At) -> None:
        """Take a probe that has arrived."""
        if self._is_up(sender) and self._is_up(receiver):
            self._cables.see(sender, receiver)

    def see_frame(self, at: At, sender: Sender) -> None:
        """Take a frame of a host. The first one decides whose port it is."""
        if not self._is_up(at) or not self._is_open(at):
            return
        found = self._hosts.get(at)
        if found is None and len(self._hosts) >= MOST_HOSTS:
            return
        if found is None:
            self._hosts[at] = _Found(sender.mac, sender.ip)
        else:
            found.frames += 1
            if sender.mac == found.mac:
                found.ip = found.ip or sender.ip

    def _is_up(self, at: At) -> bool:
        return at[1] in self._up.get(at[0], ())

    # --- what is known -----------------------------------------------------------------------

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

    def _is_open(self, at: At) -> bool:
        found = self._hosts.get(at)
        is_known = found is not None and (found.ip is not None or found.frames >= MOST_FRAMES)
        return not (is_known or self._cables.is_at(at))

    def problems(self) -> list[str]:
        """Return what is not used because it contradicts itself, one line each."""
        found = list(self._cables.lines(self._text))
        _, clashes = self._learned_hosts()
        if self._refused:
            found.append(
                f"{len(self._refused)} switches more than {MOST_SWITCHES} are connected: they are"
                " not used"
            )
        return found + clashes

    def _learned_hosts(self) -> tuple[list[Host], list[str]]:
        """Return the hosts in the order of switches and ports, and what is wrong with others."""
        lines = list[str]()
        hosts = [host for host in self.declared if self._at(host) is not None]
        taken = {self._at(host) for host in hosts}
        known = (*self.declared, *(self.base.hosts if self.base else ()))
        macs = {host.mac.lower(): host for host in known}
        seen = {found.ip for found in self._hosts.values() if found.ip is not None}
        ips = {host.ip for host in known}
        names = {host.name for host in known} | {self.name(dpid) for dpid in self._up}
        names |= set(self.base.switch_index) if self.base else set()
        for host in self.declared:
            if (at := self._at(host)) is None:
                lines.append(f"host {host.name} is declared at {host.switch}: not connected yet")
            elif self._cables.is_at(at):
                lines.append(f"host {host.name} is declared at {self._text(at)}: a switch is there")
        number = 0
        for at, found in sorted(self._hosts.items()):
            if at in taken or self._cables.is_at(at):
                continue
            mac = mac_text(found.mac)
            if (other := macs.get(mac)) is not None:
                lines.append(
                    f"{self._text(at)} has sent frames with address {mac} of host {other.name} at"
                    f" {other.switch}:{other.port}: it is not used"
                )
                continue
            number = _next(number, names)
            is_own = found.ip is not None and found.ip not in ips
            ip = found.ip if found.ip is not None and is_own else _free_ip(ips | seen)
            host = Host(f"h{number}", mac, ip, self.name(at[0]), at[1])
            macs[mac] = host
            ips.add(ip)
            hosts.append(host)
        return hosts, lines

    def _at(self, host: Host) -> At | None:
        """Return where a declared host is, if its switch is connected."""
        dpid = next((of for of in self._up if self.name(of) == host.switch), None)
        return None if dpid is None else (dpid, host.port)

    def name(self, dpid: int) -> str:
        """Return the name of a switch."""
        name, base = f"s{dpid}", self.base
        if base is None or dpid in self._names:
            return self._names.get(dpid, name)
        return f"dpid{dpid}" if name in base.switch_index or name in base.host_index else name

    def _text(self, at: At) -> str:
        return port_text((self.name(at[0]), at[1]))

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
        known = (frozenset(self._up), tuple(self._cables.links()), tuple(hosts))
        if known != self._known:
            self._known, self._changed_s = known, now_s

    def rest_s(self, now_s: float) -> float:
        """Return for how long nothing new must be found until all is complete."""
        return max(0.0, self._changed_s + self.quiet_s - now_s)

    def _found(self, name: str) -> Fabric:
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
        found = self._found(name)
        if not found.switches:
            raise FabricError("no switch has connected yet")
        if len(set(parts(found, NO_FAILURES))) > 1:
            raise FabricError(_divided(found))
        if (count := len(found.hosts)) < LEAST_HOSTS:
            raise FabricError(
                f"{count} host{'' if count == 1 else 's'} found: a host is found by the first frame"
                " that it sends; declare those that send none under 'hosts'"
            )
        if late := [host.name for host in self.declared if self._at(host) is None]:
            raise FabricError(f"the switch of {', '.join(late[:_SHOWN])} is not connected")
        validate(found)
        return found

    def grown(self, base: Fabric) -> Fabric:
        """Return ``base`` with what was found besides; the same if there is nothing.

        A switch is one of it when a link leads there from others. Raises FabricError.
        """
        found, known = self._found(base.name), set(base.switch_index)
        new = tuple(of for of in found.switches if of.name not in known)
        whole = replace(
            base,
            switches=(*base.switches, *new),
            hosts=(*base.hosts, *found.hosts),
            links=(*base.links, *found.links),
            grid=None,
        )
        part = dict(zip(whole.switch_index, parts(whole, NO_FAILURES), strict=True))
        reached = {name for name in part if part[name] == part[base.switches[0].name]}
        if not (found.links or any(host.switch in reached for host in found.hosts)):
            return base
        grown = replace(
            whole,
            switches=tuple(of for of in whole.switches if of.name in reached),
            hosts=tuple(of for of in whole.hosts if of.switch in reached),
            links=tuple(of for of in whole.links if of.a in reached),
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
