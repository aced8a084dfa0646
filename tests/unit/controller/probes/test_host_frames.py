"""The host that has sent a frame, as read from the frame."""

from __future__ import annotations

import random

import pytest

from knotless.controller.probes.frames import Sender, sender_of


def frame(kind: int, content: bytes = b"", source: str = "020000000101") -> bytes:
    return bytes.fromhex("ffffffffffff" + source) + kind.to_bytes(2, "big") + content


ARP = bytes.fromhex("0001080006040001020000000101")
HOST = 0x020000000101


@pytest.mark.parametrize(
    ("data", "sender"),
    [
        (frame(0x0806, ARP + bytes([10, 0, 1, 1])), Sender(HOST, "10.0.1.1")),
        (frame(0x0806, ARP + bytes(4)), Sender(HOST, None)),
        (frame(0x0806, ARP + bytes([10, 0])), Sender(HOST, None)),
        (frame(0x0800, bytes(12) + bytes([10, 0, 1, 2])), Sender(HOST, "10.0.1.2")),
        (frame(0x0800, bytes(12) + bytes([224, 0, 0, 1])), Sender(HOST, None)),
        (frame(0x0800, bytes(12) + bytes([255] * 4)), Sender(HOST, None)),
        # No fabric may have a host with these.
        (frame(0x0800, bytes(12) + bytes([10, 255, 255, 255])), Sender(HOST, None)),
        (frame(0x0806, ARP + bytes([10, 0, 0, 0])), Sender(HOST, "10.0.0.0")),
        (frame(0x86DD), Sender(HOST, None)),
        # The address in the ARP is another one than that of the frame.
        (frame(0x0806, ARP + bytes([10, 0, 1, 1]), "020000000102"), Sender(HOST + 1, None)),
        (frame(0x8100), None),
        (frame(0x86DD, source="010000000101"), None),
        (frame(0x86DD, source="000000000000"), None),
        (bytes.fromhex("0180c200000e") + frame(0x88CC)[6:], None),
        (b"", None),
        (frame(0x0800)[:13], None),
    ],
)
def test_the_sender_of_a_frame(data: bytes, sender: Sender | None) -> None:
    assert sender_of(data) == sender


def test_no_frame_is_too_strange() -> None:
    rng = random.Random(1)  # noqa: S311 - repeatable, not secret
    for _ in range(5000):
        data = rng.randbytes(rng.randrange(70))
        if rng.random() < 0.7:
            data = frame(rng.choice((0x0806, 0x0800, 0x8100)), data)
        sender = sender_of(data[: rng.randrange(80)])
        assert sender is None or 0 < sender.mac < 1 << 48
