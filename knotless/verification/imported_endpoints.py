"""The verdict on an imported fabric whose hosts have message classes.

Its waits are those of :mod:`knotless.verification.endpoint_waits`, on the virtual channels that
files say of the links of hosts (:mod:`knotless.importers.host_links`). What they do not say makes
the verdict unknown: a cycle is reported only if no missing fact can break it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

import numpy as np

from knotless._core import forwarding as core
from knotless.base.errors import EndpointError
from knotless.base.printable import listed
from knotless.importers.fabric import ImportedFabric, TableFabric
from knotless.importers.host_links import HostLinks, HostTraffic
from knotless.routing.graphs.channels import VCS_PER_CHANNEL
from knotless.routing.graphs.dependencies import Edges, find_cycle, virtual_channel
from knotless.traffic.endpoints import EndpointModel
from knotless.verification.endpoint_verdict import HostsJudged
from knotless.verification.endpoint_waits import NOT_PAUSED, sends_and_takes
from knotless.verification.endpoint_witnesses import host_step
from knotless.verification.imported import ImportedWaits, verdict_of_imported, witness_of
from knotless.verification.imported_buffers import has_bare_buffers
from knotless.verification.imported_verdict import ImportedVerdict, SentWitness
from knotless.verification.pool_waits import Packet

_ANY_NUMBER = 1 << 40
"""In place of a number of hosts that is not known: a reserve for each of them is enough."""
Step = tuple[int, int]


@dataclass(frozen=True)
class SentHostWitness(SentWitness):
    """A host, the destination, that must send ``sends`` before it takes a message of the source."""

    message: str
    sends: str

    @property
    def text(self) -> str:
        """The step of the cycle as a clause."""
        return host_step(self.destination, self.sends, self.message, self.source)


@dataclass(frozen=True)
class ImportedEndpointVerdict(HostsJudged, ImportedVerdict):
    """A verdict that also judges what hosts send before they take more."""


def verdict_with_hosts(imported: ImportedFabric, model: EndpointModel) -> ImportedEndpointVerdict:
    """Return the verdict on an imported fabric if its hosts have the message classes of ``model``.

    It is unknown if a fact is missing on which a cycle through hosts depends. Raises EndpointError
    for end points with roles.
    """
    if model.roles is not None:
        raise EndpointError(
            f"{model.name}: roles are of hosts of plans and of rules of ours; files do not list all"
        )
    plain, links = verdict_of_imported(imported), imported.links_of_hosts()
    notes = [*plain.notes]
    if model.priorities != (0,) and links.together:
        notes.append(f"{links.together}: the priorities of classes are not used")
        model = model.on_one_priority()
    count = links.hosts or len(imported.fabric.hosts)
    most = count if links.hosts is not None else _ANY_NUMBER
    verdict = ImportedEndpointVerdict(
        **{
            **vars(plain),
            "notes": notes,
            "assumes": [*plain.assumes[:-1], *_assumes(links, model)] if plain.assumes else [],
            "endpoints": model.name,
            "reserves": tuple(
                reserve.as_json()
                for reserve, any_number in zip(
                    model.reserves(count), model.reserves(most), strict=True
                )
                if reserve.suffices == any_number.suffices
            ),
        }
    )
    possible, certain = {*model.waits(most)}, {*model.waits(count)}
    if not possible or plain.cycle:
        return verdict
    priorities = _assignments(links, model)
    if not priorities:
        missing = [*plain.missing, *links.gaps(())]
        if not missing:
            notes.append(NOT_PAUSED)
        return replace(verdict, acyclic=None if missing else True, missing=missing)
    graph = _Graph(imported, links)
    used = () if model.priorities == (0,) else model.priorities
    steps = {
        step: pair for one in priorities for step, pair in graph.through(possible, one).items()
    }
    every = graph.cycle(steps)
    if not every:
        missing = [*plain.missing, *_gaps(imported, links, used)]
        return replace(verdict, acyclic=None if missing else True, missing=missing)
    cycles = [graph.cycle(graph.through(certain, one), {*one.values()}) for one in priorities]
    doubts = [text for text in imported.findings.doubts if text != links.about_priorities]
    if possible != certain:
        names = listed(sorted({taken for taken, _ in possible - certain}), 3)
        doubts.append(f"how many hosts there are: {names} has no reserve_per_host for any number")
    elif not all(cycles):
        doubts.append(f"the {links.called} of messages, or whether hosts answer themselves")
    doubts += links.doubts(used)
    cycle = cycles[0] if all(cycles) else every
    return replace(
        verdict,
        acyclic=None if doubts else False,
        missing=doubts,
        cycle=[graph.name_of(node) for node in cycle],
        witnesses=tuple(graph.witnesses(cycle, steps)),
        through_hosts=True,
    )


def _assumes(links: HostLinks, model: EndpointModel) -> Iterator[str]:
    yield sends_and_takes(model)
    if not links.together and model.priorities == (0,):
        yield f"what hosts send for a message has the {links.called} of this"
    elif not links.together:
        yield f"messages of priority P have {links.called} P"


def _assignments(links: HostLinks, model: EndpointModel) -> list[Mapping[str, int]]:
    """Return the priorities that message classes can have: those of the model, or all the same."""
    if not links.together and model.priorities != (0,):
        return [{name: one.priority for name, one in model.classes.items()}] * bool(
            links.priorities
        )
    return [dict.fromkeys(model.classes, priority) for priority in links.priorities]


def _gaps(imported: ImportedFabric, links: HostLinks, priorities: Sequence[int]) -> Iterator[str]:
    """Yield what is not known of hosts, and may close a cycle."""
    yield from links.gaps(priorities)
    if imported.unread:
        ports = listed((f"{router}:{port}" for router, port in imported.unread), 3)
        yield f"what is sent before more is taken behind {ports}"
    if isinstance(imported, TableFabric) and has_bare_buffers(imported):
        yield "whether shared pools of buffers without a reserve fill while hosts wait"


class _Graph:
    """The waits between switches, and those on the links of hosts.

    A host sends on channel ``channels + 2 * end``, and receives on the next. Ends behind one port
    are one.
    """

    def __init__(self, imported: ImportedFabric, links: HostLinks) -> None:
        self.imported, self.links = imported, links
        self.waits = ImportedWaits.from_imported(imported)
        hosts, index = imported.fabric.hosts, imported.fabric.switch_index
        ports = [(index[host.switch], host.port) for host in hosts]
        self.ends = imported.hops.ends if isinstance(imported, TableFabric) else ports
        self.first = {end: number for number, end in reversed([*enumerate(self.ends)])}
        self.parts = [
            (traffic.priorities, self._between(traffic.state), [*{*self._at_hosts(traffic)}])
            for traffic in links.traffics
        ]

    def _between(self, state: core.State) -> Edges:
        _, ends = self.imported.waits(state.edges)
        return np.stack([virtual_channel(*ends[:, :2].T), virtual_channel(*ends[:, 2:].T)], 1)

    def _sends(self, end: int, vc: int, *, receives: bool = False) -> int:
        place = 2 * self.first[self.ends[end]] + receives
        return virtual_channel(len(self.imported.channels) + place, vc)

    def _at_hosts(self, traffic: HostTraffic) -> Iterator[Step]:
        """Yield the waits of packets on the links of hosts."""
        count = len(self.imported.channels)
        rows, first_free = traffic.state.host_waits()
        steps = [(*row[:2], tuple(row[2:])) for row in rows.tolist()]
        steps += [(*held, one) for held, several in first_free for one in several]
        for channel, vc, (onward, onward_vc) in steps:
            if channel >= count:
                end = channel - count
                held = [self._sends(end, sent) for sent in traffic.enters(end)]
            else:
                held = self.imported.nodes_held(channel, vc)
            if onward >= count:
                arrives = traffic.arrives(onward - count, channel, vc)
                nodes = [self._sends(onward - count, taken, receives=True) for taken in arrives]
            else:
                nodes = self.imported.nodes_requested(onward, onward_vc)
            yield from product(held, nodes)

    def through(
        self, pairs: Collection[tuple[str, str]], priorities: Mapping[str, int]
    ) -> dict[Step, tuple[str, str]]:
        """Return the waits in hosts for a message of a class to be sent, to take one of another."""
        return {
            (self._sends(end, before, receives=True), self._sends(end, after)): (taken, sent)
            for end in sorted({*self.first.values()})
            for taken, sent in sorted(pairs)
            for before, after in self.links.turns(end, priorities[taken], priorities[sent])
        }

    def cycle(
        self, through: Collection[Step], priorities: Collection[int] | None = None
    ) -> list[int]:
        """Return a cycle with waits in hosts, first one in which none sends to itself.

        With ``priorities`` that are in use, only a cycle that does not need others, nor hosts that
        send to themselves.
        """
        parts = [
            part
            for part in self.parts
            if not part[0] or not {*part[0]}.isdisjoint(priorities or part[0])
        ]
        at_hosts = [step for *_, steps in parts for step in steps]
        others = [step for step in at_hosts if not self._is_own(*step)]
        for steps in (others, at_hosts) if priorities is None else (others,):
            of_hosts = np.array([*steps, *through], dtype=np.int64).reshape(-1, 2)
            cycle = find_cycle(np.concatenate([*(edges for _, edges, _ in parts), of_hosts]))
            if cycle:
                break
        return cycle

    def _is_own(self, holds: int, requests: int) -> bool:
        sends, receives = self.end_of(holds), self.end_of(requests)
        return sends is not None and receives is not None and sends[0] == receives[0]

    def end_of(self, node: int) -> tuple[int, bool] | None:
        """Return the end on whose link a node is, and whether it receives there; None: none's."""
        place = node // VCS_PER_CHANNEL - len(self.imported.channels)
        return None if place < 0 else (place // 2, bool(place % 2))

    def name_of(self, node: int) -> str:
        """Return ``SWITCH:PORT/PRIORITY``, or ``HOST/PRIORITY`` of what a host sends on."""
        channels, at_end, vc = self.imported.channels, self.end_of(node), node % VCS_PER_CHANNEL
        if at_end is None:
            return channels.name(node // VCS_PER_CHANNEL, vc)
        if not at_end[1]:
            return f"{self._called(at_end[0])}/{vc}"
        switch, port = self.ends[at_end[0]]
        return f"{channels.names[switch]}:{channels.port_name(switch, port)}/{vc}"

    def _called(self, end: int) -> str:
        return self.imported.traffics[0].state.destination_name(end)

    def witnesses(
        self, cycle: Sequence[int], through: Mapping[Step, tuple[str, str]]
    ) -> Iterator[SentWitness]:
        """Yield a packet for each step of a cycle, or a host that must send before it takes."""
        steps = [*pairwise([*cycle, cycle[0]])]
        for number, step in enumerate(steps):
            names = self.name_of(step[0]), self.name_of(step[1])
            at_end = self.end_of(step[0])
            if at_end is None or step not in through:
                yield witness_of(self.imported, *names, self._packet(*step))
                continue
            taken, sent = through[step]
            before = witness_of(self.imported, *names, self._packet(*steps[number - 1]))
            values = {**vars(before), "destination": self._called(at_end[0])}
            yield SentHostWitness(**values, message=taken, sends=sent)

    def _packet(self, holds: int, requests: int) -> Packet:
        """Return a packet with a wait: one that passes both channels."""
        sends, receives = self.end_of(holds), self.end_of(requests)
        if sends is None and receives is None:
            return self.waits.packet(holds, requests)
        hosts = range(len(self.imported.fabric.hosts))
        sources = hosts if sends is None else [sends[0]]
        destinations = hosts if receives is None else [receives[0]]
        nodes = [*[holds] * (sends is None), *[requests] * (receives is None)]
        passed = {node // VCS_PER_CHANNEL for node in nodes}
        for source, destination in product(sources, destinations):
            for number, traffic in enumerate(self.imported.traffics):
                trace = traffic.state.trace_number(self._called(source), destination)
                if trace.hops and passed <= {hop.channel for hop in trace.hops}:
                    return Packet(number, source, destination)
        return Packet(0, sources[0], destinations[0])
