"""What a program on a host of a fabric may do to it: floods of frames, and load on the machine.

``python -m bench.support.abuse KIND INTERFACE ADDRESSES``, in the namespace of the host, abuses
until it is killed, with all processes of its group. ADDRESSES is a JSON object with ``mac`` and
``ip`` of the host (``own``) and of another one (``other``).
"""

from __future__ import annotations

import json
import os
import random
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

Addresses = Mapping[str, Mapping[str, str]]
SLEEPERS, PROCESSES, SPINNING, SOCKETS = 2000, 300, 8, 1000
SEND_BUFFER_BYTES = 4 << 20
CONTROL = bytes.fromhex("0180c2000001")
"""The address of MAC control frames (IEEE 802.3, annex 31B)."""
IPV4, ARP, TAG, MAC_CONTROL = (
    number.to_bytes(2, "big") for number in (0x800, 0x806, 0x8100, 0x8808)
)


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def _ipv4(source: str, to: str, payload: bytes) -> bytes:
    """Return an IPv4 packet with protocol UDP; nobody looks at its checksums."""
    ends = socket.inet_aton(source) + socket.inet_aton(to)
    return struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 0, 0, 64, 17, 0) + ends + payload


def frames(addresses: Addresses) -> dict[str, bytes]:
    """Return a frame of each kind of flood but that of random ones."""
    own, other = _mac(addresses["own"]["mac"]), _mac(addresses["other"]["mac"])
    own_ip, other_ip = addresses["own"]["ip"], addresses["other"]["ip"]
    everyone, group = b"\xff" * 6, bytes.fromhex("01005e0000fb")
    packet, long = _ipv4(own_ip, other_ip, bytes(20)), bytes(1400)
    # Ethernet, IPv4, addresses of 6 and 4 bytes (RFC 826); 1 asks, 2 answers.
    asks, answers = (struct.pack("!HHBBH", 1, 0x800, 6, 4, code) for code in (1, 2))
    asked = own + socket.inet_aton(own_ip) + bytes(6) + socket.inet_aton(other_ip)
    claimed = own + socket.inet_aton(other_ip) + other + socket.inet_aton(other_ip)
    no_port = struct.pack("!HH", 0x0101, 0xFFFF) + b"\xff" * 16
    return {
        "broadcasts": everyone + own + IPV4 + _ipv4(own_ip, "255.255.255.255", long),
        "ARP requests": everyone + own + ARP + asks + asked,
        "frames to an undeclared group": group
        + own
        + IPV4
        + _ipv4(own_ip, "224.0.0.251", bytes(1400)),
        "forged ARP answers": other + own + ARP + answers + claimed,
        "forged source MAC": other + bytes.fromhex("02ffffffff09") + IPV4 + packet,
        "forged source IP": other + own + IPV4 + _ipv4(other_ip, other_ip, bytes(20)),
        "VLAN tags": other + own + TAG + bytes([0, 2]) + IPV4 + packet,
        "two VLAN tags": other + own + (TAG + bytes([0, 2])) * 2 + IPV4 + packet,
        "short frames": other + own + IPV4,
        "longest frames": other + own + IPV4 + _ipv4(own_ip, other_ip, bytes(1480)),
        "PAUSE frames": CONTROL + own + MAC_CONTROL + bytes.fromhex("0001ffff") + bytes(42),
        "PFC frames": CONTROL + own + MAC_CONTROL + no_port + bytes(26),
    }


def _flood(interface: str, draw_frame: Callable[[], bytes]) -> None:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
        out.bind((interface, 0))
        while True:
            with suppress(OSError):  # too short or too long for the kernel
                out.send(draw_frame())


def _random_frame(draw: random.Random, kinds: list[bytes]) -> bytes:
    """Return a frame of a random kind with some random bytes, and often of another length."""
    frame = bytearray(draw.choice(kinds))
    for _ in range(draw.randrange(1, 8)):
        frame[draw.randrange(len(frame))] = draw.randrange(256)
    if draw.random() < 0.3:
        del frame[draw.randrange(14, len(frame) + 1) :]
    return bytes(frame) + draw.randbytes(draw.choice([0, 0, 0, 0, draw.randrange(200)]))


def _spin() -> None:
    while True:
        pass


def _wake() -> None:
    while True:
        time.sleep(0.001)


def _in_processes(count: int, work: Callable[[], None]) -> None:
    for _ in range(count - 1):
        if os.fork() == 0:
            break
    work()


def _sleeping_threads() -> None:
    threading.stack_size(1 << 16)
    for _ in range(SLEEPERS):
        threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
    time.sleep(3600)


def _sockets(to: str, payload: bytes) -> None:
    """Send by many sockets whose buffers are larger than users may ask for."""
    outs = []
    for _ in range(SOCKETS):
        out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        out.setsockopt(socket.SOL_SOCKET, 32, SEND_BUFFER_BYTES)  # SO_SNDBUFFORCE, socket(7)
        out.setblocking(False)
        outs.append(out)
    while True:
        for out in outs:
            with suppress(OSError):  # its buffer is full
                out.sendto(payload, (to, 9))


LOADS: Mapping[str, Callable[[str], None]] = {
    "busy processes": lambda _to: _in_processes(SPINNING, _spin),
    "sleeping threads": lambda _to: _sleeping_threads(),
    "processes that wake 1,000 times a second": lambda _to: _in_processes(PROCESSES, _wake),
    "sockets with large buffers": lambda to: _sockets(to, bytes(1400)),
    "sockets with large buffers, empty datagrams": lambda to: _sockets(to, b""),
}
RANDOM = "random frames"


def kinds() -> list[str]:
    """Return the names of all kinds."""
    nobody = {"mac": "02:00:00:00:00:01", "ip": "10.0.0.1"}
    return [*frames({"own": nobody, "other": nobody}), RANDOM, *LOADS]


def main(kind: str, interface: str, addresses: Addresses) -> None:
    """Abuse until killed."""
    print("ready", flush=True)  # noqa: T201
    if kind in LOADS:
        LOADS[kind](addresses["other"]["ip"])
        return
    every = frames(addresses)
    draw = random.Random(1)  # noqa: S311 - repeatable, not secret
    chosen = [*every.values()]
    _flood(interface, lambda: every[kind] if kind != RANDOM else _random_frame(draw, chosen))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
