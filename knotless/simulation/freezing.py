"""Traffic that freezes a forwarding state whose channels can wait for each other in a cycle.

A cycle of channel dependencies is necessary for a deadlock, not sufficient: buffers, rates and what
hosts send decide whether one forms. :func:`find_freeze` looks for traffic that deadlocks simulated
switches, and makes it irreducible.

If the packets that hosts send to each other, to all and to groups close no cycle among themselves,
no traffic of theirs freezes it: every packet in a buffer is one of these, so the last channel in an
order of their dependencies drains, then the one before it, and so on (Dally and Seitz:
Deadlock-free message routing in multiprocessor interconnection networks, 1987). The cycle is then
closed by packets to addresses that no host has, or from ports that are no host's.
"""

from __future__ import annotations

import csv
import io
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import count, islice, pairwise, permutations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from knotless._core import simulator
from knotless.base.errors import SimulationError
from knotless.base.flow_control import FlowControl
from knotless.forwarding.state import ForwardingState, Hop
from knotless.routing.graphs.dependencies import merged, virtual_channel, waiting
from knotless.simulation.bubbles import use_bubbles
from knotless.simulation.channels import channel_table
from knotless.simulation.message_classes import for_simulator
from knotless.simulation.settings import Switching
from knotless.simulation.tables import tables_of
from knotless.simulation.tracefile import MESSAGES
from knotless.simulation.units import PICOSECONDS_PER_US
from knotless.topologies.numbering import mac_value
from knotless.verification.bubbles import AS_PROVEN, Bubbles
from knotless.verification.dependencies import edges_of, judge
from knotless.verification.endpoint_waits import EndpointWaits, sends_and_takes
from knotless.verification.verdict_parts import BUBBLE

if TYPE_CHECKING:
    from knotless.base.switch_settings import SwitchFile
    from knotless.traffic.endpoints import EndpointModel


PACKET_BYTES = 1500
_TAKES = "hosts take what arrives"
ASSUMES = (
    _TAKES,
    "switches have no watchdog",
    f"packets have {PACKET_BYTES:,} bytes",
)
ASSUMES_OF_CHOICES = "hashes give the packets of these hosts these paths"
ASSUMES_OF_BOUND = (
    _TAKES,
    "only hosts send, to each other, to all and to declared groups",
    "no packets that rules treat apart by their type",
)
SEARCHES = 200
"""Sets of flows that are tried at most."""
MAX_EVENTS = 200_000_000
"""Events of the simulator for all of them together; a run that has begun is finished."""
MAX_PAIRS = 20_000
"""Pairs of hosts whose paths are looked at; of larger fabrics, random ones."""
OTHER_STARTS = 4
"""Runs with other starting times that traffic has to freeze as well, so that it does not depend on
times to the picosecond, which no emulated or real host keeps."""
_START_SPREAD_PACKETS = 8
_FILLS = 40
"""The time for which hosts send, in times that a line needs to fill the largest buffer."""
_SLICE_EVENTS = 1 << 14

Step = tuple[int, int]
"""Two virtual channels: one that is held, and the next, which is waited for."""
Pair = tuple[int, int]
"""The numbers of a source and a destination."""


@dataclass(frozen=True)
class Flow:
    """Bytes that one host sends to another from the beginning on, in full packets.

    Flows of one host take turns, packet by packet. If switches choose among paths, ``path`` has the
    ports by which the packets leave switches (``s1:2``).
    """

    source: str
    destination: str
    size_bytes: int
    path: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The flow as text."""
        over = f" by {', '.join(self.path)}" if self.path else ""
        return f"{self.source} sends {self.size_bytes:,} bytes to {self.destination}{over}"


@dataclass(frozen=True)
class Freeze:
    """Whether a state freezes.

    ``freezes`` is True with ``flows`` that deadlock ``cycle`` (``SWITCH:PORT/PRIORITY``) after
    ``after_us`` of virtual time; False if there is no cycle of dependencies, or none that what
    hosts send can close; None if nothing was found. The latter two have a ``reason``. ``tried`` is
    the number of sets of flows that were simulated until then. ``assumes`` is what the answer rests
    on.
    """

    freezes: bool | None
    tried: int = 0
    reason: str = ""
    flows: tuple[Flow, ...] = ()
    cycle: tuple[str, ...] = ()
    after_us: float | None = None
    assumes: tuple[str, ...] = ASSUMES

    @property
    def lines(self) -> list[str]:
        """The answer as sentences, one for each flow."""
        if self.freezes is None:
            return [f"undecided whether it freezes: {self.reason}"]
        assumed = ", ".join(self.assumes)
        if not self.freezes:
            return [f"it cannot freeze: {self.reason}", *([f"if {assumed}"] if assumed else [])]
        closed = " -> ".join([*self.cycle, self.cycle[0]])
        first = f"it freezes after {self.after_us:,.0f} us ({closed}) if {assumed}, and"
        return [first, *(flow.text for flow in self.flows)]

    def as_json(self) -> Mapping[str, object]:
        """Return the keys ``freezes`` and ``freeze`` for :func:`json.dumps`."""
        about = {key: value for key, value in asdict(self).items() if key != "freezes"}
        return {"freezes": self.freezes, "freeze": about}

    @property
    def trace(self) -> str:
        """The flows as a trace of messages (:mod:`knotless.simulation.tracefile`)."""
        file = io.StringIO()
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(MESSAGES)
        for flow in self.flows:
            lines.writerow([0, flow.source, flow.destination, flow.size_bytes])
        return file.getvalue()


def find_freeze(
    state: ForwardingState,
    flow_control: FlowControl,
    *,
    switches: SwitchFile | None = None,
    endpoints: EndpointModel | None = None,
    hash_seed: int = 0,
    seed: int = 1,
    searches: int = SEARCHES,
) -> Freeze:
    """Look for traffic that freezes a state; ``switches`` are settings of its switches.

    With ``endpoints`` each packet is a message, and hosts send what its class requires.

    If switches choose among paths, they do so by the hash of our rules with ``hash_seed``. Switches
    of others hash otherwise; then it is shown that a hash can freeze them, and by which paths.

    The traffic is irreducible: without any one of its flows, at least one of :data:`OTHER_STARTS`
    runs with other starting times does not freeze, nor if one sends half as much.

    Raises
    ------
    SimulationError
        Switches copy unicasts, or their rules cannot be followed, or ``switches`` do not fit.

    """
    waits = None if endpoints is None else EndpointWaits(state, endpoints, flow_control)
    simulated = Switches(state, flow_control, switches, seed, hash_seed, waits)
    through_pools = switches is not None and _wait_for_pools(switches)
    if not simulated.steps:
        if through_pools:
            reason = "a cycle would lead through shared pools, which are not followed"
            return Freeze(None, reason=reason)
        return Freeze(False, reason="no channels can wait for each other in a cycle", assumes=())
    if not _steps_of_cycles(simulated.pairs_of):
        if waits is not None:
            return Freeze(None, reason="cycles need packets that are no messages between hosts")
        if state.more:
            reason = "cycles need packets that hosts do not send to each other, and none is sent"
            return Freeze(None, reason=reason)
        if not through_pools and simulated.hosts_close_no_cycle():
            reason = "what hosts send to each other, to all and to groups closes no cycle"
            return Freeze(False, reason=reason, assumes=ASSUMES_OF_BOUND)
        return Freeze(None, reason="cycles need broadcasts or unknown addresses, and none is sent")
    rng = random.Random(seed)  # noqa: S311 - not for secrets
    tried = 0
    for pairs in islice(_candidates(simulated, rng), searches):
        if simulated.events > MAX_EVENTS:
            break
        tried += 1
        flows = [Sends(*pair, simulated.longest_bytes) for pair in pairs]
        if simulated.freeze(flows):
            flows = _smallest(simulated, _irreducible(simulated, flows, rng))
            deadlock = simulated.deadlock(flows)
            assert deadlock is not None  # noqa: S101 - the same run has frozen before
            after_us, cycle = deadlock
            named = tuple(map(simulated.named, flows))
            chosen = any(flow.path for flow in named)
            assumes = (*ASSUMES, ASSUMES_OF_CHOICES) if chosen else ASSUMES
            if endpoints is not None:
                assumes = (sends_and_takes(endpoints), *assumes[1:])
            return Freeze(True, tried, flows=named, cycle=cycle, after_us=after_us, assumes=assumes)
    found_none = f"no traffic was found that does (sets of flows tried: {tried})"
    if flow_control is FlowControl.BUBBLE and judge(state, flow_control).theorem == BUBBLE:
        reason = f"frames that enter its rings leave room for another, and {found_none}"
        return Freeze(False, tried, reason)
    return Freeze(None, tried, found_none)


class Sends(NamedTuple):
    """A flow by the numbers of its hosts."""

    source: int
    destination: int
    size_bytes: int


class Switches:
    """The simulated switches of a state, and which pairs of hosts use steps of its cycles."""

    def __init__(
        self,
        state: ForwardingState,
        control: FlowControl,
        settings: SwitchFile | None,
        seed: int,
        hash_seed: int = 0,
        waits: EndpointWaits | None = None,
        bubbles: Bubbles = AS_PROVEN,
    ) -> None:
        self._state, self._control, self._seed = state, control, seed
        self._switching = Switching(control, switch_settings=settings, bubbles=bubbles)
        self._with_hosts = waits
        self._messages = None if waits is None else for_simulator(waits)
        self._hash_seed = hash_seed
        self._macs = [mac_value(host.mac) for host in state.fabric.hosts]
        try:
            self._table = channel_table(state.fabric, self._switching, packet_bytes=PACKET_BYTES)
        except ValueError as error:
            raise SimulationError(str(error)) from None
        self._tables = tables_of(state, self._table)
        edges = waiting(edges_of(state), control) if waits is None else waits.every_edge
        self.steps = _steps_of_cycles(map(tuple, edges.tolist()))
        self.events = 0
        """Events that were simulated so far."""

    @cached_property
    def pairs_of(self) -> Mapping[Step, Sequence[Pair]]:
        """The pairs whose packets take each step of a cycle, of those that any pair takes."""
        users: dict[Step, list[Pair]] = {}
        hosts = len(self._state.fabric.hosts)
        if self._state.pairs <= MAX_PAIRS:
            every = list(permutations(range(hosts), 2))
        else:
            rng = random.Random(self._seed)  # noqa: S311 - not for secrets
            every = [(a, b) for a, b in self._state.dependencies[:, 4:].tolist() if b < hosts]
            every += [(rng.randrange(hosts), rng.randrange(hosts)) for _ in range(MAX_PAIRS)]
            every = [(a, b) for a, b in every if a != b]
        names = [host.name for host in self._state.fabric.hosts]
        roles = None if self._with_hosts is None else self._with_hosts.model.roles
        if roles is not None:
            every = [pair for pair in every if roles.begins(*(names[host] for host in pair))]
        for pair in dict.fromkeys(every):
            for step in self._steps_of(names[pair[0]], pair[1]):
                if step in self.steps:
                    users.setdefault(step, []).append(pair)
        return users

    def hosts_close_no_cycle(self) -> bool:
        """Return whether it is known that all packets of hosts together close no cycle.

        They go to each host, to all and to each group. Of fabrics with more than
        :data:`MAX_PAIRS` pairs, and while packets are treated in several ways, it is not known.
        """
        state, taken = self._state, set[Step]()
        if state.pairs > MAX_PAIRS or state.concurrent or state.changing:
            return False
        hosts = [host.name for host in state.fabric.hosts]
        for source in hosts:
            traces = [state.trace(source, target) for target in hosts if target != source]
            traces += [state.flood(source, group) for group in range(len(state.groups) + 1)]
            for trace in traces:
                taken |= self._waits(trace.hops)
            if _steps_of_cycles(taken & self.steps):
                return False
        return True

    def _waits(self, hops: Sequence[Hop]) -> set[Step]:
        """Return the steps of a packet that may take any of these hops, or of all its copies."""
        channels = self._state.channels
        between = [hop for hop in hops if hop.channel < len(channels)]
        leaving: dict[int, list[Hop]] = {}
        for hop in between:
            leaving.setdefault(int(channels.tail[hop.channel]), []).append(hop)
        steps = [
            (virtual_channel(hop.channel, hop.priority), virtual_channel(out.channel, out.priority))
            for hop in between
            for out in leaving.get(int(channels.head[hop.channel]), ())
        ]
        edges = np.array(steps, dtype=np.int64).reshape(-1, 2)
        return {(int(a), int(b)) for a, b in waiting(edges, self._control).tolist()}

    def _steps_of(self, source: str, destination: int) -> Iterable[Step]:
        """Return the steps that packets take, or may take if they have several paths."""
        if self._with_hosts is not None:
            number = self._state.fabric.host_index[source]
            return self._with_hosts.steps_between(number, destination)
        hops = self._state.trace_number(source, destination).hops
        if self._divide(hops):
            return sorted(self._waits(hops))
        between = [hop for hop in hops if hop.channel < len(self._state.channels)]
        nodes = virtual_channel(
            np.array([hop.channel for hop in between], dtype=np.int64),
            np.array([hop.priority for hop in between], dtype=np.int64),
        )
        merged_nodes = map(int, merged(nodes, self._control.switch_links))
        return dict.fromkeys(pairwise(merged_nodes))

    def _divide(self, hops: Sequence[Hop]) -> bool:
        """Return whether some switch sends a packet with these hops out of any of several ports."""
        channels = self._state.channels
        tails = [int(channels.tail[hop.channel]) for hop in hops if hop.channel < len(channels)]
        return len({*tails}) < len(tails)

    @property
    def longest_bytes(self) -> int:
        """The bytes that a flow sends while traffic is looked for."""
        room = self._table.xoff_bytes + self._table.headroom_bytes + self._table.credit_bytes
        return _FILLS * max(int(room.max()), PACKET_BYTES)

    def deadlock(
        self, flows: Sequence[Sends], starts: Sequence[int] | None = None
    ) -> tuple[float, tuple[str, ...]] | None:
        """Simulate flows, until the first deadlock; return its time (us) and its cycle.

        ``starts`` are the starting times in packet times of the slowest line.
        """
        simulation = self._simulation(flows, starts)
        simulation.take_turns()
        goes_on = True
        while goes_on and (deadlock := simulation.report().deadlock) is None:
            goes_on = simulation.run(_SLICE_EVENTS)
        deadlock = simulation.report().deadlock
        self.events += simulation.events
        if deadlock is None:
            return None
        names = tuple(self._name(c, priority) for c, priority in deadlock.cycle)
        return deadlock.since_ps / PICOSECONDS_PER_US, names

    def _simulation(
        self, flows: Sequence[Sends], starts: Sequence[int] | None = None
    ) -> simulator.Simulation:
        packet_ps = int(8e12 * PACKET_BYTES / int(self._table.rate_bps.min()))
        rows = sorted(
            (start * packet_ps, *flow)
            for start, flow in zip(starts or [0] * len(flows), flows, strict=True)
        )
        at_ps, sources, targets, sizes = np.array(rows, dtype=np.uint64).T.copy()
        try:
            simulation = simulator.Simulation(
                len(self._state.fabric.switches),
                len(self._state.fabric.hosts),
                self._table,
                self._tables,
                [],
                simulator.Traffic.trace(
                    at_ps, sources.astype(np.uint32), targets.astype(np.uint32), sizes
                ),
                seed=self._seed,
                warm_up_ps=0,
                end_ps=2**64 - 1,
                packet_bytes=PACKET_BYTES,
                header_bytes=0,
                link_changes=[],
                messages=self._messages or [],
            )
            use_bubbles(simulation, self._state, self._table, self._switching)
        except ValueError as error:
            raise SimulationError(str(error)) from None
        simulation.hash_addresses(self._macs, self._hash_seed)
        return simulation

    def _name(self, channel: int, priority: int) -> str:
        """Return the name of a channel of the simulator; of a switch, with its own port names."""
        switch = int(self._table.leaves[channel])
        if switch < 0:
            return f"{self._table.names[channel]}/{priority}"
        port = self._state.channels.port_name(switch, int(self._table.ports[channel]))
        return f"{self._table.switches[switch]}:{port}/{priority}"

    def freeze(self, flows: Sequence[Sends]) -> bool:
        """Return whether flows freeze the switches, and also if they start at other times."""
        if not flows or self.deadlock(flows) is None:
            return False
        rng = random.Random(self._seed)  # noqa: S311 - not for secrets
        return all(
            self.deadlock(flows, [rng.randrange(_START_SPREAD_PACKETS) for _ in flows])
            for _ in range(OTHER_STARTS)
        )

    def _path(self, flow: Sends) -> tuple[str, ...]:
        """Return the ports by which the packets of a flow leave switches."""
        simulation = self._simulation([flow._replace(size_bytes=1)])
        while simulation.run(_SLICE_EVENTS):
            pass
        frames = simulation.sample(simulation.now_ps)[0].sum(axis=1)
        current = self._state.fabric.switch_index[self._state.fabric.hosts[flow.source].switch]
        by_switch = {int(self._table.leaves[c]): int(c) for c in np.flatnonzero(frames)}
        path = []
        while current in by_switch:
            channel = by_switch.pop(current)
            path.append(self._name(channel, 0).rpartition("/")[0])
            current = int(self._table.enters[channel])
        return tuple(path)

    def named(self, flow: Sends) -> Flow:
        """Return a flow with the names of its hosts."""
        source, to = (self._state.fabric.hosts[end].name for end in flow[:2])
        hops = self._state.trace_number(source, flow.destination).hops
        path = self._path(flow) if self._divide(hops) else ()
        return Flow(source, to, flow.size_bytes, path)


def _wait_for_pools(settings: SwitchFile) -> bool:
    """Return whether an ingress buffer without a reserve for a packet waits for its pool."""
    switches = [settings, *settings.switches.values()]
    longest = simulator.longest_frame_bytes(PACKET_BYTES)
    return any(
        group.pool is not None and group.reserved_bytes < longest
        for switch in switches
        for port in (switch, *switch.ports.values())
        for group in port.ingress or ()
    )


def _steps_of_cycles(steps: Iterable[Step]) -> frozenset[Step]:
    """Return the steps that are left when those before and after all cycles are taken away."""
    left = set(steps)
    while True:
        befores, afters = {step[0] for step in left}, {step[1] for step in left}
        inside = {step for step in left if step[0] in afters and step[1] in befores}
        if len(inside) == len(left):
            return frozenset(left)
        left = inside


def _candidates(switches: Switches, rng: random.Random) -> Iterator[Sequence[Pair]]:
    """Yield sets of pairs that may freeze: first all that use a cycle, then those of one cycle."""
    pairs_of = switches.pairs_of
    uses = Counter(pair for pairs in pairs_of.values() for pair in pairs)
    most = max(uses.values())
    yield list(uses)
    yield [pair for pair, steps in uses.items() if 2 * steps >= most]
    for search in count():
        cycle = _random_cycle(sorted(_steps_of_cycles(pairs_of)), rng)
        chosen = {rng.choice(pairs_of[step]): None for step in cycle for _ in range(1 + search % 3)}
        if search % 2:  # others, which hold frames of the cycle up
            chosen |= dict.fromkeys(rng.sample(list(uses), min(len(uses), len(cycle))))
        yield list(chosen)


def _random_cycle(steps: Sequence[Step], rng: random.Random) -> list[Step]:
    """Return a cycle of these steps, each of which another one follows."""
    after: dict[int, list[Step]] = {}
    for step in steps:
        after.setdefault(step[0], []).append(step)
    walk = [rng.choice(steps)]
    seen = {walk[0][0]: 0}
    while (node := walk[-1][1]) not in seen:
        seen[node] = len(walk)
        walk.append(rng.choice(after[node]))
    return walk[seen[node] :]


def _irreducible(switches: Switches, flows: Sequence[Sends], rng: random.Random) -> list[Sends]:
    """Leave out flows while the others freeze: first many at once, at last one by one."""
    kept = rng.sample(list(flows), len(flows))
    part = len(kept) // 2
    while part:
        before, place = len(kept), 0
        while place < len(kept):
            others = kept[:place] + kept[place + part :]
            if switches.freeze(others):
                kept = others
            else:
                place += part
        if part == 1 and len(kept) == before:
            break
        part = max(1, part // 2)
    return sorted(kept)


def _smallest(switches: Switches, flows: Sequence[Sends]) -> list[Sends]:
    """Halve what flows send while they freeze: first that of all, then of each."""
    smallest = list(flows)
    for places in [range(len(smallest)), *([place] for place in range(len(smallest)))]:
        while True:
            smaller = [
                flow._replace(size_bytes=flow.size_bytes // 2) if place in places else flow
                for place, flow in enumerate(smallest)
            ]
            if min(flow.size_bytes for flow in smaller) < 1 or not switches.freeze(smaller):
                break
            smallest = smaller
    return smallest
