"""OpenFlow 1.3 messages as switches send them, and forged ones."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator


def message(kind: int, body: bytes = b"", xid: int = 7, version: int = 4) -> bytes:
    return struct.pack("!BBHI", version, kind, 8 + len(body), xid) + body


def match(*fields: bytes) -> bytes:
    inside = b"".join(fields)
    length = 4 + len(inside)
    return struct.pack("!HH", 1, length) + inside + bytes(-length % 8)


def oxm(field: int, value: bytes, mask: bytes = b"") -> bytes:
    header = 0x8000 << 16 | field << 9 | bool(mask) << 8 | len(value + mask)
    return struct.pack("!I", header) + value + mask


def output(port: int) -> bytes:
    return struct.pack("!HHIH6x", 0, 16, port, 0xFFFF)


def set_field(field: bytes) -> bytes:
    length = 4 + len(field)
    return struct.pack("!HH", 25, length + -length % 8) + field + bytes(-length % 8)


def packet_in(in_port: int, frame: bytes, cookie: int, *fields: bytes) -> bytes:
    body = struct.pack("!IHBBQ", 0xFFFFFFFF, len(frame), 0, 0, cookie)
    ports = oxm(0, struct.pack("!I", in_port))
    return message(10, body + match(*fields, ports) + bytes(2) + frame)


def group_entry(group_mod: bytes) -> bytes:
    """Return the entry of a group description that a group mod leads to."""
    _, kind, number = struct.unpack_from("!HBxI", group_mod, 8)
    return struct.pack("!HBxI", len(group_mod) - 8, kind, number) + group_mod[16:]


NICIRA = struct.pack("!HHIHH4x", 0xFFFF, 16, 0x2320, 16, 0)
"""A learn action, of Open vSwitch's own, that says nothing."""


def apply(*actions: bytes) -> bytes:
    inside = b"".join(actions)
    return struct.pack("!HH4x", 4, 8 + len(inside)) + inside


GOTO_2 = struct.pack("!HHB3x", 1, 8, 2)
METADATA = struct.pack("!HH4xQQ", 2, 24, 5, 0xFF)


def flow_entry(*instructions: bytes, fields: bytes = b"") -> bytes:
    rest = match(fields) + b"".join(instructions)
    return struct.pack("!HBxIIHHHH4xQQQ", 48 + len(rest), 0, 1, 2, 3, 0, 0, 0, 9, 1, 1) + rest


def multipart(kind: int, body: bytes, more: bool = False, xid: int = 7) -> bytes:
    return message(19, struct.pack("!HH4x", kind, int(more)) + body, xid)


def group_description(*actions: bytes) -> bytes:
    inside = b"".join(actions)
    bucket = struct.pack("!HHII4x", 16 + len(inside), 0, 0xFFFFFFFF, 0xFFFFFFFF) + inside
    return struct.pack("!HBxI", 8 + len(bucket), 0, 3) + bucket


MAC = bytes.fromhex("020000000101")
IN_PORT, ETH_DST = oxm(0, b"\0\0\0\1"), oxm(3, MAC, b"\xff" * 6)
PORT = struct.pack("!I4x6s2x16s8I", 1, MAC, b"s1-eth1", *range(8))
VALID = {
    "hello": message(0, struct.pack("!HHI", 1, 8, 1 << 4)),
    "error": message(1, struct.pack("!HH", 5, 2) + b"what was wrong"),
    "echo request": message(2, b"anything"),
    "echo reply": message(3),
    "experimenter": message(4, struct.pack("!II", 0x4F4E4600, 2300) + bytes(8)),
    "features reply": message(6, struct.pack("!QIBB2xII", 1, 256, 254, 0, 0x4F, 0)),
    "get-config reply": message(8, bytes(4)),
    "packet-in": message(
        10, struct.pack("!IHBBQ", 1, 3, 0, 0, 2) + match(IN_PORT) + bytes(2) + b"abc"
    ),
    "flow removed": message(
        11, struct.pack("!QHBBIIHHQQ", 1, 2, 0, 0, 1, 1, 0, 0, 1, 1) + match(ETH_DST)
    ),
    "port status": message(12, struct.pack("!B7x", 2) + PORT),
    "barrier reply": message(21),
    "role reply": message(25, struct.pack("!I4xQ", 2, 5)),
    "description": multipart(0, bytes(1056)),
    "rules": multipart(
        1,
        flow_entry(METADATA, GOTO_2, fields=IN_PORT + ETH_DST)
        + flow_entry(apply(set_field(oxm(6, b"\x10\x01")), output(3)), fields=ETH_DST)
        + flow_entry(apply(NICIRA, output(1)))
        + flow_entry(),
    ),
    "rule count": multipart(2, bytes(24)),
    "port counters": multipart(4, bytes(112)),
    "group counters": multipart(6, struct.pack("!H2xII4xQQII", 56, 3, 0, 1, 1, 1, 1) + bytes(16)),
    "group descriptions": multipart(7, group_description(output(1), output(2))),
    "port descriptions": multipart(13, PORT + PORT),
}


def forged(seed: int, count: int) -> Iterator[bytes]:
    """Yield valid messages with some bytes changed, cut or repeated; the header's length fits."""
    rng = random.Random(seed)  # noqa: S311 - not for secrets
    originals = list(VALID.values())
    for _ in range(count):
        frame = bytearray(rng.choice(originals))
        for _ in range(rng.randint(1, 4)):
            offset = rng.randrange(len(frame))
            match rng.randrange(5):
                case 0:
                    frame[offset] = rng.choice(
                        [0, 1, 4, 7, 8, 0x7F, 0x80, 0xFF, rng.randrange(256)]
                    )
                case 1:
                    del frame[max(offset, 8) :]
                case 2:
                    frame[offset:offset] = frame[offset : offset + 8]
                case 3:
                    frame[offset : offset + 2] = rng.randrange(72).to_bytes(2, "big")
                case _:
                    frame += rng.randbytes(rng.randrange(1, 40))
        frame += bytes(max(0, 8 - len(frame)))
        frame[2:4] = min(len(frame), 65535).to_bytes(2, "big")
        yield bytes(frame[:65535])
