"""A switch in memory that speaks OpenFlow 1.3 as Open vSwitch does, with what can go wrong.

Between barriers it takes changes outside a bundle, and questions, in any order; a bundle changes
all or nothing. It obeys roles and generation ids, forgets them when it restarts, reports its
ports, and forwards probes and frames by the entries that it holds.

References
----------
ONF TS-012, OpenFlow Switch Specification 1.3.4, sections 6 and 7; bundles: EXT-230.

"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING

from ryu.ofproto import ofproto_v1_3 as ofp

from knotless.controller.openflow.messages import encode
from knotless.controller.reconcile import GroupChange, RuleChange
from knotless.forwarding.openflow.rules import (
    CONTROLLER,
    IN_PORT,
    Group,
    Rule,
    SwitchRules,
    ToGroup,
)
from tests.seeded.forwarding import (
    Copy,
    Forwarding,
    group_of,
    header_of,
    is_foreign,
    rule_of,
)
from tests.seeded.streams import Stream

if TYPE_CHECKING:
    from tests.seeded.controllers import Controller
    from tests.seeded.world import World

_HEADER = Struct("!BBHI")
_FLOW_MOD = Struct("!QQBBHHHIIIH2x")
_FLOW_ENTRY = Struct("!HBxIIHHHH4xQQQ")
_GROUP_MOD = Struct("!HBxI")
_PACKET_OUT = Struct("!IIH6x")
_PACKET_IN = Struct("!IHBBQ")
_IN_PORT = Struct("!HHHBBI4x")
_ACTION = Struct("!HH")
_EXPERIMENTER = Struct("!II")
_BUNDLE = Struct("!IHH")
_PORT = Struct("!I4x6s2x16s8I")
_PORT_COUNTERS = Struct("!I4x12Q2I")
_ROLE = Struct("!I4xQ")
_AGGREGATE = Struct("!QQI4x")
_COOKIES = Struct("!QQ")
_COOKIES_AT = 24
"""Offset of cookie and mask in the body of a request for rules."""
_NO_GENERATION = 0xFFFFFFFFFFFFFFFF
_PART_BYTES = 60_000
_RETRY_S = 1.0
_PROBE_S = 5.0
"""A switch that has heard nothing for this time asks; after as long again, the connection is over:
Open vSwitch's inactivity probe."""
_WORK_S = 0.001
"""A message is dealt with within this time."""
_UNORDERED = frozenset({ofp.OFPT_FLOW_MOD, ofp.OFPT_GROUP_MOD, ofp.OFPT_MULTIPART_REQUEST})


def _message(kind: int, transaction: int, body: bytes = b"") -> bytes:
    return _HEADER.pack(ofp.OFP_VERSION, kind, _HEADER.size + len(body), transaction) + body


class SwitchConnection:
    """A switch's end of a connection to one controller."""

    def __init__(self, switch: Switch, controller: Controller, stream: Stream) -> None:
        self.switch, self.controller, self.stream = switch, controller, stream
        self.role = ofp.OFPCR_ROLE_EQUAL
        self.is_open = True
        self.heard_s = stream.world.hub.now_s
        self._is_asking = False
        self._bytes = bytearray()
        self._floor_s = self._latest_s = self._order_s = 0.0
        self._bundles: dict[int, list[bytes]] = {}

    def send(self, message: bytes) -> None:
        """Send a message to the controller."""
        if self.is_open:
            self.stream.world.record("up", self.stream.name, message)
            self.stream.send_up(message)

    def received(self, data: bytes) -> None:
        """Take bytes of the controller: each message is dealt with a little later."""
        if not self.is_open:
            return
        self.heard_s, self._is_asking = self.stream.world.hub.now_s, False
        self._bytes += data
        while len(self._bytes) >= _HEADER.size:
            _, _, length, _ = _HEADER.unpack_from(self._bytes)
            if len(self._bytes) < length:
                return
            message = bytes(self._bytes[:length])
            del self._bytes[:length]
            self.stream.world.record("down", self.stream.name, message)
            self._schedule(message)

    def _schedule(self, message: bytes) -> None:
        world = self.stream.world
        kind = message[1]
        now_s = max(world.hub.now_s, self.switch.stalled_until_s)
        work_s = world.draws.between(0, _WORK_S, "work", self.stream.name)
        if kind == ofp.OFPT_BARRIER_REQUEST:
            when_s = self._floor_s = self._order_s = max(self._latest_s, now_s) + work_s
        elif kind in _UNORDERED:
            when_s = max(self._floor_s, now_s) + work_s
        else:
            when_s = self._order_s = max(self._order_s, self._floor_s, now_s) + work_s / 10
        self._latest_s = max(self._latest_s, when_s)
        world.hub.call_at(when_s, world.hub.outside, self._process, message)

    def _process(self, message: bytes) -> None:
        self.stream.taken(len(message))
        if self.is_open and self.switch.is_on:
            _, kind, _, transaction = _HEADER.unpack_from(message)
            self.switch.process(self, kind, transaction, message[_HEADER.size :], message)

    def ended(self) -> None:
        """The controller sends nothing more: close."""
        self.close()

    def close(self, *, told: bool = True) -> None:
        """End the connection; ``told``: the controller hears of it."""
        if self.is_open:
            self.is_open = False
            self.switch.connections.remove(self)
            if told:
                self.stream.end_up()
            else:
                self.stream.is_cut = True
            self.switch.reconnect(self.controller)

    def watch(self) -> None:
        """Ask a controller that says nothing, and give it up if it stays silent."""
        if not self.is_open:
            return
        world = self.stream.world
        silent_s = world.hub.now_s - self.heard_s
        if silent_s >= 2 * _PROBE_S:
            self.close(told=False)
            return
        if silent_s >= _PROBE_S and not self._is_asking:
            self._is_asking = True
            self.send(_message(ofp.OFPT_ECHO_REQUEST, 0))
        world.hub.call_at(world.hub.now_s + _PROBE_S / 2, world.hub.outside, self.watch)

    # --- bundles -----------------------------------------------------------------------------

    def bundle(self, transaction: int, body: bytes) -> None:
        """Take a message of a bundle."""
        experimenter, kind = _EXPERIMENTER.unpack_from(body)
        number, request, flags = _BUNDLE.unpack_from(body, _EXPERIMENTER.size)
        if kind == ofp.ONF_ET_BUNDLE_ADD_MESSAGE:
            inner = body[_EXPERIMENTER.size + _BUNDLE.size :]
            self._bundles.setdefault(number, []).append(inner)
            return
        if request == ofp.ONF_BCT_OPEN_REQUEST:
            self._bundles[number] = []
        elif request == ofp.ONF_BCT_COMMIT_REQUEST:
            self.switch.change(self, self._bundles.pop(number, []))
        done = _EXPERIMENTER.pack(experimenter, kind) + _BUNDLE.pack(number, request + 1, flags)
        self.send(_message(ofp.OFPT_EXPERIMENTER, transaction, done))


@dataclass
class _Contents:
    """The entries of a switch."""

    flows: dict[bytes, bytes]
    """By table, priority and match: the entry in a reply about flows."""
    groups: dict[int, bytes]

    def copy(self) -> _Contents:
        return _Contents(dict(self.flows), dict(self.groups))


class RefusedError(Exception):
    """A change that the switch does not make: type and code of the error."""

    def __init__(self, kind: int, code: int) -> None:
        super().__init__(f"error {kind}/{code}")
        self.kind, self.code = kind, code


class Switch:
    """One switch and what it holds."""

    def __init__(self, world: World, name: str, dpid: int, ports: Iterable[int]) -> None:
        self.world, self.name, self.dpid = world, name, dpid
        self.ports = dict.fromkeys(sorted(ports), True)
        """Whether each port has a carrier."""
        self.contents = _Contents({}, {})
        self.connections: list[SwitchConnection] = []
        self.is_on = True
        self.room = sys.maxsize
        """The most rules that it takes."""
        self.is_touched = False
        """Whether others have changed what it holds, and that is not put right yet."""
        self.untouched = self.contents
        """What it held before that."""
        self.stalled_until_s = 0.0
        self.deafened = 0
        """How many faults have its pipeline stand still now."""
        self.counters = {port: [0, 0] for port in self.ports}
        """Frames received and sent."""
        self.counted_since_s = 0.0
        """When they began, or another switch ended to show its own; 0: before all else."""
        self.twins = 0
        """How many others say now that they are this one."""
        self._generation: int | None = None
        self._connected = 0
        self._forwarding: Forwarding | None = None

    # --- connections -------------------------------------------------------------------------

    def reconnect(self, controller: Controller) -> None:
        """Connect to a controller after a while, again and again."""
        hub = self.world.hub
        later_s = self.world.draws.between(0.5, 1, "retry", self.name, controller.name) * _RETRY_S
        hub.call_at(hub.now_s + later_s, hub.outside, self.connect, controller)

    def connect(self, controller: Controller) -> None:
        """Connect to a controller, unless there is a connection; if that fails, later."""
        if any(each.controller is controller for each in self.connections):
            return
        if not self.is_on:
            return
        listening = controller.listening(ofp_port=True)
        if listening is None or self.world.is_cut_off(controller, self):
            self.reconnect(controller)
            return
        self._connected += 1
        name = f"{self.name}-{controller.name}-{self._connected}"
        stream = Stream(self.world, controller.process, name, self)  # type: ignore[arg-type]
        connection = SwitchConnection(self, controller, stream)
        stream.peer = connection
        self.connections.append(connection)
        hello = Struct("!HHI").pack(1, 8, 1 << ofp.OFP_VERSION)
        connection.send(_message(ofp.OFPT_HELLO, 1, hello))
        hub = self.world.hub
        delay_s = self.world.draws.between(0, 0.002, "accept", name)
        hub.call_at(hub.now_s + delay_s, controller.process, listening.offer, stream)
        connection.watch()

    def process(
        self, connection: SwitchConnection, kind: int, transaction: int, body: bytes, whole: bytes
    ) -> None:
        """Deal with one message."""
        match kind:
            case ofp.OFPT_ECHO_REQUEST:
                connection.send(_message(ofp.OFPT_ECHO_REPLY, transaction, body))
            case ofp.OFPT_FEATURES_REQUEST:
                features = Struct("!QIBB2xII").pack(self.dpid, 0, 254, 0, 0x4F, 0)
                connection.send(_message(ofp.OFPT_FEATURES_REPLY, transaction, features))
            case ofp.OFPT_PACKET_OUT:
                self._packet_out(body)
            case ofp.OFPT_FLOW_MOD | ofp.OFPT_GROUP_MOD:
                self.change(connection, [whole])
            case ofp.OFPT_MULTIPART_REQUEST:
                for part in self._multipart(transaction, int.from_bytes(body[:2], "big"), body):
                    connection.send(part)
            case ofp.OFPT_BARRIER_REQUEST:
                connection.send(_message(ofp.OFPT_BARRIER_REPLY, transaction))
            case ofp.OFPT_ROLE_REQUEST:
                self._role(connection, transaction, body, whole)
            case ofp.OFPT_EXPERIMENTER:
                connection.bundle(transaction, body)

    def _role(
        self, connection: SwitchConnection, transaction: int, body: bytes, whole: bytes
    ) -> None:
        role, generation = _ROLE.unpack_from(body)
        if role in (ofp.OFPCR_ROLE_MASTER, ofp.OFPCR_ROLE_SLAVE):
            if self._generation is not None and generation < self._generation:
                self._error(connection, ofp.OFPET_ROLE_REQUEST_FAILED, ofp.OFPRRFC_STALE, whole)
                return
            self._generation = generation
        if role == ofp.OFPCR_ROLE_MASTER:
            for other in self.connections:
                if other.role == ofp.OFPCR_ROLE_MASTER:
                    other.role = ofp.OFPCR_ROLE_SLAVE
            connection.controller.mastered_s[self.name] = self.world.hub.now_s
        if role != ofp.OFPCR_ROLE_NOCHANGE:
            connection.role = role
        known = _NO_GENERATION if self._generation is None else self._generation
        answer = _ROLE.pack(connection.role, known)
        connection.send(_message(ofp.OFPT_ROLE_REPLY, transaction, answer))

    def _error(self, connection: SwitchConnection, kind: int, code: int, request: bytes) -> None:
        body = Struct("!HH").pack(kind, code) + request[:64]
        transaction = int.from_bytes(request[4:8], "big")
        connection.send(_message(ofp.OFPT_ERROR, transaction, body))

    # --- entries -----------------------------------------------------------------------------

    def change(self, connection: SwitchConnection, messages: list[bytes]) -> None:
        """Make all these changes, or none of them and report the one that is refused."""
        if connection.role == ofp.OFPCR_ROLE_SLAVE:
            for message in messages[:1]:
                self._error(connection, ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_IS_SLAVE, message)
            return
        self.world.judge_author(connection.controller)
        contents = self.contents.copy()
        for message in messages:
            try:
                if message[1] == ofp.OFPT_FLOW_MOD:
                    _flow_mod(contents, message[_HEADER.size :])
                else:
                    _group_mod(contents, message[_HEADER.size :])
                if len(contents.flows) > max(len(self.contents.flows), self.room):
                    raise RefusedError(ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_TABLE_FULL)
            except RefusedError as refused:
                self._error(connection, refused.kind, refused.code, message)
                return
        if messages:
            self.hold(contents, f"write of {connection.controller.name}")

    def hold(self, contents: _Contents, author: str) -> None:
        """Hold other entries from now on."""
        if contents != self.contents:
            self.contents, self._forwarding = contents, None
            self.world.changed(author, self)

    def touch(self, contents: _Contents) -> None:
        """Hold what others have made of the entries."""
        if contents != self.contents:
            if not self.is_touched:
                self.untouched = self.contents
            self.is_touched = True
            self.hold(contents, "others")

    @property
    def is_deaf(self) -> bool:
        """Whether its ports count what arrives, and nothing leaves; its connections live."""
        return self.deafened > 0

    @property
    def forwarding(self) -> Forwarding:
        """What it does with frames now."""
        if self._forwarding is None:
            up = frozenset(port for port, is_up in self.ports.items() if is_up)
            flows, groups = self.contents.flows, self.contents.groups
            self._forwarding = self.world.forwarding(
                tuple(flows[key] for key in sorted(flows)),
                tuple(groups[key] for key in sorted(groups)),
                up,
            )
        return self._forwarding

    @property
    def holds_foreign(self) -> bool:
        """Whether it holds rules of others."""
        return any(is_foreign(rule_of(entry)) for entry in self.contents.flows.values())

    def _multipart(self, transaction: int, kind: int, body: bytes) -> Iterator[bytes]:
        entries: list[bytes] = []
        match kind:
            case ofp.OFPMP_FLOW:
                cookie, mask = _COOKIES.unpack_from(body, _COOKIES_AT)
                flows = [self.contents.flows[key] for key in sorted(self.contents.flows)]
                entries = [flow for flow in flows if (_cookie_of(flow) ^ cookie) & mask == 0]
            case ofp.OFPMP_AGGREGATE:
                entries = [_AGGREGATE.pack(0, 0, len(self.contents.flows))]
            case ofp.OFPMP_GROUP_DESC:
                entries = [self.contents.groups[key] for key in sorted(self.contents.groups)]
            case ofp.OFPMP_PORT_DESC:
                entries = [self._port(port) for port in self.ports]
            case ofp.OFPMP_PORT_STATS:
                entries = [
                    _PORT_COUNTERS.pack(port, received, sent, *bytes(12))
                    for port, (received, sent) in self.counters.items()
                ]
        part = b""
        for entry in entries:
            if len(part) + len(entry) > _PART_BYTES:
                yield _message(
                    ofp.OFPT_MULTIPART_REPLY, transaction, Struct("!HH4x").pack(kind, 1) + part
                )
                part = b""
            part += entry
        head = Struct("!HH4x").pack(kind, 0)
        yield _message(ofp.OFPT_MULTIPART_REPLY, transaction, head + part)

    def _port(self, port: int) -> bytes:
        state = 0 if self.ports[port] else ofp.OFPPS_LINK_DOWN
        mac = self.dpid.to_bytes(3, "big") + port.to_bytes(3, "big")
        return _PORT.pack(port, mac, b"p%d" % port, 0, state, *bytes(6))

    def set_carrier(self, port: int, *, up: bool) -> None:
        """Give a port its carrier, or take it; controllers are told."""
        if self.ports[port] == up:
            return
        self.ports[port] = up
        self._forwarding = None
        if self.is_on:
            body = bytes([ofp.OFPPR_MODIFY]) + bytes(7) + self._port(port)
            for connection in self.connections:
                connection.send(_message(ofp.OFPT_PORT_STATUS, 0, body))

    # --- frames ------------------------------------------------------------------------------

    def _packet_out(self, body: bytes) -> None:
        """Send a frame out of ports, each time with the source address that was set last."""
        if self.is_deaf:
            return
        _, _, length = _PACKET_OUT.unpack_from(body)
        at, frame = _PACKET_OUT.size, body[_PACKET_OUT.size + length :]
        while at < _PACKET_OUT.size + length:
            kind, size = _ACTION.unpack_from(body, at)
            if kind == ofp.OFPAT_SET_FIELD:
                frame = frame[:6] + body[at + 8 : at + 14] + frame[12:]
            elif kind == ofp.OFPAT_OUTPUT:
                port = int.from_bytes(body[at + 4 : at + 8], "big")
                self.world.network.send_probe(self, port, frame)
            at += size

    def receive_probe(self, port: int, frame: bytes) -> None:
        """Take a frame of which every byte counts."""
        if self.is_deaf:
            return
        header = header_of(frame)
        for copy in self.forwarding.copies(port, header):
            sent = copy.header.dst.to_bytes(6, "big") + frame[6:]
            if copy.port == CONTROLLER:
                self._packet_in(port, sent, copy)
            else:
                out = port if copy.port == IN_PORT else copy.port
                self.world.network.send_probe(self, out, sent)

    def _packet_in(self, port: int, frame: bytes, copy: Copy) -> None:
        head = _PACKET_IN.pack(ofp.OFP_NO_BUFFER, len(frame), ofp.OFPR_ACTION, 0, copy.cookie)
        match = _IN_PORT.pack(ofp.OFPMT_OXM, 12, ofp.OFPXMC_OPENFLOW_BASIC, 0, 4, port)
        message = _message(ofp.OFPT_PACKET_IN, 0, head + match + bytes(2) + frame)
        for connection in self.connections:
            if connection.role != ofp.OFPCR_ROLE_SLAVE:
                connection.send(message)

    # --- faults ------------------------------------------------------------------------------

    def switch_off(self) -> None:
        """Lose the power: connections end without a word, ports lose their carrier."""
        self.is_on = False
        for connection in list(self.connections):
            connection.is_open = False
            connection.stream.is_cut = True
        self.connections.clear()
        self._generation = None

    def switch_on(self, keeps: Callable[[bytes], bool]) -> None:
        """Start with the entries that it ``keeps``, and counters that begin again."""
        self.is_on = True
        self.counters = {port: [0, 0] for port in self.ports}
        self.counted_since_s = self.world.hub.now_s
        flows = {key: entry for key, entry in self.contents.flows.items() if keeps(key)}
        groups = self.contents.groups if flows else {}
        self.hold(_Contents(flows, dict(groups)), "restart")
        for controller in self.world.controllers.values():
            self.reconnect(controller)


def _flow_mod(contents: _Contents, body: bytes) -> None:
    cookie, mask, table, command, _, _, priority, *_ = _FLOW_MOD.unpack_from(body)
    rest = body[_FLOW_MOD.size :]
    match_bytes = (int.from_bytes(rest[2:4], "big") + 7) // 8 * 8
    matched, instructions = rest[:match_bytes], rest[match_bytes:]
    key = bytes([table]) + priority.to_bytes(2, "big") + matched
    held = contents.flows.get(key)
    if command == ofp.OFPFC_DELETE_STRICT:
        if held is not None and (_cookie_of(held) ^ cookie) & mask == 0:
            del contents.flows[key]
        return
    if command == ofp.OFPFC_MODIFY_STRICT:
        if held is None:
            return
        cookie = _cookie_of(held)
    elif command != ofp.OFPFC_ADD:
        raise RefusedError(ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_BAD_COMMAND)
    length = _FLOW_ENTRY.size + len(rest)
    head = _FLOW_ENTRY.pack(length, table, 0, 0, priority, 0, 0, 0, cookie, 0, 0)
    entry = head + matched + instructions
    if not rule_of(entry).uses_groups <= contents.groups.keys():
        raise RefusedError(ofp.OFPET_BAD_ACTION, ofp.OFPBAC_BAD_OUT_GROUP)
    contents.flows[key] = entry


def _cookie_of(entry: bytes) -> int:
    *_, cookie, _, _ = _FLOW_ENTRY.unpack_from(entry)
    return int(cookie)


def _group_mod(contents: _Contents, body: bytes) -> None:
    command, kind, number = _GROUP_MOD.unpack_from(body)
    if command == ofp.OFPGC_DELETE:
        delete_group(contents, number)
        return
    if command == ofp.OFPGC_ADD and number in contents.groups:
        raise RefusedError(ofp.OFPET_GROUP_MOD_FAILED, ofp.OFPGMFC_GROUP_EXISTS)
    if command == ofp.OFPGC_MODIFY and number not in contents.groups:
        raise RefusedError(ofp.OFPET_GROUP_MOD_FAILED, ofp.OFPGMFC_UNKNOWN_GROUP)
    entry = Struct("!HBxI").pack(len(body), kind, number) + body[_GROUP_MOD.size :]
    if group_of(entry).group_id != number:
        raise RefusedError(ofp.OFPET_GROUP_MOD_FAILED, ofp.OFPGMFC_INVALID_GROUP)
    contents.groups[number] = entry


def delete_group(contents: _Contents, number: int) -> None:
    """Delete a group, and with it all rules that use it."""
    contents.groups.pop(number, None)
    gone = [key for key, flow in contents.flows.items() if number in rule_of(flow).uses_groups]
    for key in gone:
        del contents.flows[key]


def keyed_entry_of(rule: Rule) -> tuple[bytes, bytes]:
    """Return a rule as a switch holds it, with its key."""
    contents = _Contents({}, {})
    groups = (action.group_id for action in rule.actions if isinstance(action, ToGroup))
    contents.groups = dict.fromkeys(groups, b"")
    _flow_mod(contents, encode(RuleChange("add", rule), 0)[_HEADER.size :])
    ((key, entry),) = contents.flows.items()
    return key, entry


def entry_of(rule: Rule) -> bytes:
    """Return a rule as a switch holds it."""
    return keyed_entry_of(rule)[1]


def group_entry_of(group: Group) -> bytes:
    """Return a group as a switch holds it."""
    contents = _Contents({}, {})
    _group_mod(contents, encode(GroupChange("add", group), 0)[_HEADER.size :])
    return contents.groups[group.group_id]


def forwarding_of(rules: SwitchRules) -> Forwarding:
    """Return what a switch does that has been given these rules."""
    contents = _Contents({}, {})
    for group in rules.groups:
        _group_mod(contents, encode(GroupChange("add", group), 0)[_HEADER.size :])
    for rule in rules.rules:
        _flow_mod(contents, encode(RuleChange("add", rule), 0)[_HEADER.size :])
    return Forwarding(contents.flows.values(), contents.groups.values(), frozenset())
