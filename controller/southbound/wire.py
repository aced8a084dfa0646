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

VERSION = 4
_GREETINGS = frozenset({1, 3, 4, 5, 6})
"""OpenFlow 1.0 and 1.2 to 1.5: a switch greets in the latest version that it speaks."""
HEADER_BYTES = 8
HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY, EXPERIMENTER = 0, 1, 2, 3, 4
FEATURES_REPLY, PACKET_IN = 6, 10
MULTIPART_REQUEST, MULTIPART_REPLY = 18, 19

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
    if version != VERSION and not (kind == HELLO and version in _GREETINGS):
        raise WireError(f"message of type {kind} in OpenFlow version {version}, not {VERSION}")
    checker = _MESSAGES.get(kind)
    if checker is None:
        raise WireError(f"message of type {kind}, which switches do not send to controllers")
    checker(message)


# --- whole messages --------------------------------------------------------------------------


def _of_size(*sizes: int) -> Callable[[bytearray], None]:
    def checker(message: bytearray) -> None:
        if len(message) not in sizes:
            raise WireError(f"message of type {message[1]} with {len(message)} bytes")

    return checker


def _at_least(size: int) -> Callable[[bytearray], None]:
    def checker(message: bytearray) -> None:
        if len(message) < size:
            raise WireError(f"message of type {message[1]} with {len(message)} bytes")

    return checker


def _hello(message: bytearray) -> None:
    at = HEADER_BYTES
    while at < len(message):
        kind, length = _element(message, at, len(message), 4)
        # Ryu steps by the length without its padding, so only lengths without any are safe.
        if length % 8 or (kind == 1 and length < 8):
            raise WireError(f"hello element of type {kind} with {length} bytes")
        at += length


def _error(message: bytearray) -> None:
    experimenter = message[HEADER_BYTES : HEADER_BYTES + 2] == b"\xff\xff"
    if len(message) < (16 if experimenter else 12):
        raise WireError(f"error message with {len(message)} bytes")


def _bundle_control(message: bytearray) -> None:
    # Ryu 4.34 cannot read any property that follows.
    if len(message) != 24 or message[HEADER_BYTES:16] != _BUNDLE_CONTROL:
        raise WireError("experimenter message other than an answer about a bundle")


def _packet_in(message: bytearray) -> None:
    # buffer_id, total_len, reason, table_id, cookie; then the match and two bytes of padding.
    end = _match(message, 24, len(message))
    if end + 2 > len(message):
        raise WireError("packet-in without padding after its match")


def _flow_removed(message: bytearray) -> None:
    if _match(message, 48, len(message)) != len(message):
        raise WireError("flow-removed with bytes after its match")


def _multipart_reply(message: bytearray) -> None:
    if len(message) < 16:
        raise WireError(f"multipart reply with {len(message)} bytes")
    (kind,) = _U16.unpack_from(message, HEADER_BYTES)
    body = _MULTIPARTS.get(kind)
    if body is None:
        raise WireError(f"multipart reply of type {kind}, which nobody asked for")
    body(message)


# --- bodies of multipart replies --------------------------------------------------------------


def _description(message: bytearray) -> None:
    if len(message) != 16 + 1056:
        raise WireError(f"switch description with {len(message) - 16} bytes")


def _entries_of(size: int, what: str) -> Callable[[bytearray], None]:
    def checker(message: bytearray) -> None:
        if (len(message) - 16) % size:
            raise WireError(f"{what} not of {size} bytes each")

    return checker


def _flow_entries(message: bytearray) -> None:
    at = 16
    while at < len(message):
        length = _length_first(message, at, len(message), 56)
        end = at + length
        place = _match(message, at + 48, end)
        while place < end:
            place += _instruction(message, place, end)
        at = end


def _group_descriptions(message: bytearray) -> None:
    at = 16
    while at < len(message):
        end = at + _length_first(message, at, len(message), 8)
        place = at + 8
        while place < end:
            length = _length_first(message, place, end, 16)
            _actions(message, place + 16, place + length)
            place += length
        at = end


def _group_counters(message: bytearray) -> None:
    at = 16
    while at < len(message):
        length = _length_first(message, at, len(message), 40)
        if (length - 40) % 16:
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
    if kind != 1 or padded > end:
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
    if oxm_class == _BASIC_CLASS:
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
    if kind in (3, 4, 5):  # write, apply, clear actions
        if length % 8:
            raise WireError(f"instruction of type {kind} with {length} bytes")
        _actions(message, at + 8, at + length)
    elif length != _INSTRUCTION_BYTES.get(kind):
        raise WireError(f"instruction of type {kind} with {length} bytes")
    return length


def _actions(message: bytearray, at: int, end: int) -> None:
    """Check a list of actions that ends at ``end``."""
    while at < end:
        kind, length = _element(message, at, end, 8)
        if length % 8:
            raise WireError(f"action of type {kind} with {length} bytes")
        if kind == _SET_FIELD:
            field_bytes = _match_field(message, at + 4, at + length)
            masked = message[at + 6] & 1
            if masked or (4 + field_bytes + 7) // 8 * 8 != length:
                raise WireError(f"set-field action with {length} bytes")
        elif kind == _EXPERIMENTER_ACTION:
            _U32.pack_into(message, at + 4, _UNKNOWN_EXPERIMENTER)
        elif length != _ACTION_BYTES.get(kind):
            raise WireError(f"action of type {kind} with {length} bytes")
        at += length


_BUNDLE_CONTROL = bytes.fromhex("4f4e4600 000008fc")
"""Experimenter ONF, type 2300."""
_BASIC_CLASS = 0x8000
_FIELD_BYTES = dict(
    enumerate(
        # From in_port (0) to ipv6_exthdr (39).
        [
            *(4, 4, 8, 6, 6, 2, 2, 1, 1, 1, 1, 4, 4, 2, 2, 2, 2, 2, 2, 1),
            *(1, 2, 4, 4, 6, 6, 16, 16, 4, 1, 1, 16, 6, 6, 4, 1, 1, 3, 8, 2),
        ]
    )
)
_INSTRUCTION_BYTES = {1: 8, 2: 24, 6: 8}
"""Of goto-table, write-metadata and meter."""
_UNKNOWN_CLASS = 0xFFFE
_SET_FIELD, _EXPERIMENTER_ACTION = 25, 0xFFFF
_UNKNOWN_EXPERIMENTER = 0xFFFFFFFF
_ACTION_BYTES = {
    0: 16,
    **dict.fromkeys([11, 12, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26, 27], 8),
}
_MULTIPARTS: dict[int, Callable[[bytearray], None]] = {
    0: _description,
    1: _flow_entries,
    4: _entries_of(112, "port counters"),
    6: _group_counters,
    7: _group_descriptions,
    13: _entries_of(64, "port descriptions"),
}
_MESSAGES: dict[int, Callable[[bytearray], None]] = {
    HELLO: _hello,
    ERROR: _error,
    ECHO_REQUEST: _at_least(HEADER_BYTES),
    ECHO_REPLY: _at_least(HEADER_BYTES),
    EXPERIMENTER: _bundle_control,
    FEATURES_REPLY: _of_size(32),
    8: _of_size(12),  # get-config reply
    PACKET_IN: _packet_in,
    11: _flow_removed,
    12: _of_size(80),  # port status
    MULTIPART_REPLY: _multipart_reply,
    21: _of_size(8),  # barrier reply
    25: _of_size(24),  # role reply
}
