"""Execution traces in Chakra's format for tests: written field by field, as protoc would."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

METADATA, LOAD, COMPUTE, SEND, RECEIVE, COLLECTIVE = 1, 2, 4, 5, 6, 7
ALL_REDUCE, REDUCE, ALL_GATHER, BROADCAST, ALL_TO_ALL, REDUCE_SCATTER, BARRIER = 0, 1, 2, 5, 6, 7, 9
NAMES = {
    METADATA: "METADATA_NODE",
    LOAD: "MEM_LOAD_NODE",
    COMPUTE: "COMP_NODE",
    SEND: "COMM_SEND_NODE",
    RECEIVE: "COMM_RECV_NODE",
    COLLECTIVE: "COMM_COLL_NODE",
}
Given = dict[str, Any]


def node(number: int, kind: int, *needs: int, us: int = 0, values: str = "", **attr: Any) -> Given:
    """Return a node; attributes are numbers, texts, flags, or lists of flags."""
    return {"id": number, "type": kind, "needs": needs, "us": us, "values": values, "attr": attr}


def varint(value: int) -> bytes:
    """Return a number as a varint; negative ones have 64 bits."""
    value &= (1 << 64) - 1
    digits = [value >> shift & 127 for shift in range(0, 64, 7)]
    while len(digits) > 1 and digits[-1] == 0:
        digits.pop()
    return bytes([*(digit | 128 for digit in digits[:-1]), digits[-1]])


def whole(number: int, value: int) -> bytes:
    """Return a field that is a number."""
    return varint(number << 3) + varint(value)


def part(number: int, content: bytes) -> bytes:
    """Return a field that is bytes, text or a message."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def encoded(made: Given) -> bytes:
    """Return a node as a message, without its length."""
    attributes = b""
    for name, value in made["attr"].items():
        if isinstance(value, bool):
            field = whole(27, value)
        elif isinstance(value, int):
            field = whole(9, value)
        elif isinstance(value, str):
            field = part(29, value.encode())
        else:
            field = part(28, part(1, bytes(value)))
        attributes += part(10, part(1, name.encode()) + field)
    needs = part(5, b"".join(map(varint, made["needs"]))) if made["needs"] else b""
    head = whole(1, made["id"]) + part(2, b"any name") + whole(3, made["type"])
    inputs = part(8, part(1, made["values"].encode())) if made["values"] else b""
    return head + needs + whole(7, made["us"]) + inputs + attributes


def json_of(made: Given) -> str:
    """Return a node as the jsonizer of Chakra writes it: 64 bits as text, defaults left out."""
    attributes: list[Given] = []
    for name, value in made["attr"].items():
        if isinstance(value, bool):
            attributes.append({"name": name, "boolVal": value})
        elif isinstance(value, int):
            attributes.append({"name": name, "int64Val": str(value)})
        elif isinstance(value, str):
            attributes.append({"name": name, "stringVal": value})
        else:
            attributes.append({"name": name, "boolList": {"values": [bool(v) for v in value]}})
    given = {
        "id": made["id"] and str(made["id"]),
        "name": "any name",
        "type": NAMES[made["type"]],
        "dataDeps": [str(need) for need in made["needs"]],
        "durationMicros": made["us"] and str(made["us"]),
        "inputs": made["values"] and {"values": made["values"]},
        "attr": attributes,
    }
    return json.dumps({name: value for name, value in given.items() if value}, indent=2)


def write_trace(folder: Path, ranks: Sequence[Sequence[Given]], name: str = "step") -> str:
    """Write a trace, a file for each rank; returns its folder."""
    folder.mkdir(exist_ok=True)
    for rank, nodes in enumerate(ranks):
        metadata = part(1, b"0.0.4")
        messages = [metadata, *map(encoded, nodes)]
        data = b"".join(varint(len(message)) + message for message in messages)
        (folder / f"{name}.{rank}.et").write_bytes(data)
    return str(folder)
