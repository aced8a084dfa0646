"""The nodes of one file of a trace: messages (.et), or the JSON of Chakra's jsonizer (.json)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from typing import Any

from knotless.base.errors import KnotlessError
from knotless.base.files import read_bytes
from knotless.base.printable import shortened
from knotless.traffic.chakra import wire
from knotless.traffic.chakra.wire import WireError

MAX_FILE_BYTES = 1 << 30
MAX_NODES = 5_000_000
"""The most nodes of all ranks: some gigabytes."""


class ChakraError(KnotlessError):
    """A trace that is damaged, or has what is not simulated."""


class NodeType(IntEnum):
    """The operation of a node."""

    INVALID_NODE = 0
    METADATA_NODE = 1
    MEM_LOAD_NODE = 2
    MEM_STORE_NODE = 3
    COMP_NODE = 4
    COMM_SEND_NODE = 5
    COMM_RECV_NODE = 6
    COMM_COLL_NODE = 7
    STORAGE_NODE = 8
    BATCH_NODE = 9
    CHECKPOINT_NODE = 10


class CollectiveType(IntEnum):
    """The collective operation of a node."""

    ALL_REDUCE = 0
    REDUCE = 1
    ALL_GATHER = 2
    GATHER = 3
    SCATTER = 4
    BROADCAST = 5
    ALL_TO_ALL = 6
    REDUCE_SCATTER = 7
    REDUCE_SCATTER_BLOCK = 8
    BARRIER = 9


Attribute = int | bool | str | tuple[bool, ...] | None
"""The value of an attribute; None for a type that no known attribute has."""

KNOWN = frozenset(
    {
        *("is_cpu_op", "comm_type", "comm_size", "comm_src", "comm_dst", "comm_tag", "pg_name"),
        "involved_dim",
    }
)
"""The attributes that are read; others do not change what is simulated."""


@dataclass(frozen=True)
class Node:
    """A node: what it does, the ids of nodes that it waits for, and how long it takes."""

    id: int = 0
    name: str = ""
    type: int = 0
    needs: tuple[int, ...] = ()
    duration_us: int = 0
    values: str = ""
    """The values of its inputs; those of metadata of PyTorch list its process groups."""
    attributes: Mapping[str, Attribute] = field(default_factory=dict)

    def number(self, name: str, default: int | None = None) -> int:
        """Return an attribute that is a number of 0 or more; raises ChakraError."""
        value = self.attributes.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            missing = "has no" if value is None else f"has {shortened(str(value))} as its"
            raise ChakraError(f"{missing} {name}, a number of 0 or more")
        return value


_READERS: Mapping[int, tuple[str, Callable[[wire.Value], Attribute]]] = {
    7: ("int32_val", wire.signed),
    9: ("int64_val", wire.signed),
    11: ("uint32_val", wire.number),
    13: ("uint64_val", wire.number),
    15: ("sint32_val", wire.zigzag),
    17: ("sint64_val", wire.zigzag),
    19: ("fixed32_val", partial(wire.fixed, "<I")),
    21: ("fixed64_val", partial(wire.fixed, "<Q")),
    23: ("sfixed32_val", partial(wire.fixed, "<i")),
    25: ("sfixed64_val", partial(wire.fixed, "<q")),
    27: ("bool_val", lambda value: bool(wire.number(value))),
    28: ("bool_list", lambda value: _flags(wire.message(wire.BYTES, value))),
    29: ("string_val", lambda value: wire.text(wire.BYTES, value)),
}
"""By number of the field of AttributeProto: its name, and how its value is read."""


def read_nodes(path: str) -> list[Node]:
    """Return the nodes of a file; raises ChakraError with the file, and the node if it is one."""
    data = read_bytes(path, ChakraError, MAX_FILE_BYTES)
    if data[:2] == b"\x1f\x8b":
        raise ChakraError(f"{shortened(path)}: it is compressed: gunzip it first")
    nodes: list[Node] = []
    decoded = _from_json if path.endswith(".json") else _from_messages
    try:
        for node in decoded(data):
            nodes.append(node)
            if len(nodes) > MAX_NODES:
                raise ChakraError(f"more than {MAX_NODES} nodes")
    except (WireError, RecursionError, ChakraError) as error:
        text = "it is nested too deeply" if isinstance(error, RecursionError) else error
        place = f"message {len(nodes) + 2}: " if isinstance(error, WireError) else ""
        raise ChakraError(f"{shortened(path)}: {place}{text}") from None
    return nodes


def _from_messages(data: bytes) -> Iterator[Node]:
    messages = wire.messages(data)
    for _, kind, value in wire.fields(next(messages, b"")):
        wire.message(kind, value)  # metadata: a version, and attributes
    yield from map(_node, messages)


def _node(data: bytes) -> Node:
    values: dict[str, Any] = {}
    needs: list[int] = []
    attributes: dict[str, Attribute] = {}
    for number, kind, value in wire.fields(data):
        if number in (1, 3, 7):
            values[{1: "id", 3: "type", 7: "duration_us"}[number]] = wire.number(value)
        elif number == 2:
            values["name"] = wire.text(kind, value)
        elif number in (4, 5):
            needs += wire.numbers(kind, value)
        elif number == 8:
            for inner, inner_kind, inner_value in wire.fields(wire.message(kind, value)):
                if inner == 1:
                    values["values"] = wire.text(inner_kind, inner_value)
        elif number == 10:
            _attribute(wire.message(kind, value), attributes)
    return Node(needs=tuple(needs), attributes=attributes, **values)


def _attribute(data: bytes, attributes: dict[str, Attribute]) -> None:
    name, given = "", []
    for number, kind, value in wire.fields(data):
        if number == 1:
            name = wire.text(kind, value)
            if name not in KNOWN:
                return
        elif number != 2:
            given.append((number, value))
    if name in KNOWN:
        attributes[name] = None
        for number, value in given:
            attributes[name] = _READERS[number][1](value) if number in _READERS else None


def _flags(data: bytes) -> tuple[bool, ...]:
    entries: list[int] = []
    for number, kind, value in wire.fields(data):
        if number == 1:
            entries += wire.numbers(kind, value)
    return tuple(map(bool, entries))


def _from_json(data: bytes) -> Iterator[Node]:
    """Yield the nodes of JSON objects one after the other, of which the first is metadata."""
    try:
        text, decoder, place, first = data.decode(), json.JSONDecoder(), 0, True
        while place < len(text):
            if text[place].isspace():
                place += 1
                continue
            values, place = decoder.raw_decode(text, place)
            if not isinstance(values, dict):
                raise ChakraError("it is no sequence of JSON objects")
            if "workload_graph" in values:
                raise ChakraError("it has a workload_graph; must be JSON of chakra_jsonizer")
            if not first:
                yield _json_node(values)
            first = False
    except ValueError as error:
        raise ChakraError(f"it is no JSON: {shortened(str(error))}") from None


def _json_node(values: dict[str, Any]) -> Node:
    given = {name.lower().replace("_", ""): value for name, value in values.items()}
    number = _whole(given.get("id", 0), "id")
    try:
        kind = given.get("type", 0)
        named = isinstance(kind, str) and kind in NodeType.__members__
        needs = [*given.get("ctrldeps", []), *given.get("datadeps", [])]
        attributes: dict[str, Attribute] = {}
        for each in given.get("attr", []):
            if each.get("name") in KNOWN:
                attributes[each["name"]] = _json_value(each)
        return Node(
            number,
            str(given.get("name", "")),
            NodeType[kind] if named else _whole(kind, "type"),
            tuple(_whole(need, "dependency") for need in needs),
            _whole(given.get("durationmicros", 0), "duration"),
            str(given.get("inputs", {}).get("values", "")),
            attributes,
        )
    except (AttributeError, TypeError):
        raise ChakraError(f"node {number}: it is no node of Chakra's schema") from None


def _json_value(attribute: dict[str, Any]) -> Attribute:
    for name, value in attribute.items():
        match name.lower().replace("_", ""):
            case "boolval":
                return bool(value)
            case "boollist":
                return tuple(map(bool, value.get("values", [])))
            case "stringval":
                return str(value)
            case "name" | "docstring":
                pass
            case other:
                integer = any(other == reader.replace("_", "") for reader, _ in _READERS.values())
                return _whole(value, attribute["name"]) if integer else None
    return None


def _whole(value: Any, what: str) -> int:
    """Return an integer, which JSON of Protocol Buffers writes as text from 64 bits on."""
    if isinstance(value, str) and len(value) < 21 and value.lstrip("-").isdecimal():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not -(1 << 63) <= value < 1 << 64:
        raise ChakraError(f"a {what} is {shortened(str(value))}, no integer")
    return value
