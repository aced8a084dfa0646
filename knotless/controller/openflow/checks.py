"""Messages of switches are checked before anything reads them.

Parsers that trust the lengths in a message loop for ever on an element of length 0, or log each
message that they cannot read; Ryu's, which other applications use, do both. :func:`check` accepts
only messages that switches may send to a controller, in which every length fits what it encloses
and every element has the size that its type demands.

A controller that starts again reads a hundred thousand rules. Most of their matches, instructions
and lists of actions are alike: each is parsed once, when the first message with it is checked, and
:mod:`knotless.controller.openflow.replies` only puts these values together.

References
----------
ONF TS-012, OpenFlow Switch Specification 1.3.4, sections 7.1 to 7.5.

"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from typing import TypeVar

from knotless.controller.openflow import constants as ofp
from knotless.controller.openflow import records
from knotless.controller.openflow.elements import (
    Actions,
    Buffer,
    Instructions,
    Match,
    WireError,
    parse_actions,
    parse_element,
    parse_instructions,
    parse_match,
)
from knotless.controller.openflow.records import BODY, BUCKET, ENTRIES, FLOW_STATS, GROUP_DESC

Value = TypeVar("Value")
Check = Callable[[bytearray], None]

_U16 = Struct("!H")
_EXPERIMENTER = Struct("!II")
_EMPTY_MATCH_BYTES = 8
_DESCRIPTION_BYTES = 4 * 256 + 32
_GROUP_COUNTERS_BYTES, _BUCKET_COUNTERS_BYTES = 40, 16
_BUNDLE_BYTES = 8
_CONFIGURATION_BYTES = 4
PACKET_IN_MATCH = BODY + records.PACKET_IN.size
"""Offset of the match in a packet-in; the frame follows it and two bytes."""
PACKET_IN_PADDING = 2
_CACHED_BYTES = 256


def check(message: bytearray) -> None:
    """Check one whole message, its header included.

    Experimenter actions, and match fields that are not OpenFlow's own, are relabelled in place, so
    that Ryu does not parse them for other applications.

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
    return message[1] == ofp.OFPT_EXPERIMENTER and message[BODY:16] == _ROLE_STATUS


def _check_body(message: bytearray, rule: int | Check) -> None:
    """Check a message by its size, or by a function."""
    if not isinstance(rule, int):
        rule(message)
    elif len(message) != rule:
        raise WireError(f"message of type {message[1]} with {len(message)} bytes")


def _anything(_message: bytearray) -> None:
    """Accept any body."""


def _hello(message: bytearray) -> None:
    offset = BODY
    while offset < len(message):
        kind, length = parse_element(message, offset, len(message))
        # Ryu steps by the length without its padding, so only lengths without any are safe.
        if length % 8:
            raise WireError(f"hello element of type {kind} with {length} bytes")
        offset += length


def _error(message: bytearray) -> None:
    is_experimenter = message[BODY : BODY + 2] == b"\xff\xff"
    layout = records.EXPERIMENTER_ERROR if is_experimenter else records.ERROR
    if len(message) < BODY + layout.size:
        raise WireError(f"error message with {len(message)} bytes")


def _experimenter(message: bytearray) -> None:
    if is_role_status(message):
        return
    # Ryu 4.34 cannot read any property that follows.
    size = BODY + _EXPERIMENTER.size + _BUNDLE_BYTES
    if len(message) != size or message[BODY:16] != _BUNDLE_CONTROL:
        raise WireError("experimenter message other than an answer about a bundle or a role")


def _packet_in(message: bytearray) -> None:
    _, end = match_at(message, PACKET_IN_MATCH, len(message))
    if end + PACKET_IN_PADDING > len(message):
        raise WireError("packet-in without padding after its match")


def _flow_removed(message: bytearray) -> None:
    _, end = match_at(message, BODY + records.FLOW_REMOVED.size, len(message))
    if end != len(message):
        raise WireError("flow-removed with bytes after its match")


def _multipart_reply(message: bytearray) -> None:
    if len(message) < ENTRIES:
        raise WireError(f"multipart reply with {len(message)} bytes")
    (kind,) = _U16.unpack_from(message, BODY)
    if kind not in _MULTIPARTS:
        raise WireError(f"multipart reply of type {kind}, which nobody asked for")
    _check_body(message, _MULTIPARTS[kind])


def _entries_of_size(size: int, what: str) -> Check:
    def check_entries(message: bytearray) -> None:
        if (len(message) - ENTRIES) % size:
            raise WireError(f"{what} not of {size} bytes each")

    return check_entries


def _list_of(least: int, check_entry: Callable[[bytearray, int, int], object]) -> Check:
    """Return the check of entries that begin with their length, and have ``least`` bytes."""

    def check_entries(message: bytearray) -> None:
        offset = ENTRIES
        while offset < len(message):
            end = offset + length_first(message, offset, len(message), least)
            check_entry(message, offset, end)
            offset = end

    return check_entries


def _group_counters(_message: bytearray, offset: int, end: int) -> None:
    if (end - offset - _GROUP_COUNTERS_BYTES) % _BUCKET_COUNTERS_BYTES:
        raise WireError(f"group counters with {end - offset} bytes")


# --- parts of messages, parsed to be checked and, from the cache, to be read -----------------


def match_at(data: Buffer, offset: int, end: int) -> tuple[Match, int]:
    """Return a match, and where it ends, padding included."""
    kind, length = parse_element(data, offset, end, 4)
    padded_end = offset + (length + 7) // 8 * 8
    if kind != ofp.OFPMT_OXM or padded_end > end:
        raise WireError(f"match of type {kind} with length {length}")
    return _parse(parse_match, data, offset + 4, offset + length), padded_end


def flow_entry(data: Buffer, offset: int, end: int) -> tuple[Match, Instructions]:
    """Return the match and the instructions of an entry of the list of rules."""
    match, start = match_at(data, offset + FLOW_STATS.size, end)
    return match, _parse(parse_instructions, data, start, end)


def group_entry(data: Buffer, offset: int, end: int) -> list[tuple[int, Actions]]:
    """Return the watched port and the actions of each bucket."""
    buckets, offset = [], offset + GROUP_DESC.size
    while offset < end:
        bucket_end = offset + length_first(data, offset, end, BUCKET.size)
        port = BUCKET.read(data, offset).watch_port
        actions = _parse(parse_actions, data, offset + BUCKET.size, bucket_end)
        buckets.append((port, actions))
        offset = bucket_end
    return buckets


def length_first(data: Buffer, offset: int, end: int, least: int) -> int:
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
_ROLE_STATUS = _EXPERIMENTER.pack(ofp.ONF_EXPERIMENTER_ID, ofp.ONF_ROLE_STATUS)
_BUNDLE_CONTROL = _EXPERIMENTER.pack(ofp.ONF_EXPERIMENTER_ID, ofp.ONF_ET_BUNDLE_CONTROL)
_MULTIPARTS: dict[int, int | Check] = {
    ofp.OFPMP_DESC: ENTRIES + _DESCRIPTION_BYTES,
    ofp.OFPMP_FLOW: _list_of(FLOW_STATS.size + _EMPTY_MATCH_BYTES, flow_entry),
    ofp.OFPMP_AGGREGATE: ENTRIES + records.AGGREGATE_STATS.size,
    ofp.OFPMP_PORT_STATS: _entries_of_size(records.PORT_STATS.size, "port counters"),
    ofp.OFPMP_GROUP: _list_of(_GROUP_COUNTERS_BYTES, _group_counters),
    ofp.OFPMP_GROUP_DESC: _list_of(GROUP_DESC.size, group_entry),
    ofp.OFPMP_PORT_DESC: _entries_of_size(records.PORT.size, "port descriptions"),
}
_MESSAGES: dict[int, int | Check] = {
    ofp.OFPT_HELLO: _hello,
    ofp.OFPT_ERROR: _error,
    ofp.OFPT_ECHO_REQUEST: _anything,
    ofp.OFPT_ECHO_REPLY: _anything,
    ofp.OFPT_EXPERIMENTER: _experimenter,
    ofp.OFPT_FEATURES_REPLY: BODY + records.SWITCH_FEATURES.size,
    ofp.OFPT_GET_CONFIG_REPLY: BODY + _CONFIGURATION_BYTES,
    ofp.OFPT_PACKET_IN: _packet_in,
    ofp.OFPT_FLOW_REMOVED: _flow_removed,
    ofp.OFPT_PORT_STATUS: BODY + records.PORT_STATUS.size + records.PORT.size,
    ofp.OFPT_MULTIPART_REPLY: _multipart_reply,
    ofp.OFPT_BARRIER_REPLY: BODY,
    ofp.OFPT_ROLE_REPLY: BODY + records.ROLE_REPLY.size,
}
"""Messages of switches: the size of the whole message, or the function that checks it."""
