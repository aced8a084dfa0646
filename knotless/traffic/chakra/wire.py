"""The wire format of Protocol Buffers: the fields of one message.

A decoder of its own, since the few fields of a trace need neither a compiler nor the package of
Protocol Buffers: four kinds of values, no recursion. Every length is checked against the message
that it is in, so that a file cannot make the decoder read or allocate more than its own length.

Reference: protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types; groups (3 and 4) are refused."""
Value = int | bytes


class WireError(ValueError):
    """Bytes that are no message."""


def varint(data: bytes, place: int) -> tuple[int, int]:
    """Return the number at a place, below 2**64, and the place after it."""
    value = shift = 0
    while True:
        if place >= len(data):
            raise WireError("it ends inside a number")
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 63:
            raise WireError("a number has more than 10 bytes")
    if value >= 1 << 64:
        raise WireError("a number has more than 64 bits")
    return value, place


def messages(data: bytes) -> Iterator[bytes]:
    """Yield messages of which each has its length before it, to the end of the data."""
    place = 0
    while place < len(data):
        length, place = varint(data, place)
        if length > len(data) - place:
            raise WireError(f"it ends inside a message of {length} bytes")
        yield data[place : place + length]
        place += length


def fields(message: bytes) -> Iterator[tuple[int, int, Value]]:
    """Yield the fields of a message: number, wire type and value.

    The value of a fixed number is its four or eight bytes.
    """
    place = 0
    while place < len(message):
        key, place = varint(message, place)
        number, kind = key >> 3, key & 7
        if number == 0:
            raise WireError("a field has the number 0")
        value: Value
        if kind == VARINT:
            value, place = varint(message, place)
        elif kind in (FIXED64, FIXED32, BYTES):
            length = 8 if kind == FIXED64 else 4
            if kind == BYTES:
                length, place = varint(message, place)
            if length > len(message) - place:
                raise WireError(f"it ends inside field {number}")
            value = message[place : place + length]
            place += length
        else:
            raise WireError(f"field {number} has the wire type {kind}")
        yield number, kind, value


def numbers(kind: int, value: Value) -> list[int]:
    """Return one entry, or the packed entries, of a repeated field of numbers."""
    if isinstance(value, int):
        return [value]
    if kind != BYTES:
        raise WireError("a number of another type")
    entries, place = [], 0
    while place < len(value):
        entry, place = varint(value, place)
        entries.append(entry)
    return entries


def number(value: Value) -> int:
    """Return a varint."""
    if not isinstance(value, int):
        raise WireError("a number of another type")
    return value


def text(kind: int, value: Value) -> str:
    """Return a string."""
    if kind != BYTES or not isinstance(value, bytes):
        raise WireError("a text of another type")
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise WireError("a text that is not UTF-8") from None


def message(kind: int, value: Value) -> bytes:
    """Return an inner message."""
    if kind != BYTES or not isinstance(value, bytes):
        raise WireError("a message of another type")
    return value


def signed(value: Value) -> int:
    """Return an int32 or int64, of which negative ones have 64 bits."""
    whole = number(value)
    return whole - (1 << 64) if whole >> 63 else whole


def zigzag(value: Value) -> int:
    """Return a sint32 or sint64."""
    whole = number(value)
    return (whole >> 1) ^ -(whole & 1)


def fixed(layout: str, value: Value) -> int:
    """Return a fixed number of the layout (of :mod:`struct`)."""
    if not isinstance(value, bytes) or len(value) != struct.calcsize(layout):
        raise WireError("a fixed number of another length")
    whole: int = struct.unpack(layout, value)[0]
    return whole
