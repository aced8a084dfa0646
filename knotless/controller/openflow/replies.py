"""Readings of messages of switches, which :mod:`knotless.controller.openflow.checks` has accepted.

A list of rules is read entry by entry, each kept as its bytes until it is needed.

References
----------
ONF TS-012, OpenFlow Switch Specification 1.3.4, sections 7.3 to 7.5.

"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from knotless.controller.openflow import constants as ofp
from knotless.controller.openflow.checks import (
    PACKET_IN_MATCH,
    PACKET_IN_PADDING,
    flow_entry,
    group_entry,
    length_first,
    match_at,
)
from knotless.controller.openflow.elements import FIELDS, Buffer, parse_element
from knotless.controller.openflow.error_names import error_name
from knotless.controller.openflow.records import (
    BODY,
    ENTRIES,
    ERROR,
    EXPERIMENTER_ERROR,
    FLOW_STATS,
    GROUP_DESC,
    HEADER,
    MULTIPART_REPLY,
    PACKET_IN,
    PORT,
    PORT_STATS,
    PORT_STATUS,
    Port,
    PortStats,
)
from knotless.controller.reconcile import FoundGroup, FoundRule
from knotless.forwarding.openflow.rules import Group, Rule


def offers(hello: bytes, version: int) -> bool:
    """Return whether a switch that greets like this can speak a version (6.3.1).

    If it lists its versions, this must be one of them, else its latest must not be older.
    """
    offset = BODY
    while offset < len(hello):
        kind, length = parse_element(hello, offset, len(hello))
        if kind == ofp.OFPHET_VERSIONBITMAP:
            # Words of 32 bits; the first bit of the first word is version 0.
            bitmap = int.from_bytes(hello[offset + 4 : offset + 8], "big")
            return bool(bitmap >> version & 1)
        offset += length
    return hello[0] >= version


class Refusal(NamedTuple):
    """An error message.

    Attributes
    ----------
    xid : the transaction that was refused: of the request, which is not always that of the error.
    kind, code : numbers of the error.
    request : type of the request; None: it is not in the message.
    reason : OpenFlow's name of the error.

    """

    xid: int
    kind: int
    code: int
    request: int | None
    reason: str


def read_refusal(message: bytes) -> Refusal:
    """Return what an error message says (7.4.4)."""
    kind, code = ERROR.read(message, BODY)
    reason, begin = error_name(kind, code), BODY + ERROR.size
    if kind == ofp.OFPET_EXPERIMENTER:  # such as that a bundle has failed
        _, code, maker = EXPERIMENTER_ERROR.read(message, BODY)
        reason, begin = f"error {code} of experimenter {maker:#x}", BODY + EXPERIMENTER_ERROR.size
    if len(message) < begin + HEADER.size:
        return Refusal(HEADER.read(message).xid, kind, code, None, reason)
    request = HEADER.read(message, begin)
    return Refusal(request.xid, kind, code, request.type, reason)


def read_port_status(message: bytes) -> tuple[int, Port]:
    """Return why a port is reported, and the port."""
    return PORT_STATUS.read(message, BODY).reason, PORT.read(message, BODY + PORT_STATUS.size)


def is_up(port: Port) -> bool:
    """Return whether a port is switched on and has a carrier."""
    return not (port.config & ofp.OFPPC_PORT_DOWN or port.state & ofp.OFPPS_LINK_DOWN)


def read_packet_in(message: bytes) -> tuple[int | None, bytes]:
    """Return the port of a packet-in, None if it has none, and its frame."""
    match, end = match_at(message, PACKET_IN_MATCH, len(message))
    port = next((field.value for field in match if field.name == "in_port"), None)
    return port, message[end + PACKET_IN_PADDING :]


def cookie_of(packet_in: bytes) -> int:
    """Return the cookie of the rule that has sent a packet-in."""
    return PACKET_IN.read(packet_in, BODY).cookie


# --- entries of multipart replies ------------------------------------------------------------


def has_more(message: Buffer) -> bool:
    """Return whether other parts of this multipart reply follow."""
    return bool(MULTIPART_REPLY.read(message, BODY).flags & ofp.OFPMPF_REPLY_MORE)


def entries(message: bytes) -> Iterator[bytes]:
    """Yield the entries of a list of rules, or of groups."""
    offset = ENTRIES
    while offset < len(message):
        end = offset + length_first(message, offset, len(message), GROUP_DESC.size)
        yield message[offset:end]
        offset = end


def port_stats(message: bytes) -> Iterator[PortStats]:
    """Yield the counters of each port."""
    for offset in range(ENTRIES, len(message), PORT_STATS.size):
        yield PORT_STATS.read(message, offset)


def port_descriptions(message: bytes) -> Iterator[Port]:
    """Yield each port."""
    for offset in range(ENTRIES, len(message), PORT.size):
        yield PORT.read(message, offset)


def read_rule(entry: bytes) -> FoundRule:
    """Read an entry of the list of rules.

    ``rule`` is None if the entry has something that Knotless never writes: a time-out, a flag,
    an unknown action or match field. Matches compare equal with those of compiled rules.
    """
    stats = FLOW_STATS.read(entry)
    match, (written, groups) = flow_entry(entry, 0, len(entry))
    rule: Rule | None = None
    is_openflow = all(field.name in FIELDS for field in match)
    is_plain = not (stats.idle_timeout or stats.hard_timeout or stats.flags)
    if written is not None and is_openflow and is_plain:
        rule = Rule(stats.table_id, stats.priority, match, *written, stats.cookie)
    return FoundRule(stats.table_id, stats.priority, match, stats.cookie, rule, groups)


def packet_count(entry: bytes) -> int:
    """Return how many packets have matched a rule."""
    return FLOW_STATS.read(entry).packet_count


def read_group(entry: bytes) -> FoundGroup:
    """Read an entry of the list of groups; ``group`` is None if no group of ours is like that."""
    _, kind, group_id = GROUP_DESC.read(entry)
    buckets = group_entry(entry, 0, len(entry))
    is_complete = all(complete for _, (_, complete) in buckets)
    if kind not in (ofp.OFPGT_ALL, ofp.OFPGT_FF) or not is_complete:
        return FoundGroup(group_id, None)
    watch = tuple(port for port, _ in buckets) if kind == ofp.OFPGT_FF else ()
    actions = tuple(actions for _, (actions, _) in buckets)
    return FoundGroup(group_id, Group(group_id, actions, watch))
