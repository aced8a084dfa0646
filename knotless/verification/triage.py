"""The cause of paused queues: a deadlock, or a root behind which they wait. Pure analysis.

A paused queue waits for room at the next switch, which waits for that switch's own outputs. The
dependencies of a verdict say which these can be; those that are paused themselves explain it. What
is left at the end of these chains is the root: a port to a host that pauses, or a switch whose
outputs are not paused but overloaded. Queues that only wait for each other are a deadlock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from knotless.base.model_limits import PRIORITIES
from knotless.importers.fabric import TableFabric
from knotless.importers.sonic.pauses import Pauses, Queue
from knotless.routing.graphs.dependencies import find_cycle
from knotless.topologies.fabric import Fabric

MAX_TRACES = 40_000
"""Packets that are followed to count pairs; beyond it, those to the root's hosts are counted."""
_ASK = "pfcwd show stats, or its APPL_DB"
Node = tuple[int, int] | Queue
"""A channel and its priority group, or the queue of a port to hosts."""


@dataclass(frozen=True)
class Root:
    """The end of chains of paused queues.

    ``port`` is that to the hosts (``SWITCH:PORT``), or the overloaded one, if it is known.
    ``cause`` is ``host`` or ``congestion``. ``behind`` are the queues that wait for it, and
    ``pairs`` the pairs of hosts whose packets meet one of them; at least so many unless ``exact``.
    """

    switch: str
    port: str
    cause: str
    hosts: tuple[str, ...]
    behind: tuple[str, ...]
    pairs: int
    exact: bool
    evidence: str

    @property
    def text(self) -> str:
        """The root in one sentence."""
        least = "" if self.exact else "at least "
        blocks = f"which blocks {least}{self.pairs} pairs"
        if self.cause == "host":
            hosts = f"host{'s' * (len(self.hosts) > 1)} {', '.join(self.hosts)}"
            return f"the root is {self.port}, {hosts}, {blocks}"
        where = self.port or f"the outputs of {self.switch}"
        return f"the root is congestion at {where}, not paused itself but overloaded, {blocks}"


@dataclass
class Triage:
    """The answer: ``deadlock``, ``root``, ``not-enough`` or ``not-paused``.

    ``deadlocks`` are cycles of queues that wait for each other alone, ``roots`` are sorted by the
    pairs that they block, ``missing`` is what was not read and would be needed. ``queues`` are all
    paused ones. If ``certain`` is false, only history tells that queues were paused at some time.
    """

    queues: list[str]
    certain: bool
    deadlocks: list[list[str]] = field(default_factory=list)
    roots: list[Root] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def answer(self) -> str:
        """The kind of answer. Without all that is needed, a root may not be the only one."""
        if self.deadlocks:
            return "deadlock"
        if self.missing:
            return "not-enough"
        return "root" if self.roots else "not-paused"


def triage(imported: TableFabric, pauses: Pauses) -> Triage:
    """Return why the queues of ``pauses`` are paused."""
    graph = _WaitGraph(imported, pauses)
    starts = [*graph.stopped] or [*graph.paused]
    result = Triage([graph.name(node) for node in starts], certain=bool(graph.stopped))
    result.missing += graph.unplaced
    if not starts:
        result.missing += graph.not_asked()
    waits: dict[Node, list[Node]] = {}
    queue = [*starts]
    for node in queue:
        if node not in waits:
            waits[node] = graph.causes(node)
            queue += waits[node]
    behind = {end: _behind(waits, end) for end in waits if not waits[end]}
    ended: set[Node] = set().union(*behind.values())
    knotted = {node for node in waits if node not in ended}
    for cycle in _cycles(waits, knotted):
        named = [graph.name(node) for node in cycle]
        if all(node in graph.stopped for node in cycle):
            result.deadlocks.append(named)
        else:
            result.missing.append(f"whether {', '.join(named)} are paused now: pfcwd show stats")
    for cycle in _cycles(waits, ended):
        named = [graph.name(node) for node in cycle]
        result.notes.append(f"these also wait for each other, perhaps: {', '.join(named)}")
    at_switch: dict[str, set[Node]] = {}
    for end, waiting in behind.items():
        if len(end) == 3:
            result.roots.append(graph.host_root(end, waiting))
            continue
        switch = graph.head(end)
        if missing := graph.missing_of(switch):
            result.missing.append(missing)
        else:
            at_switch.setdefault(switch, set()).update(waiting)
    result.roots += [graph.congestion(switch, waiting) for switch, waiting in at_switch.items()]
    result.roots.sort(key=lambda root: (-root.pairs, root.switch, root.port))
    result.missing = [*dict.fromkeys(result.missing)]
    result.notes += pauses.notes
    return result


def _behind(waits: Mapping[Node, Sequence[Node]], end: Node) -> set[Node]:
    """Return the nodes from which a path leads to ``end``, itself included."""
    before: dict[Node, list[Node]] = {}
    for node, causes in waits.items():
        for cause in causes:
            before.setdefault(cause, []).append(node)
    reached = {end: None}
    queue = [end]
    for node in queue:
        new = [other for other in before.get(node, ()) if other not in reached]
        reached |= dict.fromkeys(new)
        queue += dict.fromkeys(new)
    return {*reached}


def _cycles(waits: Mapping[Node, Sequence[Node]], among: set[Node]) -> Iterator[list[Node]]:
    """Yield a shortest cycle of each part of the graph of some nodes that has one."""
    left = {node: [cause for cause in waits[node] if cause in among] for node in waits}
    left = {node: causes for node, causes in left.items() if node in among}
    while left:
        names = [*left]
        number = {node: place for place, node in enumerate(names)}
        edges = [(number[node], number[cause]) for node in left for cause in left[node]]
        cycle = [names[place] for place in find_cycle(edges)] if edges else []
        if not cycle:
            return
        yield cycle
        part = _connected(left, cycle[0])
        left = {node: causes for node, causes in left.items() if node not in part}


def _connected(waits: Mapping[Node, Sequence[Node]], node: Node) -> set[Node]:
    """Return the nodes that are connected with ``node``, in whatever direction."""
    near: dict[Node, set[Node]] = {}
    for one, causes in waits.items():
        for other in causes:
            near.setdefault(one, set()).add(other)
            near.setdefault(other, set()).add(one)
    part, queue = {node}, [node]
    for one in queue:
        new = near.get(one, set()) - part
        part |= new
        queue += new
    return part


class _WaitGraph:
    """The waits of paused queues for paused queues of the next switch."""

    def __init__(self, imported: TableFabric, pauses: Pauses) -> None:
        self.imported, self.pauses = imported, pauses
        self.unplaced: list[str] = []
        fabric, channels = imported.fabric, imported.channels
        self.index = fabric.switch_index
        self.channel_at = {
            (channels.names[switch], channels.port_name(switch, port)): channel
            for (switch, port), channel in channels.leaving.items()
        }
        self.hosts_at = _hosts_at(imported)
        self.stopped = {node: pauses.stopped[q] for q in pauses.stopped for node in self._nodes(q)}
        self.paused = {node: pauses.paused[q] for q in pauses.paused for node in self._nodes(q)}
        rows = np.concatenate(
            [np.empty((0, 6), dtype=np.int64), *(t.state.dependencies for t in imported.traffics)]
        )
        _, ends = imported.waits(rows)
        self.next: dict[tuple[int, int], set[tuple[int, int]]] = {}
        for held, group, wanted, wanted_group in np.unique(ends, axis=0).tolist():
            self.next.setdefault((held, group), set()).add((wanted, wanted_group))
        self.last = self._last_hops()
        self._paths: list[tuple[tuple[int, int], frozenset[tuple[int, int]]]] | None = None

    def name(self, node: Node) -> str:
        if len(node) == 3:
            return f"{node[0]}:{node[1]}/{node[2]}"
        return self.imported.channels.name(*node)

    def head(self, node: tuple[int, int]) -> str:
        channels = self.imported.channels
        return channels.names[int(channels.head[node[0]])]

    def not_asked(self) -> Iterator[str]:
        """Yield the switches with files of which nothing tells about pauses."""
        for switch, _ in zip(self.imported.fabric.switches, self.imported.configs, strict=False):
            if switch.name not in self.pauses.watched:
                yield f"the pauses of {switch.name}: {_ASK}"

    def missing_of(self, switch: str) -> str:
        """Return what is not known of a switch at which a chain ends; empty if all is."""
        if self.index[switch] >= len(self.imported.configs):
            return f"the files of {switch}"
        if switch not in self.pauses.watched:
            return f"the pauses of {switch}: {_ASK}"
        for traffic in self.imported.traffics:
            if any(number == self.index[switch] for number, _ in traffic.state.core.problems):
                return f"the routes of {switch}"
        return ""

    def _nodes(self, queue: Queue) -> Iterable[Node]:
        """Yield what a queue is in the graph: a channel with each group whose pause stops it."""
        switch, port, priority = queue
        channel = self.channel_at.get((switch, port))
        if channel is None:
            if (switch, port) in self.hosts_at:
                return [queue]
            text = f"what {port} of {switch} leads to, whose queue {priority} is paused"
            counts = queue in self.pauses.stopped or not self.pauses.stopped
            if counts and text not in self.unplaced:
                self.unplaced.append(text)
            return []
        if self.imported.pausing is None:
            return [(channel, 0)]
        if priority >= self.imported.pausing.shape[2]:
            return []  # there is no such queue
        groups = np.flatnonzero(self.imported.pausing[channel, :, priority])
        return [(channel, int(group)) for group in groups] or [(channel, priority)]

    def causes(self, node: Node) -> list[Node]:
        """Return the paused queues that a node can wait for: those stopped now, if any are."""
        if len(node) == 3:
            return []
        following: set[Node] = {*self.next.get(node, ()), *self.last.get(node, ())}
        stopped = [cause for cause in self.stopped if cause in following]
        return stopped or [cause for cause in self.paused if cause in following]

    def _last_hops(self) -> dict[tuple[int, int], set[Queue]]:
        """Return the paused ports to hosts that packets of each channel leave by."""
        last: dict[tuple[int, int], set[Queue]] = {}
        ports = [node for node in (*self.stopped, *self.paused) if len(node) == 3]
        for port in ports:
            for number in self.hosts_at[port[0], port[1]]:
                for hops in self._traced(range(len(self.imported.fabric.hosts)), [number]):
                    at_switch = [hop for hop in hops if self.head(hop) == port[0]]
                    for hop in at_switch:
                        last.setdefault(hop, set()).add(port)
        return last

    def _traced(
        self, sources: Iterable[int], targets: Sequence[int]
    ) -> Iterator[frozenset[tuple[int, int]]]:
        """Yield the channels and groups of each pair's packets, in all traffics."""
        hosts = self.imported.fabric.hosts
        for source in sources:
            for target in targets:
                if source != target:
                    yield frozenset(
                        (hop.channel, hop.priority % PRIORITIES)
                        for traffic in self.imported.traffics
                        for hop in traffic.state.trace_number(hosts[source].name, target).hops
                        if hop.channel < len(self.imported.channels)
                    )

    def _blocked(self, behind: set[Node], targets: Sequence[int]) -> tuple[int, bool]:
        """Return how many pairs meet a queue or are for the hosts, and whether these are all."""
        count = len(self.imported.fabric.hosts)
        to_hosts = len(targets) * (count - 1)
        if count * count * len(self.imported.traffics) > MAX_TRACES:
            return to_hosts, False
        if self._paths is None:
            self._paths = [
                ((source, target), hops)
                for source in range(count)
                for target in range(count)
                for hops in self._traced([source], [target])
            ]
        channels = {node for node in behind if len(node) == 2}
        return sum(1 for (_, d), hops in self._paths if d in targets or hops & channels), True

    def host_root(self, port: Queue, behind: set[Node]) -> Root:
        """Return the root that a port to hosts is."""
        switch, name, _ = port
        targets = self.hosts_at[switch, name]
        return Root(
            switch,
            f"{switch}:{name}",
            "host",
            tuple(self._hosts_named(switch, name, targets)),
            tuple(sorted(self.name(node) for node in behind - {port})),
            *self._blocked(behind, targets),
            self.stopped.get(port) or self.paused[port],
        )

    def congestion(self, switch: str, behind: set[Node]) -> Root:
        """Return the root that a switch is whose outputs are not paused; the fullest is named."""
        queues = [
            (size, port)
            for (paused_switch, port, _), size in self.pauses.filled.items()
            if paused_switch == switch
        ]
        size, port = max(queues, default=(0, ""))
        targets = self.hosts_at.get((switch, port), ()) if size else ()
        return Root(
            switch,
            f"{switch}:{port}" if size else "",
            "congestion",
            tuple(self._hosts_named(switch, port, targets)) if targets else (),
            tuple(sorted(map(self.name, behind))),
            *self._blocked(behind, targets),
            f"watermark {size} bytes" if size else "no output is paused",
        )

    def _hosts_named(self, switch: str, port: str, targets: Sequence[int]) -> Iterator[str]:
        """Yield the neighbour that LLDP or the configuration names, else the network of hosts."""
        tables = self.imported.configs[self.index[switch]]
        heard = tables.get("LLDP_ENTRY_TABLE", {}).get(port, {}).get("lldp_rem_sys_name", "")
        meant = tables.get("DEVICE_NEIGHBOR", {}).get(port, {}).get("name", "")
        if heard or meant:
            yield heard or meant
        else:
            yield from (self.imported.fabric.hosts[number].name for number in targets)


def _hosts_at(imported: TableFabric) -> Mapping[tuple[str, str], list[int]]:
    """Return the hosts (numbers) behind each port that leads to hosts, by switch and port."""
    hosts: dict[tuple[str, str], list[int]] = {}
    fabric: Fabric = imported.fabric
    index = fabric.switch_index
    for number, host in enumerate(fabric.hosts):
        switch = index[host.switch]
        interface = imported.channels.port_name(switch, host.port)
        tables = imported.configs[switch]
        members = [
            key.partition("|")[2]
            for table in ("VLAN_MEMBER", "PORTCHANNEL_MEMBER", "BRIDGE_MEMBER")
            for key in tables.get(table, {})
            if key.partition("|")[0] == interface
        ]
        for port in members or [interface]:
            hosts.setdefault((host.switch, port), []).append(number)
    return hosts
