"""Whether an OpenFlow 1.3 message from a switch is well formed, checked before Ryu parses it.

Ryu's parsers trust the lengths in a message: an element of length 0 makes some of them loop for
ever, and others log each message that they cannot read. :func:`check` accepts only messages that
switches may send to a controller, in which every length fits what it encloses and every element
has the size that its type demands.

References
----------
ONF TS-012, OpenFlow Switch Specification 1.3.4, sections 7.2 to 7.5.

"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from ryu.ofproto import ofproto_v1_3 as ofp

_GREETINGS = frozenset({1, 3, 4, 5, 6})
"""OpenFlow 1.0 and 1.2 to 1.5: a switch greets in the latest version that it speaks."""
_BODY = ofp.OFP_HEADER_SIZE
_ENTRIES = ofp.OFP_MULTIPART_REPLY_SIZE
"""Where the body of a message begins, and that of a multipart reply."""

_U16 = Struct("!H")
_TYPE_LENGTH = Struct("!HH")
_U32 = Struct("!I")


class WireError(Exception):
    """A message that no well-behaved switch sends; the text says what is wrong with it."""


def check(message: bytearray) -> None:
    """Check one whole message, its header included.

    Experimenter actions, and match fields that are not OpenFlow's own, we never use. They are
    relabelled in place with an experimenter and a class that Ryu does not know, so that it keeps
    them as opaque bytes instead of parsing them.

    Raises
    ------
    WireError
        Its type is none that a switch sends to a controller, or a length or size is wrong.

    """
    version, kind = message[0], message[1]
    if version != ofp.OFP_VERSION and not (kind == ofp.OFPT_HELLO and version in _GREETINGS):
        raise WireError(f"message of type {kind} in version {version}, not {ofp.OFP_VERSION}")
    checker = _MESSAGES.get(kind)
    if checker is None:
        raise WireError(f"message of type {kind}, which switches do not send to controllers")
    checker(message)


# --- whole messages --------------------------------------------------------------------------


def _anything(_message: bytearray) -> None:
    """Accept any body: Ryu keeps it as bytes."""


def _of_size(size: int) -> Callable[[bytearray], None]:
    def checker(message: bytearray) -> None:
        if len(message) != size:
            raise WireError(f"message of type {message[1]} with {len(message)} bytes")

    return checker


def _hello(message: bytearray) -> None:
    at = _BODY
    while at < len(message):
        kind, length = _element(message, at, len(message), 8)
        # Ryu steps by the length without its padding, so only lengths without any are safe.
        if length % 8:
            raise WireError(f"hello element of type {kind} with {length} bytes")
        at += length


def _error(message: bytearray) -> None:
    experimenter = message[_BODY : _BODY + 2] == b"\xff\xff"
    least = ofp.OFP_ERROR_EXPERIMENTER_MSG_SIZE if experimenter else ofp.OFP_ERROR_MSG_SIZE
    if len(message) < least:
        raise WireError(f"error message with {len(message)} bytes")


def is_role_status(message: bytearray) -> bool:
    """Tell whether a switch reports that another controller has become its master."""
    return message[1] == ofp.OFPT_EXPERIMENTER and message[_BODY:16] == _ROLE_STATUS


def _experimenter(message: bytearray) -> None:
    if is_role_status(message):
        return
    # Ryu 4.34 cannot read any property that follows.
    size = ofp.OFP_EXPERIMENTER_HEADER_SIZE + ofp.ONF_BUNDLE_CTRL_SIZE
    if len(message) != size or message[_BODY:16] != _BUNDLE_CONTROL:
        raise WireError("experimenter message other than an answer about a bundle or a role")


def _packet_in(message: bytearray) -> None:
    end = _match(message, ofp.OFP_PACKET_IN_SIZE - ofp.OFP_MATCH_SIZE, len(message))
    if end + 2 > len(message):
        raise WireError("packet-in without padding after its match")


def _flow_removed(message: bytearray) -> None:
    at = ofp.OFP_FLOW_REMOVED_SIZE - ofp.OFP_MATCH_SIZE
    if _match(message, at, len(message)) != len(message):
        raise WireError("flow-removed with bytes after its match")


def _multipart_reply(message: bytearray) -> None:
    if len(message) < _ENTRIES:
        raise WireError(f"multipart reply with {len(message)} bytes")
    (kind,) = _U16.unpack_from(message, _BODY)
    body = _MULTIPARTS.get(kind)
    if body is None:
        raise WireError(f"multipart reply of type {kind}, which nobody asked for")
    body(message)


# --- bodies of multipart replies --------------------------------------------------------------


def _entries_of(size: int, what: str) -> Callable[[bytearray], None]:
    def checker(message: bytearray) -> None:
        if (len(message) - _ENTRIES) % size:
            raise WireError(f"{what} not of {size} bytes each")

    return checker


def _flow_entries(message: bytearray) -> None:
    at = _ENTRIES
    while at < len(message):
        length = _length_first(message, at, len(message), ofp.OFP_FLOW_STATS_SIZE)
        end = at + length
        place = _match(message, at + ofp.OFP_FLOW_STATS_SIZE - ofp.OFP_MATCH_SIZE, end)
        while place < end:
            place += _instruction(message, place, end)
        at = end


def _group_descriptions(message: bytearray) -> None:
    at = _ENTRIES
    while at < len(message):
        end = at + _length_first(message, at, len(message), ofp.OFP_GROUP_DESC_STATS_SIZE)
        place = at + ofp.OFP_GROUP_DESC_STATS_SIZE
        while place < end:
            length = _length_first(message, place, end, ofp.OFP_BUCKET_SIZE)
            _actions(message, place + ofp.OFP_BUCKET_SIZE, place + length)
            place += length
        at = end


def _group_counters(message: bytearray) -> None:
    at = _ENTRIES
    while at < len(message):
        length = _length_first(message, at, len(message), ofp.OFP_GROUP_STATS_SIZE)
        if (length - ofp.OFP_GROUP_STATS_SIZE) % ofp.OFP_BUCKET_COUNTER_SIZE:
            raise WireError(f"group counters with {length} bytes")
        at += length


# --- elements ---------------------------------------------------------------------------------


def _element(message: bytearray, at: int, end: int, least: int) -> tuple[int, int]:
    """Return type and length of an element at ``at``, which must end at ``end`` or before."""
    if at + 4 > end:
        raise WireError(f"{end - at} bytes where an element should begin")
    kind, length = _TYPE_LENGTH.unpack_from(message, at)
    if length < least or at + length > end:
        raise WireError(f"element of type {kind} with length {length} where {end - at} bytes are")
    return kind, length


def _length_first(message: bytearray, at: int, end: int, least: int) -> int:
    """Return the length of an entry that begins with it."""
    if at + least > end:
        raise WireError(f"{end - at} bytes where an entry of {least} or more should begin")
    length: int = _U16.unpack_from(message, at)[0]
    if length < least or length % 8 or at + length > end:
        raise WireError(f"entry with length {length} where {end - at} bytes are")
    return length


def _match(message: bytearray, at: int, end: int) -> int:
    """Check a match; return where it ends, padding included."""
    kind, length = _element(message, at, end, 4)
    padded = at + (length + 7) // 8 * 8
    if kind != ofp.OFPMT_OXM or padded > end:
        raise WireError(f"match of type {kind} with length {length}")
    place, last = at + 4, at + length
    while place < last:
        place += _match_field(message, place, last)
    return padded


def _match_field(message: bytearray, at: int, end: int) -> int:
    """Check one OXM field; return its length, header included."""
    if at + 4 > end:
        raise WireError(f"{end - at} bytes where a match field should begin")
    header: int = _U32.unpack_from(message, at)[0]
    oxm_class, field = header >> 16, header >> 9 & 0x7F
    masked, length = bool(header & 0x100), header & 0xFF
    if at + 4 + length > end:
        raise WireError(f"match field {field} with {length} bytes where {end - at - 4} are")
    if oxm_class == ofp.OFPXMC_OPENFLOW_BASIC:
        size = _FIELD_BYTES.get(field)
        if size is None or length != size * (1 + masked):
            raise WireError(f"match field {field} with {length} bytes")
    elif length < 1 or (masked and length % 2):
        raise WireError(f"match field {field} of class {oxm_class:#x} with {length} bytes")
    else:
        _U16.pack_into(message, at, _UNKNOWN_CLASS)
    return 4 + length


def _instruction(message: bytearray, at: int, end: int) -> int:
    """Check one instruction; return its length."""
    kind, length = _element(message, at, end, 8)
    if kind in _INSTRUCTIONS_OF_ACTIONS:
        if length % 8:
            raise WireError(f"instruction of type {kind} with {length} bytes")
        _actions(message, at + ofp.OFP_INSTRUCTION_ACTIONS_SIZE, at + length)
    elif length != _INSTRUCTION_BYTES.get(kind):
        raise WireError(f"instruction of type {kind} with {length} bytes")
    return length


def _actions(message: bytearray, at: int, end: int) -> None:
    """Check a list of actions that ends at ``end``."""
    while at < end:
        kind, length = _element(message, at, end, 8)
        if length % 8:
            raise WireError(f"action of type {kind} with {length} bytes")
        if kind == ofp.OFPAT_SET_FIELD:
            field_bytes = _match_field(message, at + 4, at + length)
            masked = message[at + 6] & 1
            if masked or (4 + field_bytes + 7) // 8 * 8 != length:
                raise WireError(f"set-field action with {length} bytes")
        elif kind == ofp.OFPAT_EXPERIMENTER:
            _U32.pack_into(message, at + 4, _UNKNOWN_EXPERIMENTER)
        elif length != _ACTION_BYTES.get(kind):
            raise WireError(f"action of type {kind} with {length} bytes")
        at += length


_ROLE_STATUS = bytes.fromhex("4f4e4600 00000777")
"""Experimenter ONF, type 1911: ONF extension 191, as Open vSwitch sends it in OpenFlow 1.3."""
_BUNDLE_CONTROL = bytes.fromhex("4f4e4600 000008fc")
"""Experimenter ONF, type 2300."""
_FIELD_BYTES = {
    field.oxm_type & 0x7F: field.type.size
    for field in ofp.oxm_types
    if field.oxm_type >> 7 == ofp.OFPXMC_OPENFLOW_BASIC
}
_UNKNOWN_CLASS = 0xFFFE
_INSTRUCTIONS_OF_ACTIONS = (
    ofp.OFPIT_WRITE_ACTIONS,
    ofp.OFPIT_APPLY_ACTIONS,
    ofp.OFPIT_CLEAR_ACTIONS,
)
_INSTRUCTION_BYTES = {
    ofp.OFPIT_GOTO_TABLE: ofp.OFP_INSTRUCTION_GOTO_TABLE_SIZE,
    ofp.OFPIT_WRITE_METADATA: ofp.OFP_INSTRUCTION_WRITE_METADATA_SIZE,
    ofp.OFPIT_METER: ofp.OFP_INSTRUCTION_METER_SIZE,
}
_UNKNOWN_EXPERIMENTER = 0xFFFFFFFF
_ACTION_BYTES = {
    ofp.OFPAT_OUTPUT: ofp.OFP_ACTION_OUTPUT_SIZE,
    ofp.OFPAT_COPY_TTL_OUT: ofp.OFP_ACTION_HEADER_SIZE,
    ofp.OFPAT_COPY_TTL_IN: ofp.OFP_ACTION_HEADER_SIZE,
    ofp.OFPAT_SET_MPLS_TTL: ofp.OFP_ACTION_MPLS_TTL_SIZE,
    ofp.OFPAT_DEC_MPLS_TTL: ofp.OFP_ACTION_HEADER_SIZE,
    ofp.OFPAT_PUSH_VLAN: ofp.OFP_ACTION_PUSH_SIZE,
    ofp.OFPAT_POP_VLAN: ofp.OFP_ACTION_HEADER_SIZE,
    ofp.OFPAT_PUSH_MPLS: ofp.OFP_ACTION_PUSH_SIZE,
    ofp.OFPAT_POP_MPLS: ofp.OFP_ACTION_POP_MPLS_SIZE,
    ofp.OFPAT_SET_QUEUE: ofp.OFP_ACTION_SET_QUEUE_SIZE,
    ofp.OFPAT_GROUP: ofp.OFP_ACTION_GROUP_SIZE,
    ofp.OFPAT_SET_NW_TTL: ofp.OFP_ACTION_NW_TTL_SIZE,
    ofp.OFPAT_DEC_NW_TTL: ofp.OFP_ACTION_HEADER_SIZE,
    ofp.OFPAT_PUSH_PBB: ofp.OFP_ACTION_PUSH_SIZE,
    ofp.OFPAT_POP_PBB: ofp.OFP_ACTION_HEADER_SIZE,
}
_MULTIPARTS: dict[int, Callable[[bytearray], None]] = {
    ofp.OFPMP_DESC: _of_size(_ENTRIES + ofp.OFP_DESC_SIZE),
    ofp.OFPMP_FLOW: _flow_entries,
    ofp.OFPMP_PORT_STATS: _entries_of(ofp.OFP_PORT_STATS_SIZE, "port counters"),
    ofp.OFPMP_GROUP: _group_counters,
    ofp.OFPMP_GROUP_DESC: _group_descriptions,
    ofp.OFPMP_PORT_DESC: _entries_of(ofp.OFP_PORT_SIZE, "port descriptions"),
}
_MESSAGES: dict[int, Callable[[bytearray], None]] = {
    ofp.OFPT_HELLO: _hello,
    ofp.OFPT_ERROR: _error,
    ofp.OFPT_ECHO_REQUEST: _anything,
    ofp.OFPT_ECHO_REPLY: _anything,
    ofp.OFPT_EXPERIMENTER: _experimenter,
    ofp.OFPT_FEATURES_REPLY: _of_size(ofp.OFP_SWITCH_FEATURES_SIZE),
    ofp.OFPT_GET_CONFIG_REPLY: _of_size(ofp.OFP_SWITCH_CONFIG_SIZE),
    ofp.OFPT_PACKET_IN: _packet_in,
    ofp.OFPT_FLOW_REMOVED: _flow_removed,
    ofp.OFPT_PORT_STATUS: _of_size(ofp.OFP_PORT_STATUS_SIZE),
    ofp.OFPT_MULTIPART_REPLY: _multipart_reply,
    ofp.OFPT_BARRIER_REPLY: _of_size(ofp.OFP_HEADER_SIZE),
    ofp.OFPT_ROLE_REPLY: _of_size(ofp.OFP_ROLE_REQUEST_SIZE),
}
