"""Operations of ranks that do what the nodes of a trace say.

A node becomes one operation, a collective operation its transfers between two that join them: the
first ends when all that the node waits for has ended, the second when the rank has sent and
received its part. Reducing takes no time.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter

import numpy as np
from numpy.typing import NDArray

from knotless.base.printable import shortened
from knotless.traffic.chakra.nodes import ChakraError, CollectiveType, Node, NodeType
from knotless.traffic.chakra.trace import EVERYONE, RankTrace
from knotless.traffic.collectives import CollectiveError, Transfers, collective_named

SEND, RECEIVE, COMPUTE, JOIN = range(4)
"""Kinds of operations, as ``knotless._core.schedule.operation_schedule`` numbers them."""
ACCELERATOR, HOST_PROCESSOR = 0, 1
"""Processors of a rank; each computes one node after the other."""
MAX_OPERATIONS = 50_000_000
"""The most operations and requirements: some gigabytes."""
MAX_BYTES = 1 << 40
MAX_PS = 10**18
"""The longest time of computing: 11 days."""
PICOSECONDS_PER_US = 1_000_000

ALL_REDUCES = ("ring-allreduce", "halving-doubling-allreduce", "tree-allreduce")
"""What an ALL_REDUCE may be; the first is the default."""
_ALGORITHMS = {
    CollectiveType.ALL_GATHER: "ring-allgather",
    CollectiveType.ALL_TO_ALL: "all-to-all",
    CollectiveType.REDUCE_SCATTER: "reduce-scatter",
    CollectiveType.REDUCE_SCATTER_BLOCK: "reduce-scatter",
    CollectiveType.BROADCAST: "tree-broadcast",
    CollectiveType.BARRIER: "tree-allreduce",
}


@dataclass(frozen=True)
class Operations:
    """Operations in columns, and pairs of which one waits until the other has ended."""

    ranks: int
    rank: NDArray[np.uint32]
    kind: NDArray[np.uint8]
    peer: NDArray[np.uint32]
    amount: NDArray[np.uint64]
    tag: NDArray[np.uint32]
    waiting: NDArray[np.uint32]
    needed: NDArray[np.uint32]


@dataclass
class _Collective:
    """A collective operation: its ranks, and of those that were read where they take part."""

    members: tuple[int, ...]
    kind: CollectiveType
    size: int
    first: str
    joins: dict[int, tuple[int, int]] = field(default_factory=dict)


def operations_of(
    ranks: list[RankTrace], all_reduce: str = ALL_REDUCES[0], computing: float = 1.0
) -> Operations:
    """Return the operations of a trace; the durations of nodes are multiplied by ``computing``.

    Raises ChakraError with file and node.
    """
    builder = _Builder(len(ranks), all_reduce, computing)
    for number, rank in enumerate(ranks):
        _check_order(rank)
        builder.add_rank(number, rank)
    return builder.finish()


def _check_order(rank: RankTrace) -> None:
    """Check that ids are unique, and that no node waits for itself or for one that is missing."""
    earlier: set[int] = set()
    for node in rank.nodes:
        if node.id in earlier:
            raise _error(rank, node, "another node has this id")
        earlier.add(node.id)
    for node in rank.nodes:
        missing = next((need for need in node.needs if need not in earlier), None)
        if missing is not None:
            raise _error(rank, node, f"it waits for node {missing}, which is missing")
    try:
        TopologicalSorter({node.id: node.needs for node in rank.nodes}).prepare()
    except CycleError as error:
        raise ChakraError(
            f"{shortened(rank.path)}: node {error.args[1][0]}: it waits for itself"
        ) from None


def _error(rank: RankTrace, node: Node, text: object) -> ChakraError:
    return ChakraError(f"{shortened(rank.path)}: node {node.id}: {text}")


class _Builder:
    """Columns that grow by a node at a time, and at the end by all collective operations."""

    def __init__(self, ranks: int, all_reduce: str, computing: float) -> None:
        self._ranks = ranks
        self._computing = computing
        self._algorithms = {CollectiveType.ALL_REDUCE: all_reduce, **_ALGORITHMS}
        self._columns = (array("I"), array("B"), array("I"), array("Q"), array("I"))
        self._edges = (array("I"), array("I"))
        self._tags: dict[int, int] = {}
        self._messages: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
        self._message_nodes: dict[tuple[int, int, int], tuple[RankTrace, Node]] = {}
        self._collectives: dict[tuple[str, tuple[int, ...], int], _Collective] = {}

    def add_rank(self, number: int, rank: RankTrace) -> None:
        """Add the operations of the nodes of a rank."""
        ends: dict[int, int] = {}
        begins: list[int] = []
        taken: dict[tuple[str, tuple[int, ...]], int] = {}
        for node in rank.nodes:
            try:
                begin, end = self._add_node(number, rank, node, taken)
            except (ChakraError, CollectiveError) as error:
                raise _error(rank, node, error) from None
            begins.append(begin)
            ends[node.id] = end
        for node, begin in zip(rank.nodes, begins, strict=True):
            self._edges[0].extend([begin] * len(node.needs))
            self._edges[1].extend(ends[need] for need in node.needs)

    def _add(self, rank: int, kind: int, peer: int = 0, amount: int = 0, tag: int = 0) -> int:
        for column, value in zip(self._columns, (rank, kind, peer, amount, tag), strict=True):
            column.append(value)
        return len(self._columns[0]) - 1

    def _add_node(
        self,
        number: int,
        rank: RankTrace,
        node: Node,
        taken: dict[tuple[str, tuple[int, ...]], int],
    ) -> tuple[int, int]:
        """Add a node; returns its first and its last operation."""
        match node.type:
            case NodeType.METADATA_NODE:
                operation = self._add(number, JOIN)
            case NodeType.COMP_NODE:
                on_host = node.attributes.get("is_cpu_op", False)
                processor = HOST_PROCESSOR if on_host else ACCELERATOR
                operation = self._add(number, COMPUTE, processor, self._time_ps(node))
            case NodeType.COMM_SEND_NODE | NodeType.COMM_RECV_NODE:
                operation = self._add_message(number, rank, node)
            case NodeType.COMM_COLL_NODE:
                return self._add_collective(number, rank, node, taken)
            case _:
                is_known_type = node.type in NodeType.__members__.values()
                what = NodeType(node.type).name if is_known_type else f"type {node.type}"
                raise ChakraError(f"a {what} is not simulated")
        return operation, operation

    def _time_ps(self, node: Node) -> int:
        time_ps = round(node.duration_us * PICOSECONDS_PER_US * self._computing)
        if time_ps > MAX_PS:
            raise ChakraError(f"it computes for {node.duration_us} us, too long")
        return time_ps

    def _add_message(self, number: int, rank: RankTrace, node: Node) -> int:
        sends = node.type == NodeType.COMM_SEND_NODE
        own, other = ("comm_src", "comm_dst") if sends else ("comm_dst", "comm_src")
        if node.number(own, number) != number:
            raise ChakraError(f"its {own} is not rank {number}, whose file this is")
        peer = node.number(other)
        if peer >= self._ranks or peer == number:
            raise ChakraError(f"its {other} is {peer}, not another rank of 0 to {self._ranks - 1}")
        size = _size(node)
        tag = self._tags.setdefault(node.number("comm_tag", 0), len(self._tags))
        key = (number, peer, tag) if sends else (peer, number, tag)
        counted = self._messages.setdefault(key, [(0, 0), (0, 0)])
        count, total = counted[not sends]
        counted[not sends] = (count + 1, total + size)
        self._message_nodes.setdefault(key, (rank, node))
        return self._add(number, SEND if sends else RECEIVE, peer, max(1, size), tag)

    def _add_collective(
        self,
        number: int,
        rank: RankTrace,
        node: Node,
        taken: dict[tuple[str, tuple[int, ...]], int],
    ) -> tuple[int, int]:
        kind = node.number("comm_type")
        if kind not in CollectiveType.__members__.values():
            raise ChakraError(f"its comm_type is {kind}, not 0 to {max(CollectiveType)}")
        kind = CollectiveType(kind)
        if kind not in self._algorithms:
            raise ChakraError(f"a {kind.name} is not simulated: the schema has no root for it")
        dimensions = node.attributes.get("involved_dim", ())
        if not isinstance(dimensions, tuple):
            raise ChakraError("its involved_dim is no list of flags")
        if not all(dimensions):
            raise ChakraError("its involved_dim leaves dimensions out; name its ranks by pg_name")
        size = 0 if kind == CollectiveType.BARRIER else _size(node)
        name, members = self._group(number, rank, node)
        turn = taken.get((name, members), 0)
        taken[name, members] = turn + 1
        where = f"{rank.path}: node {node.id}"
        collective = self._collectives.setdefault(
            (name, members, turn), _Collective(members, kind, size, where)
        )
        if (collective.kind, collective.size) != (kind, size):
            raise ChakraError(
                f"{kind.name} of {size} bytes, but {shortened(collective.first)}, number {turn} of"
                f" the same group as well, is {collective.kind.name} of {collective.size}"
            )
        begin, end = self._add(number, JOIN), self._add(number, JOIN)
        self._require([end], [begin])
        collective.joins[number] = (begin, end)
        return begin, end

    def _group(self, number: int, rank: RankTrace, node: Node) -> tuple[str, tuple[int, ...]]:
        name = node.attributes.get("pg_name") or ""
        if not isinstance(name, str):
            raise ChakraError("its pg_name is no text")
        if name in rank.groups:
            members = rank.groups[name]
        elif name in EVERYONE:
            members = tuple(range(self._ranks))
        else:
            raise ChakraError(
                f"no ranks of group {shortened(name)!r} are known; give --chakra-groups"
            )
        if number not in members:
            raise ChakraError(f"rank {number} is not in group {shortened(name)!r}")
        return name, members

    def _require(self, waiting: Iterable[int], needed: Iterable[int]) -> None:
        self._edges[0].extend(waiting)
        self._edges[1].extend(needed)

    def finish(self) -> Operations:
        """Add the transfers of collective operations, and return everything."""
        self._check_balance()
        blocks = [[np.asarray(column) for column in self._columns]]
        edges = [[np.asarray(side) for side in self._edges]]
        count, tag = len(self._columns[0]), len(self._tags)
        for collective in self._collectives.values():
            missing = next(
                (rank for rank in collective.members if rank not in collective.joins), None
            )
            if missing is not None:
                raise ChakraError(
                    f"{shortened(collective.first)}: rank {missing} of its group takes no part"
                )
            if len(collective.members) == 1:
                continue
            # Every operation has at most two transfers for each pair of ranks.
            if count + 4 * len(collective.members) ** 2 > MAX_OPERATIONS:
                raise ChakraError(
                    f"{shortened(collective.first)}: more than {MAX_OPERATIONS} operations"
                )
            try:
                one = _transfers(
                    self._algorithms[collective.kind],
                    collective.kind,
                    collective.size,
                    collective.members,
                )
            except CollectiveError as error:
                raise ChakraError(f"{shortened(collective.first)}: {error}") from None
            blocks.append(_rows(collective, one, tag))
            edges.append(_requirements(collective, one, count))
            count, tag = count + 2 * len(one.source), tag + len(one.source)
        rank, kind, peer, amount, tags = (
            np.concatenate(column) for column in zip(*blocks, strict=True)
        )
        waiting, needed = (np.concatenate(side) for side in zip(*edges, strict=True))
        return Operations(self._ranks, rank, kind, peer, amount, tags, waiting, needed)

    def _check_balance(self) -> None:
        """Check that messages that are sent are received, with the same bytes in all."""
        for key, (sent, received) in self._messages.items():
            if sent != received:
                rank, node = self._message_nodes[key]
                raise _error(
                    rank,
                    node,
                    f"with comm_tag {node.number('comm_tag', 0)}, rank {key[0]} sends {sent[0]}"
                    f" messages of {sent[1]} bytes in all to rank {key[1]}, which receives"
                    f" {received[0]} of {received[1]}",
                )


def _size(node: Node) -> int:
    size = node.number("comm_size")
    if size >= MAX_BYTES:
        raise ChakraError(f"its comm_size is {size}, not below 2**40")
    return size


def _transfers(
    algorithm: str, kind: CollectiveType, size: int, members: tuple[int, ...]
) -> Transfers:
    """Return the transfers between the ranks of a group, numbered within it.

    An all-gather's size is what each rank gives, as in ASTRA-sim; others count the whole vector. A
    part has at least one byte.
    """
    count = len(members)
    whole = size * count if kind == CollectiveType.ALL_GATHER else size
    return _collective_transfers(algorithm, count, max(whole, count))


@lru_cache(maxsize=256)
def _collective_transfers(algorithm: str, ranks: int, size: int) -> Transfers:
    return collective_named(algorithm).make(ranks, size)


def _rows(collective: _Collective, one: Transfers, tag: int) -> list[NDArray[np.generic]]:
    """Return the columns of all sends, then of all receives; each transfer has a tag of its own."""
    members = np.array(collective.members, dtype=np.uint32)
    source, to = members[one.source], members[one.destination]
    count = len(source)
    tags = np.arange(tag, tag + count, dtype=np.uint32)
    return [
        np.concatenate([source, to]),
        np.repeat(np.array([SEND, RECEIVE], dtype=np.uint8), count),
        np.concatenate([to, source]),
        np.concatenate([one.bytes, one.bytes]),
        np.concatenate([tags, tags]),
    ]


def _requirements(collective: _Collective, one: Transfers, first: int) -> list[NDArray[np.uint32]]:
    """Return what waits for what: sends, then receives, are numbered from ``first`` on."""
    begins = np.array([collective.joins[rank][0] for rank in collective.members], dtype=np.uint32)
    ends = np.array([collective.joins[rank][1] for rank in collective.members], dtype=np.uint32)
    count = len(one.source)
    sends = np.arange(first, first + count, dtype=np.uint32)
    receives = sends + np.uint32(count)
    waiting = [sends, receives, sends[one.waiting], ends[one.source], ends[one.destination]]
    needed = [begins[one.source], begins[one.destination], receives[one.needed], sends, receives]
    return [np.concatenate(waiting), np.concatenate(needed)]
