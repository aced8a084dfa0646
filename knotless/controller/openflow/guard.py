"""The guard of one connection to a switch: nothing passes that could harm the controller.

A guard is pure: it is given the bytes that were received and sent, and the time, and returns the
messages that may pass. What it refuses ends the connection, but for packets, echoes and reports of
removed rules beyond their rate, which are dropped and counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from knotless.base.token_bucket import TokenBucket
from knotless.controller.openflow import constants as ofp
from knotless.controller.openflow.checks import check, is_role_status
from knotless.controller.openflow.elements import WireError
from knotless.controller.openflow.records import HEADER
from knotless.controller.openflow.replies import has_more


@dataclass(frozen=True)
class Limits:
    """Limits for one switch."""

    handshake_s: float = 10.0
    """Time from the connection to the features reply."""
    reply_bytes: int = 2 << 20
    """Size of one multipart reply, all its parts together: about 15,000 rules of ours."""
    unasked_per_s: float = 1000.0
    """Packets and echo requests over a long time; the same for all else that nobody asked for."""
    unasked_burst: float = 2000.0
    """The same at once."""


@dataclass
class Guard:
    """The state of one connection; ``now_s`` is always the caller's monotonic clock."""

    limits: Limits
    connected_s: float
    dropped: int = 0
    """Packets, echoes and reports of removed rules beyond the rate."""
    _received: bytearray = field(default_factory=bytearray)
    _sending: bytearray = field(default_factory=bytearray)
    _greeted: bool = False
    _replies: dict[int, int] = field(default_factory=dict)
    """Transaction of each multipart request that is not yet answered -> bytes of its reply."""
    _sent: int = 0
    """Messages sent that the switch has not answered; it need not answer all."""
    _packets: TokenBucket = field(init=False)
    _notices: TokenBucket = field(init=False)
    """Of what may be dropped (:data:`_DROPPED`), and of all else that nobody asked for."""

    def __post_init__(self) -> None:
        rate, burst = self.limits.unasked_per_s, self.limits.unasked_burst
        self._packets, self._notices = TokenBucket(rate, burst), TokenBucket(rate, burst)

    def check_handshake(self, now_s: float) -> None:
        """Raise WireError for a switch that has not introduced itself in time."""
        if not self._greeted and now_s - self.connected_s > self.limits.handshake_s:
            raise WireError(f"no features reply within {self.limits.handshake_s:g} s")

    def sent(self, data: bytes) -> None:
        """Note what is sent to the switch: it may answer that, and nothing else."""
        self._sending += data
        while len(self._sending) >= HEADER.size:
            _, kind, length, transaction = HEADER.read(self._sending)
            if len(self._sending) < length:
                break
            if kind == ofp.OFPT_MULTIPART_REQUEST:
                self._replies.setdefault(transaction, 0)
            self._sent += 1
            del self._sending[: max(length, HEADER.size)]

    def received(self, data: bytes, now_s: float) -> list[bytes]:
        """Return the messages that are complete with ``data`` and may pass.

        Raises
        ------
        WireError
            The connection is to be closed: a message is malformed, was not asked for, or exceeds
            a limit.

        """
        self._received += data
        passed = list[bytes]()
        offset = 0
        while len(self._received) - offset >= HEADER.size:
            _, kind, length, transaction = HEADER.read(self._received, offset)
            if length < HEADER.size:
                raise WireError(f"message of type {kind} with length {length}")
            if len(self._received) - offset < length:
                break
            message = self._received[offset : offset + length]
            offset += length
            check(message)
            if self._may_pass(kind, transaction, message, now_s):
                passed.append(bytes(message))
        del self._received[:offset]
        self.check_handshake(now_s)
        return passed

    def _may_pass(self, kind: int, transaction: int, message: bytearray, now_s: float) -> bool:
        if kind == ofp.OFPT_MULTIPART_REPLY:
            self._count_reply(transaction, message)
        elif is_role_status(message):
            # A role request will be refused, which says the same; Ryu does not know this message.
            if not self._notices.take(now_s):
                raise WireError("role reports above the allowed rate")
            return False
        elif kind in _ANSWERS:
            if kind == ofp.OFPT_FEATURES_REPLY:
                self._greeted = True
            self._sent -= 1
            if self._sent < 0:
                raise WireError("more answers than messages that it was sent")
        elif kind in _DROPPED:
            if not self._packets.take(now_s):
                self.dropped += 1
                return False
        elif not self._notices.take(now_s):
            raise WireError(f"messages of type {kind} above the allowed rate")
        return True

    def _count_reply(self, transaction: int, message: bytearray) -> None:
        if transaction not in self._replies:
            raise WireError("multipart reply that nobody asked for")
        size = self._replies[transaction] + len(message)
        if size > self.limits.reply_bytes:
            raise WireError(f"multipart reply of more than {self.limits.reply_bytes} bytes")
        self._replies[transaction] = size
        if not has_more(message):
            del self._replies[transaction]


_ANSWERS = frozenset(
    {
        *(ofp.OFPT_ERROR, ofp.OFPT_EXPERIMENTER, ofp.OFPT_ECHO_REPLY, ofp.OFPT_FEATURES_REPLY),
        *(ofp.OFPT_GET_CONFIG_REPLY, ofp.OFPT_BARRIER_REPLY, ofp.OFPT_ROLE_REPLY),
    }
)
"""Messages that a switch sends at most once for each one that it gets."""
_DROPPED = frozenset({ofp.OFPT_PACKET_IN, ofp.OFPT_ECHO_REQUEST, ofp.OFPT_FLOW_REMOVED})
"""Messages beyond the rate of which nothing depends: whoever deletes rules of others can have a
switch report thousands at once."""
