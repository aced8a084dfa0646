"""Workloads: flows of random sizes, incasts, collective operations, programs and traces."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knotless._core import simulator
from knotless._core.replay import Ends
from knotless._core.schedule import GoalReader, Schedule, operation_schedule, transfer_schedule
from knotless.base.errors import SimulationError
from knotless.base.files import open_binary, read_text
from knotless.base.model_limits import MAX_BYTES
from knotless.base.printable import shortened
from knotless.simulation.traffic import line_bytes
from knotless.simulation.units import picoseconds
from knotless.topologies.fabric import Fabric
from knotless.traffic.chakra.operations import ALL_REDUCES, operations_of
from knotless.traffic.chakra.trace import read_groups, read_ranks
from knotless.traffic.collectives import Transfers, collective_named, side_by_side
from knotless.traffic.patterns import Pattern
from knotless.traffic.sizes import SizeDistribution

DEFAULT_FLOWS = 1000
"""Flows of random sizes if neither their number nor the duration is given."""
DEFAULT_INCASTS = 10
"""Incasts that repeat, if nothing else says how many."""
MAX_MESSAGES = 10_000_000
"""The most flows or messages of incasts: about a gigabyte while they are drawn and sorted."""
MAX_TRANSFERS = 5_000_000
"""The most transfers of a collective operation: about a gigabyte."""
MAX_GOAL_BYTES = 8 << 30
MAX_PLACEMENT_BYTES = 8 << 20
PIECE_BYTES = 1 << 20
FOREVER_PS = 2**64 - 1

_Columns = tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint64]]
Played = tuple[simulator.Traffic, Ends | None]


@dataclass(frozen=True)
class RandomFlows:
    """Flows of random sizes between the pairs of a pattern, at random (Poisson) times.

    Flows take the fraction ``load`` of the line of each sending host (0 < load <= 1), headers and
    gaps included. There are ``flows`` of them, or without a number as many as begin in the
    duration, or else :data:`DEFAULT_FLOWS`.
    """

    sizes: SizeDistribution
    load: float
    flows: int | None = None


@dataclass(frozen=True)
class Incast:
    """Several hosts send ``message_bytes`` to one host at the same time.

    ``senders`` are names of hosts, or how many are drawn for each incast. Without ``receiver``,
    that is drawn, too. Incasts begin every ``every_us``, or at random (Poisson) times such that
    they take the fraction ``load`` of the line of each possible receiver; without both there is
    one, at time 0. There are ``count`` of them, or without a number as many as begin in the
    duration, or while random flows begin, or else :data:`DEFAULT_INCASTS`.
    """

    senders: int | tuple[str, ...]
    message_bytes: int
    receiver: str | None = None
    every_us: float | None = None
    load: float | None = None
    count: int | None = None


@dataclass(frozen=True)
class Flows:
    """Random flows, incasts, or both together."""

    random: RandomFlows | None = None
    incast: Incast | None = None

    name = "incast"
    """The name of the traffic in results; with random flows, their pattern is."""

    def traffic(
        self,
        fabric: Fabric,
        pattern: Pattern,
        *,
        packet_bytes: int,
        seed: int,
        duration_us: float | None,
    ) -> Played:
        """Return the messages as traffic; raises SimulationError if they are not possible."""
        until_ps = FOREVER_PS if duration_us is None else picoseconds(duration_us)
        columns: list[_Columns] = []
        if self.random is not None:
            drawn = _random_flows(fabric, pattern, self.random, packet_bytes, seed, until_ps)
            columns.append(drawn)
            counted = self.incast is not None and self.incast.count is not None
            if duration_us is None and drawn[0].size and not counted:
                until_ps = int(drawn[0][-1]) + 1
        if self.incast is not None:
            columns.append(_incasts(fabric, self.incast, packet_bytes, seed, until_ps))
        times = np.concatenate([column[0] for column in columns])
        order = np.argsort(times, kind="stable")
        _, sources, destinations, sizes = (
            np.concatenate([column[place] for column in columns])[order] for place in range(4)
        )
        return simulator.Traffic.trace(times[order], sources, destinations, sizes), None


@dataclass(frozen=True)
class CollectiveRun:
    """A collective operation on ``message_bytes`` of data per host.

    Rank r runs on ``hosts[r]``; by default on all hosts of the fabric in order. With ``by_rail``
    hosts that are interfaces of servers work rail by rail, all rails at once: interface r of every
    server with that of the others. Within a server, data is moved over faster links, which are not
    simulated, so each interface has its part of the data of the server's hosts: of M bytes a host,
    M to all others in an all-to-all, and M over the number of interfaces in other operations.
    """

    collective: str
    message_bytes: int
    hosts: tuple[str, ...] | None = None
    by_rail: bool = False

    @property
    def name(self) -> str:
        """The name of the traffic in results."""
        return self.collective

    def groups(self, fabric: Fabric) -> list[NDArray[np.uint32]]:
        """Return the host of each rank, for each rail or for all hosts together.

        Raises SimulationError for hosts that do not exist.
        """
        if self.by_rail:
            return _rails(fabric)
        names = [host.name for host in fabric.hosts] if self.hosts is None else self.hosts
        return [_numbers(fabric, names, self.name)]

    def places(self, fabric: Fabric) -> NDArray[np.uint32]:
        """Return the hosts of all groups, one after the other."""
        return np.concatenate(self.groups(fabric))

    def check(self, ranks: int) -> None:
        """Raise SimulationError if the operation has too many transfers to simulate."""
        if not self.collective.startswith("tree-") and 2 * ranks * ranks > MAX_TRANSFERS:
            raise SimulationError(
                f"{self.collective} of {ranks} hosts has more than {MAX_TRANSFERS} transfers;"
                f" name fewer: {self.collective}:N"
            )

    def group_transfers(self, fabric: Fabric) -> Transfers:
        """Return the transfers of one group; raises CollectiveError if they are not possible."""
        groups = self.groups(fabric)
        ranks = len(groups[0])
        self.check(ranks)
        shared = 1 if self.collective == "all-to-all" else len(groups)
        return collective_named(self.collective).make(ranks, self.message_bytes // shared)

    def transfers(self, fabric: Fabric) -> Transfers:
        """Return the transfers of all groups; raises CollectiveError if they are not possible."""
        return side_by_side(self.group_transfers(fabric), len(self.groups(fabric)))

    def traffic(self, fabric: Fabric) -> Played:
        """Return the transfers as traffic, and when each host has ended."""
        places = self.places(fabric)
        transfers = self.transfers(fabric)
        schedule = transfer_schedule(
            len(places),
            transfers.source,
            transfers.destination,
            transfers.bytes,
            transfers.waiting,
            transfers.needed,
        )
        return schedule.traffic(len(fabric.hosts), places)


@dataclass(frozen=True)
class GoalProgram:
    """A program in GOAL; ``placement`` is a file with the host of each rank, else in order."""

    path: str
    placement: str | None = None

    name = "goal"

    def traffic(self, fabric: Fabric) -> Played:
        """Return the program as traffic, and when each host has ended."""
        return _placed(self, fabric, lambda most_ranks: read_goal(self.path, most_ranks))


@dataclass(frozen=True)
class ChakraTrace:
    """An execution trace in Chakra's format: a folder, or NAME for the files NAME.0.et, ..

    ``placement`` is a file with the host of each rank, else in order; ``groups`` a file with the
    ranks of process groups that the trace does not list; ``all_reduce`` the collective operation
    that stands for ALL_REDUCE.
    """

    path: str
    placement: str | None = None
    groups: str | None = None
    all_reduce: str = ALL_REDUCES[0]

    name = "chakra"

    def traffic(self, fabric: Fabric, computing: float = 1.0) -> Played:
        """Return the trace as traffic, and when each host has ended.

        Durations of nodes are multiplied by ``computing``.
        """
        return _placed(self, fabric, lambda most_ranks: self._schedule(most_ranks, computing))

    def _schedule(self, most_ranks: int, computing: float) -> Schedule:
        groups = None if self.groups is None else read_groups(self.groups)
        ranks = read_ranks(self.path, most_ranks, groups)
        operations = operations_of(ranks, self.all_reduce, computing)
        columns = (
            operations.rank,
            operations.kind,
            operations.peer,
            operations.amount,
            operations.tag,
        )
        return operation_schedule(operations.ranks, *columns, operations.waiting, operations.needed)


Workload = Flows | CollectiveRun | GoalProgram | ChakraTrace


def _placed(
    program: GoalProgram | ChakraTrace, fabric: Fabric, read: Callable[[int], Schedule]
) -> Played:
    """Return a program, read with the most ranks that it may have, on the hosts of its ranks."""
    places = None
    if program.placement is not None:
        places = read_placement(program.placement, fabric)
    schedule = read(len(fabric.hosts) if places is None else len(places))
    if places is None:
        places = np.arange(schedule.ranks, dtype=np.uint32)
    if len(places) != schedule.ranks:
        raise SimulationError(
            f"{program.placement}: {len(places)} hosts, but {program.path} has"
            f" {schedule.ranks} ranks"
        )
    return schedule.traffic(len(fabric.hosts), places)


def _rails(fabric: Fabric) -> list[NDArray[np.uint32]]:
    """Return the hosts of each rail, one of every server, in order; raises SimulationError."""
    interfaces: dict[str, list[int]] = {}
    for number, host in enumerate(fabric.hosts):
        if host.server is not None:
            interfaces.setdefault(host.server, []).append(number)
    counts = {len(numbers) for numbers in interfaces.values()}
    if len(counts) != 1 or sum(map(len, interfaces.values())) != len(fabric.hosts):
        raise SimulationError(
            f"{fabric.name}: for rails, all hosts must be interfaces of servers, of each server"
            ' equally many: see "server" in fabric files, or use rail,SERVERS,RAILS,SPINES'
        )
    return list(np.array(list(interfaces.values()), dtype=np.uint32).T.copy())


def read_goal(path: str, most_ranks: int) -> Schedule:
    """Read a program in GOAL of at most so many ranks; raises SimulationError with the line."""
    reader = GoalReader(most_ranks)
    try:
        with open_binary(path, SimulationError, MAX_GOAL_BYTES) as file:
            while piece := file.read(PIECE_BYTES):
                reader.feed(piece)
        return reader.finish()
    except (OSError, ValueError) as error:
        raise SimulationError(f"{shortened(path)}: {error}") from None


def read_placement(path: str, fabric: Fabric) -> NDArray[np.uint32]:
    """Read the hosts of ranks 0, 1, ..: a name per line; raises SimulationError with the line."""
    lines = read_text(path, SimulationError, MAX_PLACEMENT_BYTES).splitlines()
    names = [line.strip() for line in lines]
    while names and not names[-1]:
        names.pop()
    return _numbers(fabric, names, path)


def _numbers(fabric: Fabric, names: Sequence[str], where: str) -> NDArray[np.uint32]:
    seen: set[str] = set()
    for place, name in enumerate(names):
        if name not in fabric.host_index:
            raise SimulationError(
                f"{shortened(where)}: rank {place}: {fabric.name} has no host {name[:40]!r}"
            )
        if name in seen:
            raise SimulationError(f"{shortened(where)}: rank {place}: {name} has a rank already")
        seen.add(name)
    return np.array([fabric.host_index[name] for name in names], dtype=np.uint32)


def _random_flows(
    fabric: Fabric,
    pattern: Pattern,
    flows: RandomFlows,
    packet_bytes: int,
    seed: int,
    until_ps: int,
) -> _Columns:
    _check_share("load", flows.load)
    most = _most(flows.flows, until_ps, DEFAULT_FLOWS, 1, "flows")
    hosts = len(fabric.hosts)
    if hosts < 2:
        raise SimulationError(f"{fabric.name} has no two hosts")
    if pattern.in_phases:
        raise SimulationError(f"sizes: pattern {pattern.name} has phases; use uniform or another")
    if pattern.name == "uniform":
        pairs = np.array([(host, -1) for host in range(hosts)], dtype=np.int64)
    else:
        pairs = np.array(pattern.flows(fabric, seed), dtype=np.int64).reshape(-1, 2)
    if not pairs.size:
        raise SimulationError(f"pattern {pattern.name} has no flows on {fabric.name}")
    rates = np.array([host.rate_mbps for host in fabric.hosts])[pairs[:, 0]]
    of_sender = np.bincount(pairs[:, 0], minlength=hosts)[pairs[:, 0]]
    mean_ps = 8e6 * flows.sizes.mean_line_bytes(packet_bytes) * of_sender / (rates * flows.load)
    drawn = simulator.poisson_messages(
        pairs[:, 0].astype(np.uint32),
        np.ascontiguousarray(pairs[:, 1]),
        mean_ps,
        list(flows.sizes.points),
        hosts,
        seed,
        most + 1 if flows.flows is None else most,
        until_ps,
    )
    return _limited(drawn, "flows")


def _incasts(
    fabric: Fabric, incast: Incast, packet_bytes: int, seed: int, until_ps: int
) -> _Columns:
    hosts = len(fabric.hosts)
    named = () if isinstance(incast.senders, int) else incast.senders
    senders = _numbers(fabric, named, "incast").tolist()
    count = incast.senders if isinstance(incast.senders, int) else len(senders)
    if not 1 <= count < hosts:
        raise SimulationError(
            f"an incast needs 1 to {hosts - 1} senders on {fabric.name}, not {count}"
        )
    if not 1 <= incast.message_bytes < MAX_BYTES:
        raise SimulationError(f"incast: {incast.message_bytes} bytes are not in 1..2**40 - 1")
    receiver = None
    if incast.receiver is not None:
        receiver = int(_numbers(fabric, [incast.receiver], "incast")[0])
        if receiver in senders:
            raise SimulationError(f"incast: {incast.receiver} would send to itself")
    if incast.every_us is not None and incast.load is not None:
        raise SimulationError("incasts have an interval or a load, not both")
    arrivals, mean_ps = "constant", float(FOREVER_PS)
    if incast.every_us is not None:
        if not (math.isfinite(incast.every_us) and incast.every_us >= 1e-6):
            raise SimulationError(f"incast: an interval of {incast.every_us:g} us is not possible")
        mean_ps = 1e6 * incast.every_us
    if incast.load is not None:
        _check_share("the load of incasts", incast.load)
        possible = {*range(hosts)} - {*senders} if receiver is None else {receiver}
        total_mbps = sum(fabric.hosts[place].rate_mbps for place in sorted(possible))
        wire = count * line_bytes(incast.message_bytes, packet_bytes)
        arrivals, mean_ps = "poisson", 8e6 * wire / (total_mbps * incast.load)
    repeats = incast.every_us is not None or incast.load is not None
    default = DEFAULT_INCASTS if repeats else 1
    most = _most(incast.count, until_ps, default, count, "incasts") if repeats else 1
    drawn = simulator.incast_messages(
        senders,
        count,
        receiver,
        incast.message_bytes,
        arrivals,
        min(mean_ps, 1e19),
        hosts,
        seed,
        most,
        until_ps,
    )
    return _limited(drawn, "messages of incasts")


def _most(given: int | None, until_ps: int, default: int, messages: int, what: str) -> int:
    """Return how many there may be; without a number, what the duration allows."""
    if given is not None:
        if not 1 <= given <= MAX_MESSAGES // messages:
            raise SimulationError(f"{what}: {given} is not in 1..{MAX_MESSAGES // messages}")
        return given
    return default if until_ps == FOREVER_PS else MAX_MESSAGES // messages + 1


def _limited(columns: _Columns, what: str) -> _Columns:
    if columns[0].size > MAX_MESSAGES:
        raise SimulationError(f"more than {MAX_MESSAGES} {what}: give fewer, or a shorter duration")
    return columns


def _check_share(name: str, share: float) -> None:
    if not (math.isfinite(share) and 0 < share <= 1):
        raise SimulationError(f"{name} must be over 0 and at most 1, not {share:g}")
