"""A trace: the files of its ranks, and which ranks each process group has."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from knotless.base.files import read_text
from knotless.base.printable import shortened
from knotless.traffic.chakra.nodes import MAX_NODES, ChakraError, Node, NodeType, read_nodes

MAX_RANKS = 65_536
MAX_GROUP_FILE_BYTES = 64 << 20
EVERYONE = ("", "0")
"""Names of the group of all ranks, unless a trace or a file says which ranks they have."""
_FILE = re.compile(r"(.+)\.(\d{1,9})\.(et|json)")

Groups = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class RankTrace:
    """The nodes of a rank in the order of their ids, and the process groups that it knows."""

    path: str
    nodes: tuple[Node, ...]
    groups: Groups


def read_ranks(path: str, most_ranks: int, groups: Groups | None = None) -> list[RankTrace]:
    """Read a trace of at most so many ranks: a folder, or NAME for the files NAME.0.et, ..

    ``groups`` are process groups that the trace does not list itself. Raises ChakraError with the
    file, and the node if it is one.
    """
    files = trace_files(path)
    if len(files) > most_ranks:
        raise ChakraError(f"{shortened(path)}: {len(files)} ranks, but {most_ranks} hosts")
    ranks, count = [], 0
    for file in files:
        nodes = sorted(read_nodes(file), key=lambda node: node.id)
        count += len(nodes)
        if count > MAX_NODES:
            raise ChakraError(f"{shortened(path)}: more than {MAX_NODES} nodes")
        listed = {**(groups or {}), **_listed_groups(nodes, file)}
        for name, members in listed.items():
            _check_group(file, name, members, len(files))
        ranks.append(RankTrace(file, tuple(nodes), listed))
    return ranks


def trace_files(path: str) -> list[str]:
    """Return the file of each rank; raises ChakraError unless there is one for 0, 1, 2 .."""
    place = Path(path)
    folder, name = (place, None) if place.is_dir() else (place.parent, place.name)
    try:
        present = sorted(entry.name for entry in folder.iterdir())
    except OSError as error:
        raise ChakraError(f"{shortened(path)}: cannot be read: {error.strerror}") from None
    files: dict[int, str] = {}
    names = set()
    for entry in present:
        match = _FILE.fullmatch(entry)
        if match is None or name not in (None, match[1]):
            continue
        names.add((match[1], match[3]))
        files[int(match[2])] = str(folder / entry)
    if len(names) > 1:
        listed = ", ".join(f"{name}.*.{suffix}" for name, suffix in sorted(names))
        raise ChakraError(f"{shortened(path)}: several traces, name one: {shortened(listed)}")
    if not files or len(files) > MAX_RANKS:
        raise ChakraError(
            f"{shortened(path)}: {len(files)} files of ranks; must be a folder with NAME.0.et,"
            " NAME.1.et .. (or .json), or such a NAME"
        )
    missing = next((rank for rank in range(len(files)) if rank not in files), None)
    if missing is not None:
        raise ChakraError(f"{shortened(path)}: of {len(files)} files, none is of rank {missing}")
    return [files[rank] for rank in range(len(files))]


def read_groups(path: str) -> Groups:
    """Read process groups as ASTRA-sim does: JSON of names and ranks; raises ChakraError."""
    try:
        groups = json.loads(read_text(path, ChakraError, MAX_GROUP_FILE_BYTES))
    except (ValueError, RecursionError):
        groups = None
    if not isinstance(groups, dict):
        raise ChakraError(f'{shortened(path)}: must be JSON such as {{"1": [0, 1, 2, 3]}}')
    return {name: _members(path, name, ranks) for name, ranks in groups.items()}


def _listed_groups(nodes: list[Node], path: str) -> dict[str, tuple[int, ...]]:
    """Return the process groups that metadata of PyTorch lists: ["[{pg_name, ranks}]"]."""
    groups = {}
    for node in nodes:
        if node.type != NodeType.METADATA_NODE or "pg_name" not in node.values:
            continue
        try:
            # A list in Python's notation with one text, which is JSON.
            listed = json.loads(node.values[node.values.index("[{") : node.values.rindex("}]") + 2])
            pairs = [(str(each["pg_name"]), each["ranks"]) for each in listed]
        except (ValueError, LookupError, TypeError, RecursionError):
            raise ChakraError(
                f"{shortened(path)}: node {node.id}: its process groups are no JSON"
            ) from None
        # No ranks stand for all of them.
        groups.update({name: _members(path, name, ranks) for name, ranks in pairs if ranks != []})
    return groups


def _members(path: str, name: str, ranks: Any) -> tuple[int, ...]:
    valid = isinstance(ranks, list) and ranks and all(type(rank) is int for rank in ranks)
    if not valid:
        raise ChakraError(f"{shortened(path)}: group {shortened(name)!r} must have a list of ranks")
    return tuple(ranks)


def _check_group(path: str, name: str, members: tuple[int, ...], count: int) -> None:
    for rank in members:
        if not 0 <= rank < count:
            raise ChakraError(
                f"{shortened(path)}: group {shortened(name)!r} has rank {rank}, of 0 to {count - 1}"
            )
    if len(set(members)) < len(members):
        raise ChakraError(f"{shortened(path)}: group {shortened(name)!r} has a rank twice")
