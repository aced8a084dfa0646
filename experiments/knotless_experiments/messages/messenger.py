"""One process that sends and receives UDP messages as all hosts of a running fabric.

``python -m knotless_experiments.messages.messenger`` reads requests as lines of JSON on standard
input and answers each with a line; the first line gives the hosts. It opens a socket in each host's
network namespace and is a single process, because two per host would overload the machine that is
measured. :mod:`knotless_experiments.messages.exchange` is its client.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from knotless.emulation.namespaces import inside
from knotless.emulation.priority import prioritise_program
from knotless_experiments.messages.answering import answering

PORT = 9100
HEAD = struct.Struct("!BIQ")
"""Kind, flow (or phase), sequence number."""
DATA, ACK = 0, 1
DATAGRAM_BYTES = 1472
"""The payload of a full frame; a longer message is several datagrams."""
SEND_BUFFER_BYTES = 32 * 1024
RECEIVE_BUFFER_BYTES = 1 << 20
LONGEST_WAIT_S = 0.25


class HostSockets:
    """The hosts' sockets, by the number of the host in the order given."""

    def __init__(self, hosts: Sequence[Mapping[str, str]]) -> None:
        self.poll = select.epoll()
        self.sockets: list[socket.socket] = []
        self.addresses = [(host["ip"], PORT) for host in hosts]
        self.by_fd: dict[int, int] = {}
        for number, host in enumerate(hosts):
            with inside(host["namespace"]):
                sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
            sock.setblocking(False)
            sock.bind(self.addresses[number])
            self.poll.register(sock.fileno(), select.EPOLLIN)
            self.sockets.append(sock)
            self.by_fd[sock.fileno()] = number

    def send(self, source: int, target: int, data: bytes) -> bool:
        """Send; return False if the socket's buffer is full because the network blocks it."""
        try:
            self.sockets[source].sendto(data, self.addresses[target])
        except (BlockingIOError, InterruptedError):
            return False
        return True

    def watch_room(self, host: int, wanted: bool) -> None:
        """Enable or disable waking up when the host's socket has room."""
        room = select.EPOLLOUT if wanted else 0
        self.poll.modify(self.sockets[host].fileno(), select.EPOLLIN | room)

    def arrived(self, until: float) -> Iterator[tuple[int, bytes | None]]:
        """Wait until ``until`` at most; yield (host, message), or (host, None) if there is room."""
        wait_s = min(LONGEST_WAIT_S, max(0.0, until - time.monotonic()))
        for fd, what in self.poll.poll(wait_s):
            host = self.by_fd[fd]
            if what & select.EPOLLOUT:
                yield host, None
            try:
                while what & select.EPOLLIN:
                    yield host, self.sockets[host].recv(65535)
            except BlockingIOError:
                continue

    def drain(self) -> None:
        """Discard all messages that have arrived."""
        for sock in self.sockets:
            try:
                while True:
                    sock.recv(65535)
            except BlockingIOError:
                continue


def pieces(message_bytes: int) -> list[int]:
    """Return the payload sizes of a message's datagrams; the last one has the remainder."""
    whole, rest = divmod(message_bytes, DATAGRAM_BYTES)
    sizes = [DATAGRAM_BYTES] * whole + ([rest] if rest else [])
    if sizes and sizes[-1] < HEAD.size:
        raise ValueError(f"a message's last datagram needs {HEAD.size} bytes, not {sizes[-1]}")
    return sizes


def acknowledged(sockets: HostSockets, ask: Mapping[str, Any]) -> dict[str, Any]:
    """Let every flow send a message, wait for its acknowledgement, send the next.

    ``flows`` are (source, target), ``bytes`` what a message has, ``seconds`` how long, after
    ``warm_up_s``. Answers with the times of each flow's messages, in microseconds, of those that
    began after the warm-up and were acknowledged in time.
    """
    flows = [(int(a), int(b)) for a, b in ask["flows"]]
    run = int(ask["run"]) << 32
    padding = [bytes(size - HEAD.size) for size in pieces(int(ask["bytes"]))]
    begin = time.monotonic() + float(ask["warm_up_s"])
    end = begin + float(ask["seconds"])
    times: list[list[float]] = [[] for _ in flows]
    sequence, sent_at, came = [run] * len(flows), [0.0] * len(flows), [0] * len(flows)

    def start(flow: int) -> None:
        source, target = flows[flow]
        sequence[flow] += 1
        sent_at[flow], came[flow] = time.monotonic(), 0
        for rest in padding:
            if not sockets.send(source, target, HEAD.pack(DATA, flow, sequence[flow]) + rest):
                raise OSError("a message alone in its socket is not taken")

    sockets.drain()
    for flow in range(len(flows)):
        start(flow)
    while time.monotonic() < end:
        for host, data in sockets.arrived(end):
            if data is None or len(data) < HEAD.size:
                continue
            kind, flow, number = HEAD.unpack_from(data)
            if flow >= len(flows) or number != sequence[flow]:
                continue  # it is from an earlier run
            if kind == DATA:
                came[flow] += 1
                if came[flow] == len(padding):
                    sockets.send(host, flows[flow][0], HEAD.pack(ACK, flow, number))
            else:
                now = time.monotonic()
                if sent_at[flow] >= begin:
                    times[flow].append(round((now - sent_at[flow]) * 1e6, 1))
                start(flow)
    return {"times_us": times}


def phases(sockets: HostSockets, ask: Mapping[str, Any]) -> dict[str, Any]:
    """Run phases of messages between hosts; each starts when the previous one has arrived.

    ``phases`` gives, for each phase, (source, target) pairs; each sends ``datagrams`` of
    ``bytes``. Waiting for the end of a phase costs no message here. Answers with the seconds of
    each phase; fewer if ``limit_s`` was exceeded.
    """
    count, padding = int(ask["datagrams"]), bytes(int(ask["bytes"]) - HEAD.size)
    run, limit = int(ask["run"]) << 32, time.monotonic() + float(ask["limit_s"])
    seconds: list[float] = []
    sockets.drain()
    for number, pairs in enumerate(ask["phases"]):
        target = {int(a): int(b) for a, b in pairs}
        left = dict.fromkeys(target, count)
        missing = count * len(target)
        data = HEAD.pack(DATA, number, run) + padding
        begun = time.monotonic()
        sending = set(target)
        for host in sending:
            sockets.watch_room(host, True)
        while missing and time.monotonic() < limit:
            for host, got in sockets.arrived(limit):
                if got is not None:
                    missing -= len(got) >= HEAD.size and got[: HEAD.size] == data[: HEAD.size]
                elif host in sending:
                    while left[host] and sockets.send(host, target[host], data):
                        left[host] -= 1
                    if not left[host]:
                        sending.discard(host)
                        sockets.watch_room(host, False)
        for host in sending:
            sockets.watch_room(host, False)
        if missing:
            break
        seconds.append(time.monotonic() - begun)
    return {"seconds": seconds}


def main() -> None:
    """Answer requests until standard input ends."""
    prioritise_program()
    sockets = HostSockets(json.loads(sys.stdin.readline()))
    print(json.dumps({"ready": True}), flush=True)  # noqa: T201 - answers go to standard output
    for line in sys.stdin:
        ask = json.loads(line)
        begun, used = time.monotonic(), time.process_time()
        if ask["do"] == "answering":
            answer = answering(ask)
        else:
            answer = {"acknowledged": acknowledged, "phases": phases}[ask["do"]](sockets, ask)
        answer |= {"seconds_in_all": time.monotonic() - begun, "cpu_s": time.process_time() - used}
        print(json.dumps(answer), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
