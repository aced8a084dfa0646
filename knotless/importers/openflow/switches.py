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

import numpy as np

from knotless.base.errors import RuleError
from knotless.base.flow_control import FlowControl
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.forwarding.openflow.rules import Output, SwitchRules
from knotless.importers.cabling.layer1_topology import NamedCables, NamedEnd
from knotless.importers.cabling.lldp_json import Neighbours
from knotless.importers.fabric import RulesFabric, Traffic
from knotless.importers.file_kinds import FoundFile
from knotless.importers.findings import Findings
from knotless.importers.openflow.ovs_fdb import OvsAddresses
from knotless.importers.openflow.ovs_ports import MAX_PORT, OvsPorts
from knotless.importers.routers.fabric import as_names
from knotless.importers.routers.router import natural
from knotless.routing.graphs.channels import End, channels_of
from knotless.topologies.numbering import host_ip, mac_text
from knotless.topologies.partial_fabric import PartialHost, PartialLink, PartialSwitch, complete

_MAC = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}")
_GROUP_BIT = 1 << 40
_SHOWN = 5


@dataclass
class _Switch:
    """The facts read about a switch; ``rules`` is None without a dump of them."""

    name: str
    rules: SwitchRules | None = None
    ports: dict[str, int] = field(default_factory=dict)
    learned: list[tuple[int, str]] = field(default_factory=list)
    heard: list[tuple[str, NamedEnd]] = field(default_factory=list)

    def port(self, text: str) -> int | None:
        """Return the number of a port that is given by name or by number."""
        if text in self.ports:
            return self.ports[text]
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
    switches, listed = _switches(files, findings)
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
                findings.unclear(f"what port {end[1]} of {switches[end[0]].name} leads to")
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
    rules = {
        name: switch.rules
        for name, switch in zip(names, switches, strict=True)
        if switch.rules is not None
    }
    state = state_of_rules(fabric, rules)
    for switch_number, text in state.core.problems:
        problem = f"what {switches[switch_number].name} does: {text}"
        (findings.gap if text.endswith("where nothing is") else findings.unclear)(problem)
    if len(np.unique(state.dependencies[:, [1, 3]])) > 1:
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
    )


def _ports(switches: Sequence[_Switch], ends: Sequence[End]) -> str:
    """Return ports as text, some of them if there are many."""
    shown = ", ".join(f"{switches[switch].name}:{port}" for switch, port in ends[:_SHOWN])
    return shown + (f" and {len(ends) - _SHOWN} more ports" if len(ends) > _SHOWN else "")


def _untagged(_source: int, _destination: int) -> int:
    return 0


def _switches(
    files: Sequence[FoundFile], findings: Findings
) -> tuple[list[_Switch], list[tuple[NamedEnd, NamedEnd]]]:
    """Return the switches, by name, and the cables that a file of the whole fabric lists."""
    switches: dict[str, _Switch] = {}
    listed: list[tuple[NamedEnd, NamedEnd]] = []
    dumps: list[FoundFile] = []
    for file in files:
        if isinstance(file.value, NamedCables):
            listed += file.value.cables
            continue
        switch = switches.setdefault(file.device.name, _Switch(file.device.name))
        if isinstance(file.value, OvsPorts):
            switch.ports |= file.value.numbers
        elif isinstance(file.value, OvsAddresses):
            switch.learned += file.value.learned
        elif isinstance(file.value, Neighbours):
            switch.heard += [
                (
                    neighbour.interface,
                    (neighbour.system, neighbour.port_id or neighbour.port_description),
                )
                for neighbour in file.value.heard
            ]
        else:
            dumps.append(file)
    for file in dumps:
        switch = switches[file.device.name]
        rules, unknown = file.value.parsed(switch.ports)
        merged = switch.rules or SwitchRules(())
        switch.rules = SwitchRules(
            tuple(sorted((*merged.rules, *rules.rules), key=lambda rule: rule.order)),
            (*merged.groups, *rules.groups),
        )
        for text in unknown[:5]:
            findings.unclear(f"what a rule of {switch.name} does: {file.path}: {text}")
    return [switches[name] for name in sorted(switches, key=natural)], listed


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
        for port, mac in switch.learned:
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
            findings.unclear(f"the port of {mac}, which occurs on several without a known cable")
            continue
        used.add(mac)
        called = named.get(end, ("", ""))[0]
        yield end, (called or f"{switches[end[0]].name}-{end[1]}", mac)
