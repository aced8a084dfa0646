"""Fabrics of OpenFlow switches: dumps of Open vSwitch, and a list of cables.

Ports without a cable to another switch have a host behind them if an address is known there: it
was learned, the list of cables gives it, or a rule sends it to this port. Nothing is known about
the flow control of the links. PAUSE on all of them is assumed, under which all priorities of a link
wait together: what cannot deadlock then cannot with PFC either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from knotless.base.errors import RuleError
from knotless.base.flow_control import FlowControl
from knotless.base.printable import listed as printed
from knotless.forwarding.openflow.ofctl_parser import parse_known
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.forwarding.openflow.rules import NORMAL, Output, Rule, SwitchRules
from knotless.forwarding.state import ForwardingState
from knotless.importers.cabling.layer1_topology import NamedCables, NamedEnd
from knotless.importers.cabling.lldp_json import Neighbours
from knotless.importers.causes import Cause, Source
from knotless.importers.fabric import RulesFabric, Traffic
from knotless.importers.file_kinds import FoundFile
from knotless.importers.findings import Findings
from knotless.importers.openflow.flooding import (
    Flooder,
    learning_loops,
    name_ports,
    names_reserved,
    sends_to,
)
from knotless.importers.openflow.ovs_fdb import OvsAddresses
from knotless.importers.openflow.ovs_flows import OvsRules
from knotless.importers.openflow.ovs_ports import MAX_PORT, OvsPorts
from knotless.importers.openflow.ovs_sections import OvsDump, OvsSections
from knotless.importers.routers.fabric import as_names
from knotless.importers.routers.router import natural
from knotless.routing.graphs.channels import End, channels_of
from knotless.topologies.fabric import Fabric
from knotless.topologies.numbering import host_ip, mac_text
from knotless.topologies.partial_fabric import PartialHost, PartialLink, PartialSwitch, complete

_MAC = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}")
_GROUP_BIT = 1 << 40
_SHOWN = 5
_BROADCAST = (1 << 48) - 1


@dataclass
class _Switch:
    """The facts read about a switch.

    ``rules`` is None without a dump of them, ``learned`` without one of addresses, and
    ``not_flooded`` without one of ports. ``unread`` are rules that cannot be read, without actions.
    ``of_mininet``: the dump is one of Mininet, which names port 2 of s1 ``s1-eth2``. ``dumps`` are
    the dumps of rules, with their files.
    """

    name: str
    rules: SwitchRules | None = None
    unread: list[Rule] = field(default_factory=list)
    ports: dict[str, int] = field(default_factory=dict)
    not_flooded: frozenset[int] | None = None
    blocked: frozenset[int] = frozenset()
    learned: list[tuple[int, int, str]] | None = None
    heard: list[tuple[str, NamedEnd]] = field(default_factory=list)
    of_mininet: bool = False
    dumps: list[tuple[str, OvsRules]] = field(default_factory=list)

    def port(self, text: str) -> int | None:
        """Return the number of a port that is given by name or by number."""
        if text in self.ports:
            return self.ports[text]
        if self.of_mininet and not self.ports:
            text = text.removeprefix(f"{self.name}-eth")
        return int(text) if text.isdecimal() and len(text) < 10 and int(text) else None


def assemble(name: str, files: Sequence[FoundFile]) -> RulesFabric:
    """Return the fabric called ``name`` that ``files`` describe; a folder is that of one switch.

    Raises
    ------
    RuleError
        There are no rules or no hosts, or a number in a rule is out of range.
    FabricError
        The cables contradict each other.

    """
    findings = Findings()
    unread_text: set[str] = set()
    switches, listed = _switches(files, findings, unread_text)
    if not any(switch.rules and switch.rules.rules for switch in switches):
        if findings.gaps:
            raise RuleError(f"there are no rules that can be read: {next(iter(findings.gaps))}")
        raise RuleError("there are no rules: ovs-ofctl dump-flows of each switch is needed")
    index = {switch.name: number for number, switch in enumerate(switches)}
    peer: dict[End, End] = {}
    named: dict[End, NamedEnd] = {}
    for one, other in _cables(switches, listed):
        ends = [_end(switches, index, end, findings) for end in (one, other)]
        for end, back, shown in ((ends[0], ends[1], other), (ends[1], ends[0], one)):
            if end is None:
                continue
            if back is not None and peer.setdefault(end, back) != back:
                findings.unclear(
                    f"what port {end[1]} of {switches[end[0]].name} leads to",
                    *_of_cables(files, shown[0]),
                )
            elif back is None:
                named[end] = shown
    if not peer and len(switches) > 1:
        findings.gap("the cables between the switches")
    hosts = list(_hosts(switches, peer, named, findings))
    if not hosts:
        raise RuleError(
            "no address of a host is known: ovs-appctl fdb/show of each switch is needed, or rules"
            " that match addresses"
        )
    names = as_names([switch.name for switch in switches], ())
    of_hosts = as_names([called for _, (called, _) in hosts], names)
    fabric = complete(
        name,
        [PartialSwitch(switch) for switch in names],
        [
            PartialHost(
                host,
                switch_number,
                port,
                mac,
                host_ip(1 + number // 254, 1 + number % 254),
                ip_invented=True,
            )
            for number, (host, ((switch_number, port), (_, mac))) in enumerate(
                zip(of_hosts, hosts, strict=True)
            )
        ],
        [
            PartialLink(a[0], b[0], a[1], b[1])
            for a, b in peer.items()
            if peer.get(b) == a and a < b
        ],
        whole=False,
    )
    for switch in switches:
        if switch.rules is None or not switch.rules.rules:
            findings.gap(f"the rules of {switch.name}")
    unread = [end for end in sorted(named) if end not in {end for end, _ in hosts}]
    if unread:
        findings.gap(f"what is behind {_ports(switches, unread)}: no address and no files")
    if len(hosts) < 2:
        findings.gap("the addresses of hosts: only one is known")
    _name_flooded_ports(switches, fabric, peer, findings, unread_text)
    rules = {
        name: switch.rules
        for name, switch in zip(names, switches, strict=True)
        if switch.rules is not None
    }
    state = state_of_rules(fabric, rules)
    for switch_number, text in state.core.problems:
        problem = f"what {switches[switch_number].name} does: {text}"
        if text.endswith("where nothing is"):
            findings.gap(problem)
        else:
            findings.unclear(problem)
            unread_text.add(problem)
    if len(state.priorities) > 1:
        findings.doubt("whether links pause each priority alone (PFC): PAUSE is assumed")
    return RulesFabric(
        fabric=fabric,
        channels=channels_of(fabric),
        flow_control=FlowControl.PAUSE,
        traffics=(Traffic(state, _untagged),),
        pairs=state.pairs,
        label="VLAN",
        findings=findings,
        rules=rules,
        unread_rules={
            name: tuple(switch.unread) for name, switch in zip(names, switches, strict=True)
        },
        unread_text=frozenset(unread_text),
        causes_at=partial(_rule_causes, switches, state),
    )


def _of_cables(files: Sequence[FoundFile], name: str) -> list[Cause]:
    """Return where lists of cables name a switch."""
    return [
        Source((str(file.path),)).cause(name)
        for file in files
        if isinstance(file.value, NamedCables)
    ]


def _name_flooded_ports(
    switches: Sequence[_Switch],
    fabric: Fabric,
    peer: Mapping[End, End],
    findings: Findings,
    unread_text: set[str],
) -> None:
    """Replace rules that send to NORMAL, FLOOD or ALL by rules that name ports."""
    learning = {
        number
        for number, switch in enumerate(switches)
        if switch.rules and any(sends_to(rule.actions, (NORMAL,)) for rule in switch.rules.rules)
    }
    cut = {(number, port) for number, switch in enumerate(switches) for port in switch.blocked}
    quiet = {
        (number, port)
        for number, switch in enumerate(switches)
        for port in switch.not_flooded or ()
    }
    flooded = [
        (a, b)
        for a, b in peer.items()
        if a < b and peer.get(b) == a and not {a, b} & cut and not {a, b} <= quiet
    ]
    looped = learning_loops(flooded, learning)
    for number, switch in enumerate(switches):
        if switch.rules is None or not (switch.blocked or names_reserved(switch.rules)):
            continue
        name = fabric.switches[number].name
        flooder = Flooder(
            {*fabric.hosts_at[name], *fabric.neighbours[name]},
            switch.not_flooded,
            switch.blocked,
            switch.learned,
            number in looped,
        )
        named = name_ports(switch.rules, switch.unread, flooder)
        switch.rules, switch.unread = named.rules, [*named.unread]
        macs = {mac for _, _, mac in switch.learned or ()}
        flooded_to = [host.name for host in fabric.hosts if host.mac not in macs]
        if number in learning and flooded_to and not named.faults:
            findings.note(f"{name} has not learned, and floods to, {printed(flooded_to, _SHOWN)}")
        for fault in named.faults:
            unread_text.add(text := f"what a rule of {switch.name} does: {fault}")
            findings.unclear(text)
        for doubt in named.unsure:
            unread_text.add(text := f"{switch.name}: {doubt}")
            findings.doubt(text)


def _ports(switches: Sequence[_Switch], ends: Sequence[End]) -> str:
    """Return ports as text, some of them if there are many."""
    shown = ", ".join(f"{switches[switch].name}:{port}" for switch, port in ends[:_SHOWN])
    return shown + (f" and {len(ends) - _SHOWN} more ports" if len(ends) > _SHOWN else "")


def _untagged(_source: int, _destination: int) -> int:
    return 0


def _switches(
    files: Sequence[FoundFile], findings: Findings, unread_text: set[str]
) -> tuple[list[_Switch], list[tuple[NamedEnd, NamedEnd]]]:
    """Return the switches, by name, and the cables that a file of the whole fabric lists.

    What is said of rules that cannot be read is added to ``unread_text``.
    """
    switches: dict[str, _Switch] = {}
    listed: list[tuple[NamedEnd, NamedEnd]] = []
    dumps: list[tuple[_Switch, Path, OvsRules]] = []
    files_of: dict[str, list[str]] = {}
    for file in files:
        if isinstance(file.value, NamedCables):
            listed += file.value.cables
            continue
        for name, value in _by_switch(file):
            switch = switches.setdefault(name, _Switch(name))
            files_of.setdefault(name, []).append(str(file.path))
            switch.of_mininet |= isinstance(file.value, OvsSections)
            if isinstance(value, OvsPorts):
                switch.ports |= value.numbers
                switch.not_flooded = (switch.not_flooded or frozenset()) | value.not_flooded
                switch.blocked |= value.blocked
            elif isinstance(value, OvsAddresses):
                switch.learned = [*(switch.learned or ()), *value.learned]
            elif isinstance(value, OvsRules):
                dumps.append((switch, file.path, value))
            else:
                switch.heard += [
                    (
                        neighbour.interface,
                        (neighbour.system, neighbour.port_id or neighbour.port_description),
                    )
                    for neighbour in value.heard
                ]
    for switch, path, dump in dumps:
        read = dump.parsed(switch.ports)
        merged = switch.rules or SwitchRules(())
        switch.rules = SwitchRules(
            tuple(sorted((*merged.rules, *read.rules.rules), key=lambda rule: rule.order)),
            (*merged.groups, *read.rules.groups),
        )
        switch.unread += read.unread
        switch.dumps.append((str(path), dump))
        for fault in read.faults:
            unread_text.add(text := f"what a rule of {switch.name} does: {path}: {fault}")
            if fault in read.faults[:_SHOWN]:
                findings.unclear(text, Cause.from_error(str(path), fault))
    if any(switch.of_mininet and not switch.ports for switch in switches.values()):
        findings.note("ports are numbered as Mininet names them: port 2 of s1 is s1-eth2")
    findings.sources |= {name: Source(tuple(paths)) for name, paths in files_of.items()}
    return [switches[name] for name in sorted(switches, key=natural)], listed


def _rule_causes(
    switches: Sequence[_Switch],
    state: ForwardingState,
    number: int,
    port: int | None,
    destination: int,
) -> list[Cause]:
    """Return the rules that packets for a destination can meet first in each table of a switch."""
    hosts, switch, mac = state.fabric.hosts, switches[number], None
    if destination < len(hosts):
        mac = int(hosts[destination].mac.replace(":", ""), 16)
    elif state.destination_name(destination) == "all":
        mac = _BROADCAST
    best: dict[int, tuple[int, Cause]] = {}
    for path, dump in switch.dumps:
        for line, text in enumerate(dump.text.split("\n"), 1):
            for rule in parse_known(text, switch.ports).rules.rules:
                cause = Cause((path,), line=line)
                if _can_match(rule, port, mac) and rule.priority > best.get(rule.table, (-1,))[0]:
                    best[rule.table] = rule.priority, cause
    return [best[table][1] for table in sorted(best)]


def _can_match(rule: Rule, port: int | None, mac: int | None) -> bool:
    """Tell whether a rule may match packets that enter by a port for an address, None: any one."""
    for name, value, mask in rule.match:
        sent = {"in_port": port, "eth_dst": mac}.get(name)
        if sent is not None and sent & (-1 if mask is None else mask) != value:
            return False
        if name == "eth_dst" and sent is None:
            return False
    return True


def _by_switch(file: FoundFile) -> Iterator[tuple[str, OvsDump | Neighbours]]:
    """Yield what a file says of each switch; the folder of most files names it."""
    if isinstance(file.value, OvsSections):
        yield from file.value.dumps
    else:
        yield file.device.name, file.value


def _cables(
    switches: Sequence[_Switch], listed: Sequence[tuple[NamedEnd, NamedEnd]]
) -> Iterator[tuple[NamedEnd, NamedEnd]]:
    yield from listed
    for switch in switches:
        for port, peer in switch.heard:
            yield (switch.name, port), peer


def _end(
    switches: Sequence[_Switch], index: Mapping[str, int], end: NamedEnd, findings: Findings
) -> End | None:
    """Return a port by numbers; None if it is not one of the switches'."""
    if end[0] not in index:
        return None
    switch = index[end[0]]
    number = switches[switch].port(end[1])
    if number is None:
        findings.gap(f"the number of port {end[1][:40]!r} of {end[0]}: its dump-ports-desc")
        return None
    return switch, number


def _hosts(
    switches: Sequence[_Switch],
    peer: Mapping[End, End],
    named: Mapping[End, NamedEnd],
    findings: Findings,
) -> Iterator[tuple[End, tuple[str, str]]]:
    """Yield the end of each host with its name and its MAC; one host behind each port."""
    mac_at: dict[End, str] = {}
    for number, switch in enumerate(switches):
        for port, _, mac in switch.learned or ():
            mac_at.setdefault((number, port), mac)
    for end, (_, interface) in named.items():
        if _MAC.fullmatch(interface):
            mac_at[end] = interface
    for number, switch in enumerate(switches):
        for rule in switch.rules.rules if switch.rules else ():
            to = [field for field in rule.match if field.name == "eth_dst" and field.mask is None]
            ports = [action.port for action in rule.actions if isinstance(action, Output)]
            if to and len(ports) == 1 and not to[0].value & _GROUP_BIT:
                mac_at.setdefault((number, ports[0]), mac_text(to[0].value))
    used: set[str] = set()
    for end, mac in sorted(mac_at.items()):
        if end in peer or not 0 < end[1] < MAX_PORT or int(mac[:2], 16) & 1:
            continue
        if mac in used:
            findings.unclear(
                f"the port of {mac}, which occurs on several without a known cable",
                findings.cause(switches[end[0]].name, mac),
            )
            continue
        used.add(mac)
        called = named.get(end, ("", ""))[0]
        yield end, (called or f"{switches[end[0]].name}-{end[1]}", mac)
