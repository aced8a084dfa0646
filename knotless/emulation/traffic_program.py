"""Program that sends UDP datagrams from hosts of a running fabric until it is ended.

``python -m knotless.emulation.traffic_program``; standard input has a JSON object with
``receivers`` (paths of network namespaces) and ``senders``, a list of ``{namespace, interval_s,
messages}``: one socket in that namespace sends a datagram every ``interval_s`` or, if that is 0,
whenever the host's network interface has room. Each of ``messages`` is ``[address, after_s,
datagrams]``: it begins so many seconds after the program, and has so many datagrams (null: without
end); those that have begun take turns. Prints ``ready`` when all sockets are open.

All sockets are in one process, which virtual time waits for as for the programs of each host.
"""

from __future__ import annotations

import json
import math
import resource
import select
import socket
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from knotless.base.nice import set_nice
from knotless.emulation import namespaces
from knotless.emulation.priority import NICE_TRAFFIC

DISCARD_PORT = 9
"""RFC 863. It is open at the receivers: they would answer datagrams to a closed port."""
DATAGRAM_BYTES = 1472
"""The largest in one Ethernet frame."""
SEND_BUFFER_BYTES = 1 << 16
"""Bytes of one host that wait for room in its interface; the kernel doubles it for its own data."""
MOST_AT_ONCE = 64
RETRY_S = 0.1
"""Time until a host sends again that cannot, as its link is cut."""


_DATAGRAM = bytes(DATAGRAM_BYTES)


@dataclass
class _Message:
    """The rest of a message: ``datagrams`` is None if it has no end."""

    address: str
    begins_s: float
    datagrams: int | None


class Sender:
    """The socket of one host. ``next_s`` is when it sends its next datagram; inf: never again."""

    def __init__(
        self,
        namespace: str,
        interval_s: float,
        messages: Sequence[tuple[str, float, int | None]],
    ) -> None:
        with namespaces.inside(namespace):
            self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        self._later = deque(_Message(*one) for one in sorted(messages, key=lambda one: one[1]))
        self._begun: deque[_Message] = deque()
        self._interval_s = interval_s
        self.next_s = 0.0

    def begin(self, now_s: float) -> None:
        """Count the times of its messages from now on."""
        for message in self._later:
            message.begins_s += now_s
        self.next_s = now_s

    def send(self) -> bool:
        """Send what is due; return False if the interface has no room."""
        now_s = time.monotonic()
        # What was due while there was no room is not caught up.
        self.next_s = max(self.next_s, now_s - MOST_AT_ONCE * self._interval_s)
        for _ in range(MOST_AT_ONCE):
            while self._later and self._later[0].begins_s <= now_s:
                self._begun.append(self._later.popleft())
            if not self._begun:
                self.next_s = self._later[0].begins_s if self._later else math.inf
            if self.next_s > now_s:
                return True
            message = self._begun[0]
            try:
                self.socket.sendto(_DATAGRAM, (message.address, DISCARD_PORT))
            except BlockingIOError:
                return False
            except OSError:
                self.next_s = now_s + RETRY_S
                return True
            self.next_s += self._interval_s
            self._begun.popleft()
            if message.datagrams is not None:
                message.datagrams -= 1
            if message.datagrams != 0:
                self._begun.append(message)
        return True


def send_for_ever(senders: Sequence[Sender]) -> None:
    """Send from all hosts."""
    by_number = {sender.socket.fileno(): sender for sender in senders}
    ready = set(by_number.values())
    poll = select.epoll()
    for sender in senders:
        sender.begin(time.monotonic())
    while True:
        for sender in list(ready):
            if sender.next_s <= time.monotonic() and not sender.send():
                ready.discard(sender)
                poll.register(sender.socket.fileno(), select.EPOLLOUT)
        wait_s = min((sender.next_s for sender in ready), default=math.inf)
        timeout_s = None if wait_s == math.inf else max(0.0, wait_s - time.monotonic())
        for number, _ in poll.poll(timeout_s):
            poll.unregister(number)
            ready.add(by_number[number])


def receiver(namespace: str) -> socket.socket:
    """Return a socket that discards what comes: it is never read."""
    with namespaces.inside(namespace):
        udp_socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp_socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 0)
    udp_socket.bind(("", DISCARD_PORT))
    return udp_socket


def main() -> None:
    """Send until a signal ends the process."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    wanted: Mapping[str, Any] = json.load(sys.stdin)
    with ExitStack() as opened:
        for namespace in wanted["receivers"]:
            opened.enter_context(receiver(namespace))
        senders = [Sender(**fields) for fields in wanted["senders"]]
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        # It is not measured itself. Virtual time may wait for it, so it must not starve either.
        set_nice(0, NICE_TRAFFIC)
        send_for_ever(senders)


if __name__ == "__main__":
    main()
