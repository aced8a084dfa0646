"""Connected switches: reading their entries, changing them, and collecting their errors.

A session's methods block until the switch replies, each in the green thread of that switch. Its
connection passes received messages to :meth:`Session.deliver`.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from knotless.controller import runtime
from knotless.controller.observed import (
    AdmissionCounters,
    Counters,
    Observed,
    ObservedSwitch,
    Port,
)
from knotless.controller.openflow import constants as ofp
from knotless.controller.openflow.connection import Connection
from knotless.controller.openflow.messages import (
    BARRIER_REQUEST,
    ECHO_REQUEST,
    GROUP_DESC_REQUEST,
    PORT_STATS_REQUEST,
    Request,
    bundle,
    encode,
    flow_request,
)
from knotless.controller.openflow.records import AGGREGATE_STATS, ENTRIES, HEADER, RoleReply
from knotless.controller.openflow.replies import (
    Refusal,
    entries,
    has_more,
    packet_count,
    port_stats,
    read_group,
    read_rule,
)
from knotless.controller.reconcile import PROBE_COOKIE, Change, FoundGroup, FoundRule
from knotless.forwarding.openflow.rules import ADMISSION, COOKIE, Rule, SwitchRules

REPLY_TIMEOUT_S = 30.0
"""Time for a switch to reply. Installing thousands of rules takes seconds, and the barrier reply
comes after them."""
COUNTERS_TIMEOUT_S = 2.0
_ALIVE_S = 2.0
MAX_FOREIGN = 1000
"""Rules of others that are read from a switch; if there are more, they are only counted."""
_OWN = (COOKIE, PROBE_COOKIE)
_AT_ONCE = 500
"""Rules that are read before others are served."""
_WRITE_BYTES = 1 << 16
_NO_BUNDLES = {
    (ofp.OFPET_BAD_REQUEST, code)
    for code in (ofp.OFPBRC_BAD_TYPE, ofp.OFPBRC_BAD_EXPERIMENTER, ofp.OFPBRC_BAD_EXP_TYPE)
}
"""How a switch answers experimenter messages that it does not know."""
_LOG = logging.getLogger("knotless.switches")


class SwitchGoneError(Exception):
    """The connection ended, or the switch stopped answering."""


class SwitchContents(NamedTuple):
    """The rules and groups that a switch holds.

    ``unread`` are rules of others that were not read, because there are too many of them, and
    ``counters`` what rules have counted of frames that enter the fabric.
    """

    rules: list[FoundRule]
    groups: list[FoundGroup]
    unread: int = 0
    counters: AdmissionCounters = AdmissionCounters(0, {}, {})


class Session:
    """A connection to a switch, and what is known of the switch while it lasts.

    A switch may start again without rules before the end of its connection is seen, so whatever it
    was last seen to hold is kept here, and nowhere by dpid or name.

    Attributes
    ----------
    connection : how it is reached.
    lock : held by the thread that changes the switch's rules.
    held : the rules that the switch has confirmed; None: they are not known.
    contents : what was read for a takeover, until it is compared.
    probe_rules : the rules of probes that the switch holds; None: they are not known.
    awaited : for which purposes the prober has asked for counters, and has no answer yet.
    since_s : when the connection was made.
    first_probe : the number of the first probe that it was given; None: there is none yet.
    is_being_read : whether it is being read again, to see whether it holds what it should.

    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.lock = runtime.Lock()
        self.held: SwitchRules | None = None
        self.contents: SwitchContents | None = None
        self.probe_rules: frozenset[Rule] | None = None
        self.since_s = runtime.now_s()
        self.first_probe: int | None = None
        self.awaited = set[str]()
        self.is_being_read = False
        self._awaited: dict[int, tuple[Request, runtime.Queue]] = {}
        self._sent: dict[int, Change] = {}
        self._refused: list[tuple[Change | None, str]] = []
        self._gone = False
        self._bundles = 0
        self._lacks_bundles = False

    # --- called by the event handlers --------------------------------------------------------

    def deliver(self, message: bytes) -> bool:
        """Pass a reply to the caller that waits for it; return whether any does."""
        awaited = self._awaited.get(HEADER.read(message).xid)
        if awaited is None or not awaited[0].is_answered_by(message):
            return False
        awaited[1].put(message)
        return True

    def refuse(self, refusal: Refusal) -> None:
        """Record an error message, with the change that caused it."""
        if refusal.request == ofp.OFPT_PACKET_OUT:
            return  # a probe is sent again
        error = (refusal.kind, refusal.code)
        if refusal.request == ofp.OFPT_EXPERIMENTER and error in _NO_BUNDLES:
            self._lacks_bundles = True
        self._refused.append((self._sent.get(refusal.xid), refusal.reason))
        if refusal.xid in self._awaited:
            self._awaited[refusal.xid][1].put(None)

    def end(self) -> None:
        """Report the end of the connection to all waiting callers."""
        self._gone = True
        for _, queue in self._awaited.values():
            queue.put(None)

    # --- called in the switch's own green thread ---------------------------------------------

    def rules(self) -> list[FoundRule]:
        """Return every rule that the switch holds, of all tables."""
        return [read_rule(entry) for entry in self._entries()]

    def read(self) -> SwitchContents:
        """Return what the switch holds.

        A switch may hold any number of rules of others. They are counted first: to read too many
        would keep other switches waiting.
        """
        count, unread = self._count(), 0
        held: list[bytes] | None = None
        if count > MAX_FOREIGN:
            held = [entry for own in _OWN for entry in self._entries(own)]
            unread = max(0, count - len(held))
        if held is None or 0 < unread <= MAX_FOREIGN:
            held, unread = list(self._entries()) if count else [], 0
        rules = list[FoundRule]()
        for entry in held:
            rules.append(read_rule(entry))
            if len(rules) % _AT_ONCE == 0:
                runtime.sleep(0)
        counted = [
            (rule.match, packet_count(entry))
            for rule, entry in zip(rules, held, strict=True)
            if rule.table == ADMISSION and rule.is_ours
        ]
        return SwitchContents(rules, self.groups(), unread, AdmissionCounters.counted(counted))

    def _count(self) -> int:
        reply = self._reply_to(flow_request(ofp.OFPMP_AGGREGATE), REPLY_TIMEOUT_S)
        return AGGREGATE_STATS.read(reply, ENTRIES).flow_count

    def _entries(self, cookie: int | None = None) -> Iterator[bytes]:
        """Yield the entries of all rules, or of those with a cookie."""
        for reply in self._replies_to(flow_request(ofp.OFPMP_FLOW, cookie), REPLY_TIMEOUT_S):
            yield from entries(reply)

    def groups(self) -> list[FoundGroup]:
        """Return every group that the switch holds."""
        replies = self._replies_to(GROUP_DESC_REQUEST, REPLY_TIMEOUT_S)
        return [read_group(entry) for reply in replies for entry in entries(reply)]

    def change(self, changes: tuple[Change, ...]) -> list[tuple[Change | None, str]]:
        """Apply ``changes`` and wait for the barrier; return those that the switch refused.

        Each is returned with OpenFlow's name of the reason.
        """
        self._refused.clear()
        buffer = bytearray()
        for message in self._messages(changes):
            # Many messages per write: a write for each would take longer than OVS needs.
            buffer += message
            if len(buffer) >= _WRITE_BYTES:
                self._send(buffer)
                buffer = bytearray()
        self._send(buffer)
        self.barrier()
        self._sent.clear()
        return list(self._refused)

    def change_at_once(
        self, steps: Sequence[tuple[Change, ...]]
    ) -> list[tuple[Change | None, str]]:
        """Apply all steps in one bundle and wait for the barrier; see :meth:`change`.

        If the switch refuses any change, it has made none. A switch that does not take bundles gets
        one step after the other.
        """
        self._refused.clear()
        parts = list(self._messages(change for step in steps for change in step))
        if parts and not self._lacks_bundles:
            self._bundles += 1
            ids = [self.connection.next_transaction() for _ in range(2)]
            data = bundle(self._bundles, parts, ids)
            for start in range(0, len(data), _WRITE_BYTES):
                self._send(data[start : start + _WRITE_BYTES])
            self.barrier()
            if self._lacks_bundles:
                _LOG.warning("dpid %s takes no bundles: it changes in steps", self.connection.dpid)
        self._sent.clear()
        if self._lacks_bundles:
            return [refused for step in steps for refused in self.change(step)]
        # The error of the bundle itself says no more than that of a change in it.
        return [each for each in self._refused if each[0] is not None] or list(self._refused)

    def _messages(self, changes: Iterable[Change]) -> Iterator[bytes]:
        """Yield the messages of changes; errors about them are known by their transactions."""
        for change in changes:
            transaction = self.connection.next_transaction()
            self._sent[transaction] = change
            yield encode(change, transaction)

    def send_probe(self, message: bytes) -> bool:
        """Send a probe, unless so much waits to be sent that it would be late; never block."""
        return not self.connection.is_full and self.connection.send(message)

    def port_counters(self) -> dict[int, tuple[int, int]]:
        """Return the frames received and sent by each port."""
        replies = self._replies_to(PORT_STATS_REQUEST, COUNTERS_TIMEOUT_S)
        return {
            port.port_no: (port.rx_packets, port.tx_packets)
            for reply in replies
            for port in port_stats(reply)
        }

    def send(self, request: Request) -> None:
        """Send one message; raises SwitchGoneError if the connection is over."""
        self._send(request.encode(self.connection.next_transaction()))

    def barrier(self, timeout_s: float = REPLY_TIMEOUT_S) -> None:
        """Wait until the switch has processed all messages; raises SwitchGoneError."""
        self._reply_to(BARRIER_REQUEST, timeout_s)

    def echo(self, timeout_s: float) -> None:
        """Wait for the answer to an echo request; raises SwitchGoneError."""
        self._reply_to(ECHO_REQUEST, timeout_s)

    @property
    def dropped(self) -> int:
        """The messages of the switch that the guard of the connection has dropped so far."""
        return self.connection.dropped

    def answers(self, timeout_s: float) -> bool:
        """Tell whether the switch still answers."""
        try:
            self.barrier(timeout_s)
        except SwitchGoneError:
            return False
        return True

    def _reply_to(self, request: Request, timeout_s: float) -> bytes:
        """Return the reply, or its first part; raises SwitchGoneError if there is none."""
        for reply in self._replies_to(request, timeout_s):
            return reply
        raise AssertionError("a request without replies raises SwitchGoneError")

    def _replies_to(self, request: Request, timeout_s: float) -> Iterator[bytes]:
        """Yield all parts of the reply; raises SwitchGoneError if the next one does not come."""
        if self._gone:
            raise SwitchGoneError("the connection is over")
        transaction, queue = self.connection.next_transaction(), runtime.Queue()
        self._awaited[transaction] = (request, queue)
        try:
            if not self.connection.send(request.encode(transaction)):
                raise SwitchGoneError("the connection is over")
            is_last = False
            while not is_last:
                reply = queue.get(timeout_s)
                if reply is None:
                    raise SwitchGoneError("the connection is over")
                is_last = reply[1] != ofp.OFPT_MULTIPART_REPLY or not has_more(reply)
                yield reply
        except runtime.TimeLimitError:
            raise SwitchGoneError(f"no answer within {timeout_s:g} s") from None
        finally:
            del self._awaited[transaction]

    def _send(self, data: bytes | bytearray) -> None:
        if data and not self.connection.send(bytes(data)):
            raise SwitchGoneError("the connection is over")
        # Yield to the other switches, and to this one's echo requests.
        runtime.sleep(0)


class SwitchEvents(ABC):
    """Takes the events of switches of a fabric, or of one that is being learned; returns at once.

    ``make_session`` makes the session of a connection, ``threads`` are those of the controller.
    ``sessions`` are those of all connected switches, by dpid.
    """

    def __init__(
        self, make_session: Callable[[Connection], Session], threads: runtime.Threads
    ) -> None:
        self._make_session, self._threads = make_session, threads
        self.sessions: dict[int, Session] = {}

    # --- see connection.ConnectionEvents -----------------------------------------------------

    def connected(self, connection: Connection) -> None:
        """Serve a switch that has reported its ports."""
        self._threads.spawn(self._take_place, self._make_session(connection))

    @abstractmethod
    def disconnected(self, connection: Connection) -> None:
        """Forget a connection; the switch keeps its rules."""

    @abstractmethod
    def ports_changed(self, connection: Connection) -> None:
        """Record the ports of a switch as they are now."""

    @abstractmethod
    def packet_in(self, dpid: int, message: bytes) -> None:
        """Take a packet-in of a rule of probes."""

    @abstractmethod
    def rules_removed(self, connection: Connection) -> None:
        """Take the report of a switch that a rule was removed."""

    @abstractmethod
    def role_answered(self, connection: Connection, role: RoleReply) -> None:
        """Take the answer to a role request."""

    def deliver(self, connection: Connection, message: bytes) -> bool:
        """Pass a reply to the session that waits for it; return whether it does."""
        session = self.current(connection)
        return session is not None and session.deliver(message)

    def refuse(self, connection: Connection, refusal: Refusal) -> None:
        """Pass an error message to the session that caused it."""
        if session := self.current(connection):
            session.refuse(refusal)

    def close(self) -> None:
        """End all that goes on; the switches keep their rules."""
        self._threads.close()

    def current(self, connection: Connection) -> Session | None:
        """Return the session of a switch, if it is on this connection."""
        session = self.sessions.get(connection.dpid)
        return session if session is not None and session.connection is connection else None

    def _take_place(self, session: Session) -> None:
        """Serve a switch, unless an older connection with its dpid stays.

        That makes way if it does not answer: the switch has lost it unnoticed. Else two switches
        have this dpid.
        """
        connection = session.connection
        while (older := self.sessions.get(connection.dpid)) is not None:
            if older.answers(_ALIVE_S):
                if not connection.is_open:
                    return  # meanwhile the switch has connected once more
                if not self._supersedes(session, older):
                    connection.close()
                    return
            self.disconnected(older.connection)
            older.connection.close()
        if connection.is_open:
            self.sessions[connection.dpid] = session
            self._serve(session)

    @abstractmethod
    def _supersedes(self, new: Session, older: Session) -> bool:
        """Return whether a second switch with a dpid takes the place of the first."""

    @abstractmethod
    def _serve(self, session: Session) -> None:
        """Serve a switch as long as it takes what it is given."""


class Connections:
    """The sessions of all connected switches, by dpid, and by name for those of the fabric.

    ``sessions`` also has switches that are not in the fabric. ``counters_restarted`` is called with
    the name of a switch, and those of its ports that count from zero again.
    """

    def __init__(
        self,
        sessions: Mapping[int, Session],
        observed: Observed,
        counters_restarted: Callable[[str, frozenset[int]], None],
    ) -> None:
        self.sessions, self._observed = sessions, observed
        self._counters_restarted = counters_restarted

    def session_of(self, name: str) -> Session | None:
        """Return the session of a switch of the fabric, if it is connected."""
        switch = self._observed.by_name.get(name)
        return None if switch is None else self.sessions.get(switch.dpid)

    def by_name(self) -> Mapping[str, Session]:
        """Return the sessions of switches of the fabric, by name."""
        switches = self._observed.switches
        return {
            switches[dpid].name: session
            for dpid, session in self.sessions.items()
            if dpid in switches
        }

    def undeclared(self) -> dict[int, Session]:
        """Return the sessions of switches that are not in the fabric, by dpid."""
        unknown = self._observed.unknown
        return {dpid: session for dpid, session in self.sessions.items() if dpid in unknown}

    def port_counters(self) -> Counters:
        """Return the frames received and sent by each port of the switches of the fabric."""
        counters: dict[Port, tuple[int, int]] = {}
        for name, session in self.by_name().items():
            with suppress(SwitchGoneError):
                by_port = self.counters_of(session, self._observed.by_name[name])
                counters.update({(name, port): counted for port, counted in by_port.items()})
        return counters

    def counters_of(
        self, session: Session, switch: ObservedSwitch
    ) -> Mapping[int, tuple[int, int]]:
        """Return the frames received and sent by each port of a switch; raises SwitchGoneError.

        Ports that count from zero again are reported.
        """
        asked_after = switch.received
        counters = session.port_counters()
        received = {port: frames for port, (frames, _) in counters.items()}
        if ports := switch.see_counters(received, asked_after):
            self._counters_restarted(switch.name, ports)
        return counters
