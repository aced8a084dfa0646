"""A lightweight sender and receiver of UDP datagrams for many hosts, one process each.

``python -m bench.support.traffic send|receive`` reads its flows as JSON from standard input and
runs until it is killed. One process opens sockets in the network namespaces of all hosts, because
64 iperf3 processes would take most of the CPU time of the machine that is measured. Twice a second
it prints its count: ``{"t": seconds, "datagrams": n}`` (CLOCK_MONOTONIC).
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time
from collections.abc import Sequence
from typing import Any

from knotless.emulation.namespaces import inside

PORT = 9000
PAYLOAD_BYTES = 1472
TICK_S = 0.001
REPORT_EVERY_S = 0.5
SEND_BUFFER_BYTES = 32 * 1024
RECEIVE_BUFFER_BYTES = 1 << 20
LONGEST_BURST_S = 0.02
"""A delayed paced sender sends at most this much of its backlog."""


class Reporter:
    """Prints counts periodically."""

    def __init__(self) -> None:
        self.datagrams = 0
        self._next = 0.0

    def report(self, now: float) -> None:
        """Print the count if it is time."""
        if now >= self._next:
            print(json.dumps({"t": now, "datagrams": self.datagrams}), flush=True)  # noqa: T201
            self._next = now + REPORT_EVERY_S


def send(flows: Sequence[dict[str, Any]]) -> None:
    """Send until killed: each flow at ``datagrams_per_s``, or as fast as its socket accepts."""
    sockets = []
    for flow in flows:
        with inside(flow["source_namespace"]):
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        sock.setblocking(False)
        sock.connect((flow["destination_ip"], PORT))
        sockets.append(sock)
    payload = bytes(PAYLOAD_BYTES)
    rates = [flow.get("datagrams_per_s") for flow in flows]
    start = time.monotonic()
    # Start times are spread over one interval, so that paced senders do not send in bursts.
    due = [start + (i / len(flows) / rate if rate else 0.0) for i, rate in enumerate(rates)]
    reporter = Reporter()
    while True:
        now = time.monotonic()
        for i, sock in enumerate(sockets):
            rate = rates[i]
            if rate:
                due[i] = max(due[i], now - LONGEST_BURST_S)
            try:
                while not rate or due[i] <= now:
                    sock.send(payload)
                    reporter.datagrams += 1
                    if rate:
                        due[i] += 1 / rate
            except OSError:
                continue  # would block, or no buffer space: the next tick tries again
        reporter.report(now)
        time.sleep(max(0.0, TICK_S - (time.monotonic() - now)))


def receive(flows: Sequence[dict[str, Any]]) -> None:
    """Receive and count until killed."""
    poll = select.epoll()
    sockets = {}
    for flow in flows:
        with inside(flow["destination_namespace"]):
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        sock.setblocking(False)
        sock.bind((flow["destination_ip"], PORT))
        poll.register(sock.fileno(), select.EPOLLIN)
        sockets[sock.fileno()] = sock
    buffer = bytearray(2048)
    reporter = Reporter()
    while True:
        for fd, _ in poll.poll(REPORT_EVERY_S / 2):
            try:
                while True:
                    sockets[fd].recv_into(buffer)
                    reporter.datagrams += 1
            except BlockingIOError:
                continue
        reporter.report(time.monotonic())
        time.sleep(TICK_S)  # so that one wake-up handles a batch of datagrams


if __name__ == "__main__":
    try:
        {"send": send, "receive": receive}[sys.argv[1]](json.load(sys.stdin))
    except KeyboardInterrupt:
        sys.exit(130)
