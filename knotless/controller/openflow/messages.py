"""OpenFlow 1.3 messages: those to a switch are encoded, those from it are checked and read.

A repair changes hundreds of rules before a frame takes a new path: :func:`encode` writes them in a
tenth of the time that Ryu's classes take.

Ryu's parsers trust the lengths in a message: an element of length 0 makes some of them loop for
ever, and others log each message that they cannot read. :func:`check` accepts only messages that
switches may send to a controller, in which every length fits what it encloses and every element
has the size that its type demands.

A controller that starts again reads a hundred thousand rules, and Ryu needs 100 us to parse one.
So it keeps them as bytes, once :func:`install` is called. Most of their matches, instructions and
lists of actions are alike: each is parsed once, when the first message with it is checked, and
:func:`read_rule` and :func:`read_group` only put these values together.

References
----------
ONF TS-012, OpenFlow Switch Specification 1.3.4, sections 7.1 to 7.5; for bundles, which Open
vSwitch implements, Open Networking Foundation, extension EXT-230.

"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from struct import Struct
from typing import Any, ClassVar, Self, TypeVar

from ryu.ofproto import ofproto_common
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from knotless.controller.openflow.elements import (
    FIELDS,
    Actions,
    Buffer,
    Instructions,
    Match,
    WireError,
    emit_actions,
    emit_instructions,
    emit_match,
    parse_actions,
    parse_element,
    parse_instructions,
    parse_match,
)
from knotless.controller.reconcile import Change, FoundGroup, FoundRule, GroupChange, RuleChange
from knotless.forwarding.openflow.rules import Action, Group, Rule

Value = TypeVar("Value")
Check = Callable[[bytearray], None]

_HEADER = Struct(ofp.OFP_HEADER_PACK_STR)
_FLOW_MOD = Struct(ofp.OFP_FLOW_MOD_PACK_STR0)
_GROUP_MOD = Struct(ofp.OFP_GROUP_MOD_PACK_STR)
_BUCKET = Struct(ofp.OFP_BUCKET_PACK_STR)
_EXPERIMENTER = Struct("!II")
_BUNDLE = Struct(ofp.ONF_BUNDLE_CTRL_PACK_STR)
_FLOW_ENTRY = Struct(ofp.OFP_FLOW_STATS_0_PACK_STR)
_GROUP_ENTRY = Struct(ofp.OFP_GROUP_DESC_STATS_PACK_STR)
_U16 = Struct("!H")
_PACKET_OUT = Struct("!IIH6x")
_PACKET_IN_MATCH = ofp.OFP_PACKET_IN_SIZE - ofp.OFP_MATCH_SIZE
"""Offset of the match in a packet-in."""
_PACKET_IN_PADDING = 2
_BODY = ofp.OFP_HEADER_SIZE
_ENTRIES = ofp.OFP_MULTIPART_REPLY_SIZE
"""Offsets of the body of a message, and of that of a multipart reply."""
_UNRESTRICTED = (ofp.OFP_NO_BUFFER, ofp.OFPP_ANY, ofp.OFPG_ANY, 0)
"""A flow mod for no buffered packet, whatever the outputs of the rule are, and without flags."""
_ALL_COOKIE = 0xFFFFFFFFFFFFFFFF
_CACHED_BYTES = 256
_COMMANDS = {
    "add": (ofp.OFPFC_ADD, ofp.OFPGC_ADD),
    "modify": (ofp.OFPFC_MODIFY_STRICT, ofp.OFPGC_MODIFY),
    "delete": (ofp.OFPFC_DELETE_STRICT, ofp.OFPGC_DELETE),
}
"""Those of rules and of groups; 'strict' ones affect one rule."""

# --- messages to a switch --------------------------------------------------------------------


def encode_message(kind: int, transaction: int, body: bytes) -> bytes:
    """Return a message of any type."""
    return _HEADER.pack(ofp.OFP_VERSION, kind, _HEADER.size + len(body), transaction) + body


def encode(change: Change, transaction: int) -> bytes:
    """Return the message for ``change``, which affects no other entry.

    Raises KeyError for a field that OpenFlow does not define, and OverflowError or struct.error
    for a number that does not fit.
    """
    if isinstance(change, RuleChange):
        return encode_message(ofp.OFPT_FLOW_MOD, transaction, _flow_mod(change))
    return encode_message(ofp.OFPT_GROUP_MOD, transaction, _group_mod(change))


def bundle(number: int, messages: Sequence[bytes], transactions: Sequence[int]) -> bytes:
    """Return a bundle: messages that a switch processes in this order, all at once or not at all.

    ``transactions`` are the ids of opening and committing it; the messages have their own. The
    replies say nothing that is not known from the barrier reply that follows; what is refused is
    reported by an error message.
    """
    opened, committed = transactions
    parts = [_bundle_message(opened, number, ofp.ONF_BCT_OPEN_REQUEST)]
    for message in messages:
        *_, transaction = _HEADER.unpack_from(message)
        parts.append(_bundle_message(transaction, number, added=message))
    parts.append(_bundle_message(committed, number, ofp.ONF_BCT_COMMIT_REQUEST))
    return b"".join(parts)


def encode_packet_out(actions: Iterable[Action], frame: bytes) -> bytes:
    """Return a message that has a switch do ``actions`` with a frame of ours."""
    body = emit_actions(actions)
    head = _PACKET_OUT.pack(ofp.OFP_NO_BUFFER, ofp.OFPP_CONTROLLER, len(body))
    return encode_message(ofp.OFPT_PACKET_OUT, 0, head + body + frame)


def _bundle_message(transaction: int, number: int, command: int = 0, added: bytes = b"") -> bytes:
    kind = ofp.ONF_ET_BUNDLE_ADD_MESSAGE if added else ofp.ONF_ET_BUNDLE_CONTROL
    head = _EXPERIMENTER.pack(ofproto_common.ONF_EXPERIMENTER_ID, kind)
    flags = ofp.ONF_BF_ATOMIC | ofp.ONF_BF_ORDERED
    body = head + _BUNDLE.pack(number, command, flags) + added
    return encode_message(ofp.OFPT_EXPERIMENTER, transaction, body)


def _flow_mod(change: RuleChange) -> bytes:
    rule, is_delete = change.rule, change.command == "delete"
    command, _ = _COMMANDS[change.command]
    # Delete only our own entry: another controller may have replaced it in the meantime.
    cookie_mask = _ALL_COOKIE if is_delete else 0
    fixed = _FLOW_MOD.pack(
        rule.cookie, cookie_mask, rule.table, command, 0, 0, rule.priority, *_UNRESTRICTED
    )
    match = emit_match(rule.match)
    if is_delete:
        return fixed + match
    return fixed + match + emit_instructions(rule.actions, rule.metadata, rule.goto)


def _group_mod(change: GroupChange) -> bytes:
    group = change.group
    _, command = _COMMANDS[change.command]
    kind = ofp.OFPGT_FF if group.watch else ofp.OFPGT_ALL
    parts = [_GROUP_MOD.pack(command, kind, group.group_id)]
    if change.command != "delete":
        watch = group.watch or (ofp.OFPP_ANY,) * len(group.buckets)
        for port, bucket in zip(watch, group.buckets, strict=True):
            actions = emit_actions(bucket)
            parts.append(_BUCKET.pack(_BUCKET.size + len(actions), 0, port, ofp.OFPG_ANY))
            parts.append(actions)
    return b"".join(parts)


# --- messages from a switch ------------------------------------------------------------------


def check(message: bytearray) -> None:
    """Check one whole message, its header included.

    Experimenter actions, and match fields that are not OpenFlow's own, are relabelled in place, so
    that Ryu does not parse them.

    Raises
    ------
    WireError
        Its type is none that a switch sends to a controller, or a length or size is wrong.

    """
    version, kind = message[0], message[1]
    if version != ofp.OFP_VERSION and not (kind == ofp.OFPT_HELLO and version in _GREETINGS):
        raise WireError(f"message of type {kind} in version {version}, not {ofp.OFP_VERSION}")
    if kind not in _MESSAGES:
        raise WireError(f"message of type {kind}, which switches do not send to controllers")
    _check_body(message, _MESSAGES[kind])


def is_role_status(message: bytearray) -> bool:
    """Tell whether a switch reports that another controller has become its master."""
    return message[1] == ofp.OFPT_EXPERIMENTER and message[_BODY:16] == _ROLE_STATUS


def _check_body(message: bytearray, rule: int | Check) -> None:
    """Check a message by its size, or by a function."""
    if not isinstance(rule, int):
        rule(message)
    elif len(message) != rule:
        raise WireError(f"message of type {message[1]} with {len(message)} bytes")


def _anything(_message: bytearray) -> None:
    """Accept any body: Ryu keeps it as bytes."""


def _hello(message: bytearray) -> None:
    offset = _BODY
    while offset < len(message):
        kind, length = parse_element(message, offset, len(message))
        # Ryu steps by the length without its padding, so only lengths without any are safe.
        if length % 8:
            raise WireError(f"hello element of type {kind} with {length} bytes")
        offset += length


def _error(message: bytearray) -> None:
    is_experimenter = message[_BODY : _BODY + 2] == b"\xff\xff"
    least = ofp.OFP_ERROR_EXPERIMENTER_MSG_SIZE if is_experimenter else ofp.OFP_ERROR_MSG_SIZE
    if len(message) < least:
        raise WireError(f"error message with {len(message)} bytes")


def _experimenter(message: bytearray) -> None:
    if is_role_status(message):
        return
    # Ryu 4.34 cannot read any property that follows.
    size = ofp.OFP_EXPERIMENTER_HEADER_SIZE + ofp.ONF_BUNDLE_CTRL_SIZE
    if len(message) != size or message[_BODY:16] != _BUNDLE_CONTROL:
        raise WireError("experimenter message other than an answer about a bundle or a role")


def _packet_in(message: bytearray) -> None:
    _, end = _match(message, _PACKET_IN_MATCH, len(message))
    if end + _PACKET_IN_PADDING > len(message):
        raise WireError("packet-in without padding after its match")


def _flow_removed(message: bytearray) -> None:
    _, end = _match(message, ofp.OFP_FLOW_REMOVED_SIZE - ofp.OFP_MATCH_SIZE, len(message))
    if end != len(message):
        raise WireError("flow-removed with bytes after its match")


def _multipart_reply(message: bytearray) -> None:
    if len(message) < _ENTRIES:
        raise WireError(f"multipart reply with {len(message)} bytes")
    (kind,) = _U16.unpack_from(message, _BODY)
    if kind not in _MULTIPARTS:
        raise WireError(f"multipart reply of type {kind}, which nobody asked for")
    _check_body(message, _MULTIPARTS[kind])


def _entries_of_size(size: int, what: str) -> Check:
    def check_entries(message: bytearray) -> None:
        if (len(message) - _ENTRIES) % size:
            raise WireError(f"{what} not of {size} bytes each")

    return check_entries


def _list_of(least: int, check_entry: Callable[[bytearray, int, int], object]) -> Check:
    """Return the check of entries that begin with their length, and have ``least`` bytes."""

    def check_entries(message: bytearray) -> None:
        offset = _ENTRIES
        while offset < len(message):
            end = offset + _length_first(message, offset, len(message), least)
            check_entry(message, offset, end)
            offset = end

    return check_entries


def _group_counters(_message: bytearray, offset: int, end: int) -> None:
    if (end - offset - ofp.OFP_GROUP_STATS_SIZE) % ofp.OFP_BUCKET_COUNTER_SIZE:
        raise WireError(f"group counters with {end - offset} bytes")


# --- parts of messages, parsed to be checked and, from the cache, to be read -----------------


def _match(data: Buffer, offset: int, end: int) -> tuple[Match, int]:
    """Return a match, and where it ends, padding included."""
    kind, length = parse_element(data, offset, end, 4)
    padded_end = offset + (length + 7) // 8 * 8
    if kind != ofp.OFPMT_OXM or padded_end > end:
        raise WireError(f"match of type {kind} with length {length}")
    return _parse(parse_match, data, offset + 4, offset + length), padded_end


def _flow_entry(data: Buffer, offset: int, end: int) -> tuple[Match, Instructions]:
    match, start = _match(data, offset + _FLOW_ENTRY.size, end)
    return match, _parse(parse_instructions, data, start, end)


def _group_entry(data: Buffer, offset: int, end: int) -> list[tuple[int, Actions]]:
    """Return the watched port and the actions of each bucket."""
    buckets, offset = [], offset + _GROUP_ENTRY.size
    while offset < end:
        bucket_end = offset + _length_first(data, offset, end, _BUCKET.size)
        _, _, port, _ = _BUCKET.unpack_from(data, offset)
        actions = _parse(parse_actions, data, offset + _BUCKET.size, bucket_end)
        buckets.append((port, actions))
        offset = bucket_end
    return buckets


def _length_first(data: Buffer, offset: int, end: int, least: int) -> int:
    """Return the length of an entry that begins with it."""
    rest = end - offset
    if rest < least:
        raise WireError(f"{rest} bytes where an entry of {least} or more should begin")
    length: int = _U16.unpack_from(data, offset)[0]
    if length < least or length % 8 or length > rest:
        raise WireError(f"entry with length {length} where {rest} bytes are")
    return length


def _parse(parse: Callable[[bytearray], Value], data: Buffer, start: int, end: int) -> Value:
    """Return the value of a part of ``data``, and relabel there what Ryu must not parse.

    Long parts are not cached, so that no switch can fill the memory.
    """
    part = bytes(data[start:end])
    cached = _parsed if end - start > _CACHED_BYTES else _cached
    value, relabelled = cached(parse, part)
    if relabelled is not None and isinstance(data, bytearray):
        data[start:end] = relabelled
    return value


def _parsed(parse: Callable[[bytearray], Value], part: bytes) -> tuple[Value, bytearray | None]:
    relabelled = bytearray(part)
    value = parse(relabelled)
    return value, None if relabelled == part else relabelled


_cached = lru_cache(maxsize=65536)(_parsed)


# --- tables ----------------------------------------------------------------------------------

_GREETINGS = frozenset({1, 3, 4, 5, 6})
"""OpenFlow 1.0 and 1.2 to 1.5: a switch greets in the latest version that it speaks."""
_ROLE_STATUS = _EXPERIMENTER.pack(ofproto_common.ONF_EXPERIMENTER_ID, 1911)
"""ONF extension 191, as Open vSwitch sends it in OpenFlow 1.3."""
_BUNDLE_CONTROL = _EXPERIMENTER.pack(ofproto_common.ONF_EXPERIMENTER_ID, ofp.ONF_ET_BUNDLE_CONTROL)
_MULTIPARTS: dict[int, int | Check] = {
    ofp.OFPMP_DESC: _ENTRIES + ofp.OFP_DESC_SIZE,
    ofp.OFPMP_FLOW: _list_of(ofp.OFP_FLOW_STATS_SIZE, _flow_entry),
    ofp.OFPMP_AGGREGATE: _ENTRIES + ofp.OFP_AGGREGATE_STATS_REPLY_SIZE,
    ofp.OFPMP_PORT_STATS: _entries_of_size(ofp.OFP_PORT_STATS_SIZE, "port counters"),
    ofp.OFPMP_GROUP: _list_of(ofp.OFP_GROUP_STATS_SIZE, _group_counters),
    ofp.OFPMP_GROUP_DESC: _list_of(ofp.OFP_GROUP_DESC_STATS_SIZE, _group_entry),
    ofp.OFPMP_PORT_DESC: _entries_of_size(ofp.OFP_PORT_SIZE, "port descriptions"),
}
_MESSAGES: dict[int, int | Check] = {
    ofp.OFPT_HELLO: _hello,
    ofp.OFPT_ERROR: _error,
    ofp.OFPT_ECHO_REQUEST: _anything,
    ofp.OFPT_ECHO_REPLY: _anything,
    ofp.OFPT_EXPERIMENTER: _experimenter,
    ofp.OFPT_FEATURES_REPLY: ofp.OFP_SWITCH_FEATURES_SIZE,
    ofp.OFPT_GET_CONFIG_REPLY: ofp.OFP_SWITCH_CONFIG_SIZE,
    ofp.OFPT_PACKET_IN: _packet_in,
    ofp.OFPT_FLOW_REMOVED: _flow_removed,
    ofp.OFPT_PORT_STATUS: ofp.OFP_PORT_STATUS_SIZE,
    ofp.OFPT_MULTIPART_REPLY: _multipart_reply,
    ofp.OFPT_BARRIER_REPLY: ofp.OFP_HEADER_SIZE,
    ofp.OFPT_ROLE_REPLY: ofp.OFP_ROLE_REQUEST_SIZE,
}
"""Messages of switches: the size of the whole message, or the function that checks it."""

# --- entries of checked messages -------------------------------------------------------------


class _Entry:
    """An entry of a multipart reply, kept as the bytes that :func:`check` has accepted.

    It has the attributes of Ryu's class too, for other applications: they are parsed when they are
    asked for.
    """

    __slots__ = ("data", "length")
    _ryu: ClassVar[Any]

    def __init__(self, data: bytes) -> None:
        self.data, self.length = data, len(data)

    @classmethod
    def parser(cls, buffer: bytes, offset: int) -> Self:
        """Return the entry at ``offset``; Ryu calls this for each entry of a reply."""
        (length,) = _U16.unpack_from(buffer, offset)
        return cls(bytes(buffer[offset : offset + length]))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ryu.parser(self.data, 0), name)


class FlowEntry(_Entry):
    """An entry of the list of rules (``ofp_flow_stats``)."""

    __slots__ = ()
    _ryu = parser.OFPFlowStats

    @property
    def packet_count(self) -> int:
        """The packets that have matched."""
        return int(_FLOW_ENTRY.unpack_from(self.data)[-2])


class GroupEntry(_Entry):
    """An entry of the list of groups (``ofp_group_desc``)."""

    __slots__ = ()
    _ryu = parser.OFPGroupDescStats


def install() -> None:
    """Have Ryu keep the entries of the lists of rules and groups as bytes."""
    parser.OFPFlowStatsReply.cls_stats_body_cls = FlowEntry
    parser.OFPGroupDescStatsReply.cls_stats_body_cls = GroupEntry


def read_packet_in(message: bytes) -> tuple[int | None, bytes]:
    """Return the port of a packet-in, None if it has none, and its frame."""
    match, end = _match(message, _PACKET_IN_MATCH, len(message))
    port = next((field.value for field in match if field.name == "in_port"), None)
    return port, message[end + _PACKET_IN_PADDING :]


def read_rule(entry: FlowEntry) -> FoundRule:
    """Read an entry of the list of rules.

    ``rule`` is None if the entry has something that Knotless never writes: a time-out, a flag,
    an unknown action or match field. Matches compare equal with those of compiled rules.
    """
    data = entry.data
    _, table, _, _, priority, *times_and_flags, cookie, _, _ = _FLOW_ENTRY.unpack_from(data)
    match, (written, groups) = _flow_entry(data, 0, len(data))
    rule: Rule | None = None
    is_openflow = all(field.name in FIELDS for field in match)
    if written is not None and is_openflow and not any(times_and_flags):
        rule = Rule(table, priority, match, *written, cookie)
    return FoundRule(table, priority, match, cookie, rule, groups)


def read_group(entry: GroupEntry) -> FoundGroup:
    """Read an entry of the list of groups; ``group`` is None if no group of ours is like that."""
    _, kind, group_id = _GROUP_ENTRY.unpack_from(entry.data)
    buckets = _group_entry(entry.data, 0, len(entry.data))
    is_complete = all(complete for _, (_, complete) in buckets)
    if kind not in (ofp.OFPGT_ALL, ofp.OFPGT_FF) or not is_complete:
        return FoundGroup(group_id, None)
    watch = tuple(port for port, _ in buckets) if kind == ofp.OFPGT_FF else ()
    actions = tuple(actions for _, (actions, _) in buckets)
    return FoundGroup(group_id, Group(group_id, actions, watch))
