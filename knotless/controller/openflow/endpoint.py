"""Our end of a connection to a switch: greeting, version, keep-alive, and what waits to be sent.

References
----------
ONF TS-012, OpenFlow Switch Specification 1.3.4, sections 6.3.1 (connection setup) and 6.3.3
(connection interruption); 7.3.1 and 7.5.

"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from knotless.controller import runtime
from knotless.controller.openflow import constants as ofp
from knotless.controller.openflow.connection import Connection, ConnectionEvents
from knotless.controller.openflow.elements import WireError
from knotless.controller.openflow.messages import (
    ECHO_REQUEST,
    FEATURES_REQUEST,
    HELLO,
    PORT_DESC_REQUEST,
    Request,
    incompatible,
)
from knotless.controller.openflow.records import BODY, HEADER
from knotless.controller.openflow.replies import offers
from knotless.controller.openflow.stream import GuardedStream

ECHO_INTERVAL_S = 5.0
MAX_UNANSWERED = 3
"""Echo requests without an answer; instead of one more, the connection ends."""
_LAST_TRANSACTION = 0xFFFFFFFF


class Endpoint(Connection):
    """A connection that is served here; see :class:`Connection`.

    Parameters
    ----------
    stream : the messages of the switch, which has said something.
    events : returns whoever takes what happens now.

    """

    def __init__(self, stream: GuardedStream, events: Callable[[], ConnectionEvents]) -> None:
        super().__init__(stream, events)
        self._transaction = 0
        self._waiting: deque[bytes] = deque()
        self._has_room = runtime.Event()
        self._is_writing = self._is_greeted = False
        self._unanswered = 0
        self._next_echo_s = runtime.now_s() + ECHO_INTERVAL_S

    def serve(self, greeting: list[bytes]) -> None:
        """Serve the switch, which has sent these messages, until the connection ends."""
        messages: list[bytes] | None = greeting
        try:
            self.stream.sendall(HELLO.encode(self.next_transaction()))
            while messages is not None and self.is_open:
                for message in messages:
                    self._answer(message)
                    self.take(message)
                self._keep_alive()
                messages = self.stream.receive()
        except WireError as reason:
            self.stream.refuse(str(reason))
        except OSError:
            pass  # it has ended before the greeting was sent
        finally:
            self.close()
            self._ended()

    # --- see Connection ----------------------------------------------------------------------

    def send(self, data: bytes) -> bool:
        """See :class:`Connection`."""
        while self.is_open and self.is_full:
            self._has_room.clear()
            self._has_room.wait()
        if self.is_open:
            self._waiting.append(data)
            if not self._is_writing:
                self._is_writing = True
                runtime.spawn(self._write)
        return self.is_open

    @property
    def waiting(self) -> int:
        """See :class:`Connection`."""
        return len(self._waiting)

    def next_transaction(self) -> int:
        """See :class:`Connection`; 0 is that of messages that nobody answers."""
        self._transaction = self._transaction % _LAST_TRANSACTION + 1
        return self._transaction

    def close(self) -> None:
        """See :class:`Connection`."""
        if self.is_open:
            self.is_open = False
            self._has_room.set()
            self.stream.shut_down()

    # --- inside ------------------------------------------------------------------------------

    def _send(self, request: Request) -> None:
        self.send(request.encode(self.next_transaction()))

    def _write(self) -> None:
        """Write all that waits, in as few writes as possible."""
        try:
            while self._waiting and self.is_open:
                count = len(self._waiting)
                self.stream.sendall(b"".join(self._waiting))
                for _ in range(count):
                    self._waiting.popleft()
                self._has_room.set()
        except (OSError, ValueError):  # that of a socket in TLS that was shut down
            self.close()
        finally:
            self._is_writing = False

    def _answer(self, message: bytes) -> None:
        """Do what the protocol demands; raises WireError if the connection is to end."""
        _, kind, _, transaction = HEADER.read(message)
        if kind != ofp.OFPT_HELLO and not self._is_greeted:
            raise WireError(f"message of type {kind} before a hello")
        match kind:
            case ofp.OFPT_HELLO if not self._is_greeted:
                self._greeted_by(message)
            case ofp.OFPT_FEATURES_REPLY if not self._is_introduced:
                self._send(PORT_DESC_REQUEST)
            case ofp.OFPT_ECHO_REQUEST:
                self.send(Request(ofp.OFPT_ECHO_REPLY, message[BODY:]).encode(transaction))
            case ofp.OFPT_ECHO_REPLY:
                self._unanswered = 0

    def _greeted_by(self, hello: bytes) -> None:
        if not offers(hello, ofp.OFP_VERSION):
            text = "only OpenFlow 1.3 (version 4) is spoken here"
            self.stream.sendall(incompatible(text).encode(HEADER.read(hello).xid))
            raise WireError(f"its hello, of version {hello[0]}, does not offer OpenFlow 1.3")
        self._is_greeted = True
        self._send(FEATURES_REQUEST)

    def _keep_alive(self) -> None:
        """Ask a switch from time to time whether it lives; raises WireError if it does not."""
        now_s = runtime.now_s()
        if now_s < self._next_echo_s:
            return
        if self._unanswered >= MAX_UNANSWERED:
            raise WireError(f"no answer to {MAX_UNANSWERED} echo requests")
        self._unanswered += 1
        self._next_echo_s = now_s + ECHO_INTERVAL_S
        self._send(ECHO_REQUEST)
