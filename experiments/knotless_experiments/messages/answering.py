"""Hosts that answer before they take more, as end points say: part of the messenger.

Each host sends messages of one frame by an endpoint (docs/messages.md), unacknowledged, so that
nothing but flow control holds them back. What it has received and not taken stays in its receive
buffer, first come, first served; above XOFF bytes there it pauses its switch (IEEE 802.3x) until
XON. A message whose class requires another is taken when there is a reserve for it, or else when
what it requires has been handed to the network interface. Hosts answer before they send requests of
their own.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from knotless._core.endpoint import Endpoint
from knotless.emulation.namespaces import inside

PORT = 9
HEAD = struct.Struct("!4H")
PAYLOAD_BYTES = 1468
"""Data of a message that fills a frame: of 1,500 bytes, 32 are the header of the endpoint."""
FRAME_BYTES = 1518
RECEIVE_BUFFERS = 10_000
SOON_S, LONGEST_WAIT_S = 0.001, 0.01
"""How long to wait for frames if a host has something to send, and if none has."""


class MessageClass(NamedTuple):
    """The class that is sent before one is taken (or None), the reserve for it, and its bound."""

    sends: int | None
    reserve: int
    outstanding: int | None


class Message(NamedTuple):
    """A message of the class ``kind``, by which a host answers or begins a transaction.

    Hosts and classes are numbers. The transaction was begun by ``beginner``, at ``other``, with a
    message of the class ``begun``.
    """

    kind: int
    begun: int
    beginner: int
    other: int


class AnsweringHost:
    """One host, which sends by ``endpoint`` and pauses its switch by ``control``.

    Its limits, times and flows are those of the request; see :func:`answering`.
    """

    def __init__(
        self,
        number: int,
        ask: Mapping[str, Any],
        classes: Sequence[MessageClass],
        endpoint: Endpoint,
        control: socket.socket,
    ) -> None:
        self.number, self.classes = number, classes
        self.endpoint, self._control = endpoint, control
        about = ask["hosts"][number]
        self._addresses = [(host["mac"], PORT) for host in ask["hosts"]]
        self._pause, self._resume = (bytes.fromhex(about[key]) for key in ("pause", "resume"))
        self._xoff_bytes, self._xon_bytes = int(about["xoff_bytes"]), int(about["xon_bytes"])
        self._renew_s = float(about["renew_s"])
        self._renew_at: float | None = None
        self._requests = deque(
            Message(begun, begun, number, other)
            for beginner, other in ask["flows"]
            if beginner == number
            for begun in ask["begun"]
        )
        self._unanswered = Counter[tuple[int, int]]()
        self.buffer = deque[Message]()
        self._owed = deque[Message]()
        """Messages that were taken and whose answers are to be sent."""
        self._held = Counter[int]()
        self.peak_bytes = 0
        self.taken = Counter[tuple[int, int]]()
        """Messages that began a transaction, by beginner and this host."""

    def step(self, now: float) -> bool:
        """Receive, answer, take and send what can be; return whether more is to be sent."""
        while (message := self.endpoint.receive(0)) is not None:
            self.buffer.append(Message(*HEAD.unpack_from(message.data)))
        self._answer()
        while self.buffer and self._take(self.buffer[0]):
            self.taken[self.buffer[0].beginner, self.number] += self._is_request(self.buffer[0])
            self.buffer.popleft()
        self._answer()
        waits = bool(self._owed or self.buffer) or not self._request()
        self._control_flow(now)
        return waits

    def _is_request(self, message: Message) -> bool:
        return message.kind == message.begun

    def _take(self, message: Message) -> bool:
        one = self.classes[message.kind]
        if one.sends is None:
            self._end(message)
        elif self._held[message.kind] < one.reserve:
            self._held[message.kind] += 1
            self._owed.append(message)
        else:
            return not self._owed and self._send_for(message)
        return True

    def _answer(self) -> None:
        while self._owed and self._send_for(self._owed[0]):
            self._held[self._owed.popleft().kind] -= 1

    def _send_for(self, message: Message) -> bool:
        """Send what a message requires, if there is room."""
        sends = self.classes[message.kind].sends
        assert sends is not None  # noqa: S101 - asked only for those that require another
        return self._send(message._replace(kind=sends))

    def _send(self, message: Message) -> bool:
        to = message.other if message.beginner == self.number else message.beginner
        data = HEAD.pack(*message).ljust(PAYLOAD_BYTES, b"\0")
        try:
            self.endpoint.send(self._addresses[to], data, timeout_s=0)
        except TimeoutError:
            return False
        if self.classes[message.kind].sends is None:
            self._end(message)
        return True

    def _end(self, message: Message) -> None:
        """A transaction ends for its beginner when this takes or has sent the last message."""
        if message.beginner == self.number:
            self._unanswered[message.begun, message.other] -= 1

    def _request(self) -> bool:
        """Begin transactions in turn; return False if there was no room for one."""
        refused = 0
        while refused < len(self._requests):
            request = self._requests[0]
            key, bound = (request.begun, request.other), self.classes[request.begun].outstanding
            if bound is not None and self._unanswered[key] >= bound:
                refused += 1
            elif self._send(request):
                self._unanswered[key] += 1
                refused = 0
            else:
                return False
            self._requests.rotate(-1)
        return True

    def _control_flow(self, now: float) -> None:
        held = FRAME_BYTES * len(self.buffer)
        self.peak_bytes = max(self.peak_bytes, held)
        limit = self._xoff_bytes if self._renew_at is None else self._xon_bytes
        if held > limit:
            if self._renew_at is None or now >= self._renew_at:
                self._control.send(self._pause)
                self._renew_at = now + self._renew_s
        elif self._renew_at is not None:
            self._control.send(self._resume)
            self._renew_at = None


def answering(ask: Mapping[str, Any]) -> dict[str, Any]:
    """Let hosts send requests, and what these require, for ``seconds``.

    ``hosts`` have a ``namespace`` and ``interface``, a ``mac``, the frames ``pause`` and ``resume``
    in hexadecimal digits, ``renew_s``, after which a pause is repeated, and the limits of their
    receive buffer. ``classes`` are those of messages, ``begun`` the numbers of those that no other
    requires. Each of ``flows`` (beginner, other) always has a request to send, of each of these
    classes in turn. Answers with the requests ``taken`` of each flow, ``peaks`` of receive buffers
    in bytes, and what endpoints had no room for (``refused_frames``).
    """
    classes = [MessageClass(*one) for one in ask["classes"]]
    hosts = []
    poll = select.epoll()
    for number, about in enumerate(ask["hosts"]):
        name = about["interface"]
        with inside(about["namespace"]):
            endpoint = Endpoint(name, PORT, receive_buffers=RECEIVE_BUFFERS, send_descriptors=1)
            control = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        control.bind((name, 0))
        hosts.append(AnsweringHost(number, ask, classes, endpoint, control))
        poll.register(endpoint.fileno(), select.EPOLLIN)
    end = time.monotonic() + float(ask["seconds"])
    while (now := time.monotonic()) < end:
        waiting = [host.step(now) for host in hosts]
        poll.poll(SOON_S if any(waiting) else LONGEST_WAIT_S)
    poll.close()
    return {
        "taken": [hosts[other].taken[beginner, other] for beginner, other in ask["flows"]],
        "peaks": [host.peak_bytes for host in hosts],
        "refused_frames": sum(host.endpoint.counters()["refused_frames"] for host in hosts),
    }
