"""The verdict on an imported fabric: safe, a cycle with a packet for each step, or unknown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from knotless.base.flow_control import assumptions
from knotless.forwarding.state import Trace
from knotless.importers.causes import Cause
from knotless.importers.fabric import ImportedFabric, RulesFabric, TableFabric, Traffic
from knotless.importers.findings import Findings
from knotless.importers.openflow.certain_steps import certain_state
from knotless.routing.graphs.dependencies import Edges, cycle_names, find_cycle, virtual_channel
from knotless.verification.check import problems_of
from knotless.verification.dependencies import first_rows
from knotless.verification.imported_buffers import losses_in, pool_cycle_of, reads_all_reserves
from knotless.verification.imported_verdict import ImportedVerdict, SentWitness
from knotless.verification.pool_waits import Packet, PoolStep
from knotless.verification.verdict_parts import is_pool

_WORD = re.compile(r"[^\s,:;()'\"|]+")
_MOST_CAUSES = 8
RESERVES_OF_TABLES = "nobody else can take what tables of switches reserve for a priority"


@dataclass(frozen=True)
class ImportedWaits:
    """Dependencies of all traffics, one after the other, and a cycle of them.

    ``causes`` are the places in ``rows`` of those that matter, whose nodes are ``ends`` and
    ``edges``, as :meth:`ImportedFabric.waits` returns them.
    """

    imported: ImportedFabric
    rows: Edges
    causes: NDArray[np.int64]
    ends: Edges
    edges: NDArray[np.int64]
    cycle: list[int]

    @classmethod
    def from_imported(cls, imported: ImportedFabric) -> ImportedWaits:
        """Return what waits in a fabric."""
        dependencies = [traffic.state.dependencies for traffic in imported.traffics]
        rows = np.concatenate([np.empty((0, 6), dtype=np.int64), *dependencies])
        causes, ends = imported.waits(rows)
        edges = np.stack([virtual_channel(*ends[:, :2].T), virtual_channel(*ends[:, 2:].T)], 1)
        return cls(imported, rows, causes, ends, edges, find_cycle(edges))

    @property
    def names(self) -> list[str]:
        """The channels of the cycle."""
        return cycle_names(self.imported.channels, self.cycle)

    def witnesses(self) -> Iterator[SentWitness]:
        """Yield a packet for each step of the cycle."""
        steps = self.causes[first_rows(self.edges, self.cycle)]
        return _witnesses(self.imported, self.rows, steps, self.names)

    def packet(self, holds: int, requests: int) -> Packet:
        """Return a packet that holds a node while it waits for another."""
        place = np.flatnonzero((self.edges == (holds, requests)).all(axis=1))[0]
        return _packet(self.imported, self.rows, int(self.causes[place]))


def _cycle_of(waits: ImportedWaits) -> tuple[ImportedWaits, list[str]]:
    """Return what waits in the cycle to report, and what makes it uncertain.

    A cycle whose steps no unread rule can change is certain, whatever these rules do.
    """
    imported, doubts = waits.imported, [*waits.imported.findings.doubts]
    if not (waits.cycle and isinstance(imported, RulesFabric)):
        return waits, doubts
    others = [text for text in doubts if text not in imported.unread_text]
    if others == doubts:
        return waits, doubts
    state = certain_state(imported.fabric, imported.rules, imported.unread_rules)
    certain = ImportedWaits.from_imported(
        replace(imported, traffics=(replace(imported.traffics[0], state=state),))
    )
    return (certain, others) if certain.cycle else (waits, doubts)


def verdict_of_imported(imported: ImportedFabric) -> ImportedVerdict:
    """Return the verdict on a fabric that was read from files."""
    waits = ImportedWaits.from_imported(imported)
    reported, doubts = _cycle_of(waits)
    rows, causes, ends, edges = waits.rows, waits.causes, waits.ends, waits.edges
    cycle = waits.cycle
    through_pools, pool_doubts = list[PoolStep](), list[str]()
    losses, assumes = list[str](), assumptions(imported.flow_control)
    if isinstance(imported, TableFabric):
        if reads_all_reserves(imported):
            assumes[:1] = [RESERVES_OF_TABLES]
        losses = losses_in(imported)
        if not cycle:
            through_pools, pool_doubts = pool_cycle_of(imported, rows, causes, edges)
    counted = [traffic.state for traffic in imported.traffics if traffic.counted]
    undelivered = sum(state.core.undelivered for state in counted)
    unknown = sorted({gap for traffic in imported.traffics for gap in _met(imported, traffic)})
    findings = imported.findings
    problems = [line for state in counted for line in problems_of(state)]
    if imported.pairs and not len(rows) and undelivered == imported.pairs and findings.gaps:
        # Without any next hop, each switch and pair would say so again.
        unknown, problems = [], [f"none of the {imported.pairs} pairs can be followed"]
    names = reported.names or [step.holds for step in through_pools]
    missing = doubts if names and not pool_doubts else [*findings.gaps, *unknown]
    missing += pool_doubts
    for name in imported.management if not names else ():
        findings.note(_with_management(imported, name))
    witnesses = (
        *reported.witnesses(),
        *(witness_of(imported, *step) for step in through_pools),
    )
    problems = [*problems, *findings.problems, *losses]
    load = float(np.sum([state.loads for state in counted], axis=0).max(initial=0.0))
    return ImportedVerdict(
        fabric=imported.fabric.name,
        flow_control=imported.flow_control,
        switches=len(imported.fabric.switches),
        hosts=len(imported.fabric.hosts),
        pairs=imported.pairs,
        undelivered=undelivered,
        max_channel_load=int(load) if load.is_integer() else load,
        acyclic=None if missing else not names,
        cycle=names,
        witnesses=witnesses,
        vcs=dict(_by_vc(ends, edges)),
        missing=missing,
        notes=[*findings.notes],
        problems=problems,
        losses=[*findings.losses, *losses],
        assumes=assumes,
        ignored=[file.file for file in imported.not_read],
        not_read=[
            {"file": file.file, "reason": file.reason, "command": file.command}
            for file in imported.not_read
        ],
        unread=[f"{router}:{port}" for router, port in imported.unread],
        assumed_routes=imported.assumed_routes,
        causes=causes_of(imported, [*missing, *findings.notes], problems, witnesses),
    )


def causes_of(
    imported: ImportedFabric,
    lines: Sequence[str],
    problems: Sequence[str],
    witnesses: Sequence[SentWitness],
) -> dict[str, list[Cause]]:
    """Return the sources of the lines, problems and steps of a verdict, by their texts."""
    causes = (
        *((line, _causes(imported.findings, line)) for line in (*lines, *problems)),
        *_of_lost_packets(imported, problems),
        *_of_steps(imported, witnesses),
    )
    return {
        text: of_files
        for text, of_text in causes
        if (of_files := [cause for cause in of_text if cause.files])
    }


def _causes(findings: Findings, line: str) -> Sequence[Cause]:
    """Return the sources of a line; otherwise the files of the devices that it names."""
    if line in findings.causes:
        return findings.causes[line]
    named = dict.fromkeys(word for word in _WORD.findall(line) if word in findings.sources)
    return [findings.cause(name) for name in named]


def _of_lost_packets(
    imported: ImportedFabric, lines: Sequence[str]
) -> Iterator[tuple[str, Sequence[Cause]]]:
    """Yield the lines about packets that do not arrive, with what switches do where they are lost.

    Of those that go round, with what each switch on their way does.
    """
    state = next((traffic.state for traffic in imported.traffics if traffic.counted), None)
    causes_at = cache(imported.causes_at)
    for line in lines:
        source, to, rest = line.partition(" to ")
        target = rest.partition(": ")[0]
        if not to or state is None or state.source_number(source) is None:
            continue
        number = state.destination_number(source, target)
        if number is None:
            continue
        trace = state.trace_number(source, number)
        ends = [*trace.unsupported, *trace.dropped] or _passed(imported, trace)
        causes = [causes_at(end, None, number) for end in islice(ends, _MOST_CAUSES)]
        yield line, [cause for some in causes for cause in some]


def _passed(imported: ImportedFabric, trace: Trace) -> Iterator[int]:
    """Yield the switches that a packet leaves by channels between switches, each once."""
    tails, passed = imported.channels.tail, set[int]()
    for hop in trace.hops:
        if hop.channel < len(tails) and (switch := int(tails[hop.channel])) not in passed:
            passed.add(switch)
            yield switch


def _of_steps(
    imported: ImportedFabric, witnesses: Sequence[SentWitness]
) -> Iterator[tuple[str, Sequence[Cause]]]:
    """Yield the steps of a cycle with what the switch does at which a packet waits."""
    channels = imported.channels
    for step in witnesses:
        name = step.held if is_pool(step.wanted) else step.wanted
        switch, port = channels.end_of(step.held if not is_pool(step.held) else name)
        leaving = channels.leaving.get((channels.names.index(switch), port))
        number = imported.traffics[0].state.destination_number(step.source, step.destination)
        if leaving is None or number is None:
            continue
        head, entered = int(channels.head[leaving]), int(channels.in_port[leaving])
        yield step.text, imported.causes_at(head, entered, number)


def _with_management(imported: ImportedFabric, name: str) -> str:
    """Describe whether packets that hosts do not send to each other can close a cycle with them."""
    traffics = (*imported.traffics, *imported.management[name])
    cycle = ImportedWaits.from_imported(replace(imported, traffics=traffics)).names
    if not cycle:
        return f"{name} close no cycle either"
    ring = " -> ".join([*cycle, cycle[0]])
    return f"{name}, which are not judged, can close a cycle: {ring}"


def _by_vc(ends: NDArray[np.int64], edges: NDArray[np.int64]) -> Iterator[tuple[str, bool]]:
    """Yield each virtual channel in use with whether packets that stay in it close no cycle."""
    for vc in np.unique(ends[:, [1, 3]]).tolist():
        inside = (ends[:, 1] == vc) & (ends[:, 3] == vc)
        yield str(vc), not find_cycle(edges[inside])


def _met(imported: ImportedFabric, traffic: Traffic) -> Iterable[str]:
    """Yield what packets met that is not known."""
    if not isinstance(imported, TableFabric):
        return  # its reader has described them in the findings
    names = imported.channels.names
    for switch, text in traffic.state.core.problems:
        kind, *ports = text.split()
        shown = [imported.channels.port_name(switch, int(port)) for port in ports]
        if kind == "port":
            yield f"what port {shown[0]} of {names[switch]} leads to"
        elif kind == "ports":
            yield f"the virtual channel from {shown[0]} to {shown[1]} at {names[switch]}"
        else:
            yield f"what {names[switch]} does with some destinations"


def _witnesses(
    imported: ImportedFabric, rows: Edges, causes: Iterable[int], names: Sequence[str]
) -> Iterator[SentWitness]:
    """Yield a packet for each step of the cycle ``names``.

    ``causes`` are the steps' places in ``rows``, the dependencies of all traffics one after the
    other.
    """
    for place, row in enumerate(causes):
        packet = _packet(imported, rows, int(row))
        yield witness_of(imported, names[place], names[(place + 1) % len(names)], packet)


def _packet(imported: ImportedFabric, rows: Edges, row: int) -> Packet:
    ends = np.cumsum([len(traffic.state.dependencies) for traffic in imported.traffics])
    return Packet(int(np.searchsorted(ends, row, side="right")), *rows[row, 4:].tolist())


def witness_of(imported: ImportedFabric, holds: str, requests: str, packet: Packet) -> SentWitness:
    """Return a step of a cycle with the packet that shows it."""
    traffic = imported.traffics[packet.traffic]
    return SentWitness(
        holds,
        requests,
        traffic.state.destination_name(packet.source),
        traffic.state.destination_name(packet.destination),
        imported.label,
        traffic.sent_as(packet.source, packet.destination),
    )


def traffic_for(imported: ImportedFabric, source: str, destination: str) -> Traffic:
    """Return the first traffic in which ``source`` sends to ``destination``."""
    state = imported.traffics[0].state
    if None not in (state.source_number(source), state.destination_number(source, destination)):
        for traffic in imported.traffics:
            if traffic.state.trace(source, destination).hops:
                return traffic
    return imported.traffics[0]
