"""All-to-all datagrams between the hosts of a fabric, every one with its number and its times.

``python -m bench.support.all_to_all send|receive`` reads from standard input, as JSON, the
``hosts`` (``namespace`` and ``ip`` each), the ``frames_per_s`` of each host and the path of a
``log``. Host i sends to hosts i + 1, i + 2 .. in turn until the process is killed. The receiver
writes a record of :data:`RECORD` for each datagram. One process serves all hosts; see
:mod:`bench.support.traffic`.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from knotless.emulation.namespaces import inside

PORT = 9001
TICK_S = 0.001
LONGEST_BURST_S = 0.02
"""A delayed sender sends at most this much of its backlog."""
PACKET = struct.Struct("!HHId")
"""Source, destination, number of the datagram between these two, time (Unix, seconds)."""
RECORD = np.dtype([("source", "u2"), ("to", "u2"), ("number", "u4"), ("sent", "f8"), ("at", "f8")])
_LOGGED = struct.Struct("=HHIdd")


def _sockets(hosts: list[dict[str, str]]) -> list[socket.socket]:
    sockets = []
    for host in hosts:
        with inside(host["namespace"]):
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setblocking(False)
        sockets.append(sock)
    return sockets


def send(hosts: list[dict[str, str]], frames_per_s: float) -> None:
    """Send until killed."""
    sockets, count = _sockets(hosts), len(hosts)
    numbers = [[0] * count for _ in hosts]
    turns = [0] * count
    start = time.time()
    due = [start + i / count / frames_per_s for i in range(count)]
    print("ready", flush=True)  # noqa: T201
    while True:
        now = time.time()
        for i, sock in enumerate(sockets):
            due[i] = max(due[i], now - LONGEST_BURST_S)
            while due[i] <= now:
                to = (i + 1 + turns[i] % (count - 1)) % count
                packet = PACKET.pack(i, to, numbers[i][to], time.time())
                try:
                    sock.sendto(packet, (hosts[to]["ip"], PORT))
                except OSError:
                    break  # the queue of the host is full: try again at the next tick
                turns[i] += 1
                numbers[i][to] += 1
                due[i] += 1 / frames_per_s
        time.sleep(max(0.0, TICK_S - (time.time() - now)))


def receive(hosts: list[dict[str, str]], log: str) -> None:
    """Receive until killed."""
    poll = select.epoll()
    sockets = {sock.fileno(): sock for sock in _sockets(hosts)}
    for number, sock in sockets.items():
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        sock.bind(("", PORT))
        poll.register(number, select.EPOLLIN)
    with Path(log).open("wb", buffering=1 << 16) as out:
        print("ready", flush=True)  # noqa: T201
        while True:
            for number, _ in poll.poll(0.1):
                with suppress(BlockingIOError):
                    while True:
                        packet = sockets[number].recv(64)
                        out.write(_LOGGED.pack(*PACKET.unpack(packet), time.time()))
            out.flush()
            time.sleep(TICK_S)  # so that one wake-up handles a batch of datagrams


def main(task: dict[str, Any]) -> None:
    """Do what the command line says."""
    if sys.argv[1] == "send":
        send(task["hosts"], task["frames_per_s"])
    else:
        receive(task["hosts"], task["log"])


if __name__ == "__main__":
    try:
        main(json.load(sys.stdin))
    except KeyboardInterrupt:
        sys.exit(130)
