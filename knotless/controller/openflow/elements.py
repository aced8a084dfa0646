"""Match fields, actions and instructions of OpenFlow 1.3: written, checked and read by one table.

The tables of this module have the size and the layout of each kind of element. ``emit_*`` return
the bytes of values of :mod:`knotless.forwarding.openflow.rules`; ``parse_*`` accept bytes of a
switch if they are well formed, and return their values.

References
----------
ONF TS-012, OpenFlow Switch Specification 1.3.4, sections 7.2.3 to 7.2.5. The actions of Nicira are
those of Open vSwitch: ovs-actions(7), and struct nx_action_bundle in its lib/ofp-actions.c.

"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from struct import Struct
from typing import NamedTuple

from knotless.controller.openflow import constants as ofp
from knotless.controller.reconcile import OTHER_FIELD
from knotless.forwarding.openflow.rules import (
    Action,
    Choose,
    Field,
    Output,
    PopVlan,
    PushVlan,
    SetField,
    ToGroup,
    match_order,
)


class WireError(Exception):
    """A message that no well-behaved switch sends; the text says what is wrong with it."""


Buffer = bytes | bytearray
Match = tuple[Field, ...]
Actions = tuple[tuple[Action, ...], bool]
"""The actions of a list that our rules may have, and whether these are all of them."""
Instructions = tuple[tuple[tuple[Action, ...], int | None, int | None] | None, frozenset[int]]
"""Actions, metadata and next table of a rule, None if no rule of ours does that; and all groups
that any of its actions names."""

_TYPE_LENGTH = Struct("!HH")
_OXM = Struct("!HBB")
"""Header of a match field: its class, its number and the mask bit, the bytes that follow."""
_BASIC = ofp.OFPXMC_OPENFLOW_BASIC
_VLAN_TPID = 0x8100
_ALL_METADATA = 0xFFFFFFFFFFFFFFFF
_UNKNOWN_CLASS = 0xFFFE
_UNKNOWN_EXPERIMENTER = b"\xff" * 4

# --- tables ----------------------------------------------------------------------------------


class FieldType(NamedTuple):
    """A match field of OpenFlow's own class; ``size`` is the bytes of its value, or its mask."""

    number: int
    name: str
    size: int
    all_bits: int
    """The mask that means the same as none."""
    header: bytes
    """Of a field without mask."""


class ActionType(NamedTuple):
    """An action; ``read`` makes one of our rules of its values, or None if they never have it."""

    layout: Struct
    read: Callable[..., Action | None] = lambda *_values: None


def _field_type(number: int, name: str, size: int) -> FieldType:
    all_bits = (1 << ofp.OXM_BITS.get(name, 8 * size)) - 1
    return FieldType(number, name, size, all_bits, _OXM.pack(_BASIC, number << 1, size))


FIELDS = {
    name: _field_type(number, name, size) for number, (name, size) in enumerate(ofp.OXM_FIELDS)
}
"""Every field of OpenFlow's own class, by its name."""
_NUMBERED = {field.number: field for field in FIELDS.values()}

_NO_VALUES = Struct("!HH4x")
_OUTPUT = Struct("!HHIH6x")
_GROUP = Struct("!HHI")
_ETHER_TYPE = Struct("!HHH2x")
_TTL = Struct("!HHB3x")
ACTIONS = {
    ofp.OFPAT_OUTPUT: ActionType(_OUTPUT, lambda port, _max_bytes: Output(port)),
    ofp.OFPAT_COPY_TTL_OUT: ActionType(_NO_VALUES),
    ofp.OFPAT_COPY_TTL_IN: ActionType(_NO_VALUES),
    ofp.OFPAT_SET_MPLS_TTL: ActionType(_TTL),
    ofp.OFPAT_DEC_MPLS_TTL: ActionType(_NO_VALUES),
    ofp.OFPAT_PUSH_VLAN: ActionType(
        _ETHER_TYPE, lambda tpid: PushVlan() if tpid == _VLAN_TPID else None
    ),
    ofp.OFPAT_POP_VLAN: ActionType(_NO_VALUES, PopVlan),
    ofp.OFPAT_PUSH_MPLS: ActionType(_ETHER_TYPE),
    ofp.OFPAT_POP_MPLS: ActionType(_ETHER_TYPE),
    ofp.OFPAT_SET_QUEUE: ActionType(Struct("!HHI")),
    ofp.OFPAT_GROUP: ActionType(_GROUP, ToGroup),
    ofp.OFPAT_SET_NW_TTL: ActionType(_TTL),
    ofp.OFPAT_DEC_NW_TTL: ActionType(_NO_VALUES),
    ofp.OFPAT_PUSH_PBB: ActionType(_ETHER_TYPE),
    ofp.OFPAT_POP_PBB: ActionType(_NO_VALUES),
}
"""Every action of fixed size. Set-field encloses a match field; experimenters define theirs."""
_NX_MOVE = Struct("!HHIHHHH4s4s")
_NX_BUNDLE = Struct("!HHIHHHHIHH4s4x")
_NX_MEMBER = Struct("!H")
_NICIRA, _REG_MOVE, _BUNDLE_LOAD = 0x2320, 6, 13
_HIGHEST_SCORE, _OF_ETH_SRC, _OFPORTS, _LOW_16_BITS = 1, 0, 2, 15
"""Arguments of bundle_load: algorithm hrw, hashed field, type of the members, bits written."""
_GOTO = Struct("!HHB3x")
_METADATA = Struct("!HH4xQQ")
INSTRUCTIONS = {
    ofp.OFPIT_GOTO_TABLE: _GOTO,
    ofp.OFPIT_WRITE_METADATA: _METADATA,
    ofp.OFPIT_METER: Struct("!HHI"),
}
"""Every instruction of fixed size."""
_ACTION_LIST = Struct("!HH4x")
_ACTION_LISTS = (ofp.OFPIT_WRITE_ACTIONS, ofp.OFPIT_APPLY_ACTIONS, ofp.OFPIT_CLEAR_ACTIONS)
"""The instructions that enclose actions, and what these begin with."""

# --- values to bytes -------------------------------------------------------------------------


def emit_match(fields: Iterable[Field]) -> bytes:
    """Return a match with its padding.

    Raises KeyError for a field that is not in :data:`FIELDS`, and OverflowError for a value that
    does not fit it.
    """
    # By number, as OpenFlow demands: a field comes after those that it depends on.
    body = b"".join(sorted(map(_emit_field, fields)))
    length = _TYPE_LENGTH.size + len(body)
    return _TYPE_LENGTH.pack(ofp.OFPMT_OXM, length) + body + bytes(-length % 8)


def emit_actions(actions: Iterable[Action]) -> bytes:
    """Return a list of actions. Raises as :func:`emit_match`."""
    return b"".join(map(_emit_action, actions))


def emit_instructions(actions: tuple[Action, ...], metadata: int | None, goto: int | None) -> bytes:
    """Return the instructions of a rule that applies, writes and goes on like this."""
    parts = []
    if actions:
        body = emit_actions(actions)
        length = _ACTION_LIST.size + len(body)
        parts.append(_ACTION_LIST.pack(ofp.OFPIT_APPLY_ACTIONS, length) + body)
    if metadata is not None:
        values = (_METADATA.size, metadata, _ALL_METADATA)
        parts.append(_METADATA.pack(ofp.OFPIT_WRITE_METADATA, *values))
    if goto is not None:
        parts.append(_GOTO.pack(ofp.OFPIT_GOTO_TABLE, _GOTO.size, goto))
    return b"".join(parts)


def _emit_field(field: Field) -> bytes:
    name, value, mask = field
    kind = FIELDS[name]
    if mask is None:
        return kind.header + value.to_bytes(kind.size, "big")
    header = _OXM.pack(_BASIC, kind.number << 1 | 1, 2 * kind.size)
    return header + (value & mask).to_bytes(kind.size, "big") + mask.to_bytes(kind.size, "big")


def _emit_action(action: Action) -> bytes:
    match action:
        case Output(port):
            return _OUTPUT.pack(ofp.OFPAT_OUTPUT, _OUTPUT.size, port, ofp.OFPCML_NO_BUFFER)
        case ToGroup(group_id):
            return _GROUP.pack(ofp.OFPAT_GROUP, _GROUP.size, group_id)
        case SetField(name, value):
            body = _emit_field(Field(name, value))
            length = (_TYPE_LENGTH.size + len(body) + 7) // 8 * 8
            return (_TYPE_LENGTH.pack(ofp.OFPAT_SET_FIELD, length) + body).ljust(length, b"\0")
        case PushVlan():
            return _ETHER_TYPE.pack(ofp.OFPAT_PUSH_VLAN, _ETHER_TYPE.size, _VLAN_TPID)
        case PopVlan():
            return _NO_VALUES.pack(ofp.OFPAT_POP_VLAN, _NO_VALUES.size)
        case Choose(ports, basis):
            return _emit_choice(ports, basis)


def _move(bits: int, source: bytes, target: bytes, first_bit: int = 0) -> bytes:
    head = (ofp.OFPAT_EXPERIMENTER, _NX_MOVE.size, _NICIRA, _REG_MOVE)
    return _NX_MOVE.pack(*head, bits, 0, first_bit, source, target)


# Open vSwitch takes OpenFlow's own class here as well, but says Nicira's of fields that have both.
_ETH_DST, _ETH_SRC = _OXM.pack(0, 1 << 1, 6), _OXM.pack(0, 2 << 1, 6)
_XXREG0 = _OXM.pack(1, 111 << 1, 16)
_HASH_BOTH = _move(48, _ETH_SRC, _XXREG0) + _move(24, _ETH_DST, _ETH_SRC, 24)
_RESTORE_SOURCE = _move(48, _XXREG0, _ETH_SRC)
"""What is before and after bundle_load, see :class:`knotless.forwarding.openflow.rules.Choose`."""


def _emit_choice(ports: tuple[int, ...], basis: int) -> bytes:
    length = (_NX_BUNDLE.size + _NX_MEMBER.size * len(ports) + 7) // 8 * 8
    head = (ofp.OFPAT_EXPERIMENTER, length, _NICIRA, _BUNDLE_LOAD)
    how = (_HIGHEST_SCORE, _OF_ETH_SRC, basis, _OFPORTS, len(ports), _LOW_16_BITS)
    bundle = _NX_BUNDLE.pack(*head, *how, FIELDS["metadata"].header)
    members = b"".join(map(_NX_MEMBER.pack, ports))
    return _HASH_BOTH + (bundle + members).ljust(length, b"\0") + _RESTORE_SOURCE


# --- bytes of a switch to values -------------------------------------------------------------
#
# Match fields of another class than OpenFlow's own we never use, and actions of experimenters only
# as a choice. Others are relabelled in place with a class and an experimenter that Ryu does not
# know, so that it keeps them as opaque bytes instead of parsing them.


def parse_element(data: Buffer, offset: int, end: int, least: int = 8) -> tuple[int, int]:
    """Return type and length of an element at ``offset``, which must end at ``end`` or before.

    Raises
    ------
    WireError
        It has less than ``least`` bytes or does not fit. All ``parse_*`` raise this if any length
        does not fit what encloses it, or a size is not that of the table.

    """
    rest = end - offset
    if rest < _TYPE_LENGTH.size:
        raise WireError(f"{rest} bytes where an element should begin")
    kind, length = _TYPE_LENGTH.unpack_from(data, offset)
    if length < least or length > rest:
        raise WireError(f"element of type {kind} with length {length} where {rest} bytes are")
    return kind, length


def parse_match(data: bytearray) -> Match:
    """Return the fields of a match, whose header and padding are not in ``data``.

    They have the order and form of those of compiled rules. A field of another class is called
    ``field_N``, as by Ryu, and its value is 0: no rule of ours has one, and none can be written.
    """
    fields, offset = list[Field](), 0
    while offset < len(data):
        field, offset = _parse_field(data, offset, len(data))
        if field is not None:
            fields.append(field)
    return match_order(fields)


def parse_instructions(data: bytearray) -> Instructions:
    """Return what instructions say."""
    actions: tuple[Action, ...] = ()
    metadata: int | None = None
    goto: int | None = None
    groups, offset, is_ours = set[int](), 0, True
    while offset < len(data):
        kind, length = parse_element(data, offset, len(data))
        if kind in _ACTION_LISTS and length % 8 == 0:
            start = offset + _ACTION_LIST.size
            actions, is_complete = parse_actions(data, start, offset + length)
            groups |= {action.group_id for action in actions if isinstance(action, ToGroup)}
            is_ours = is_ours and is_complete and kind == ofp.OFPIT_APPLY_ACTIONS
        elif kind not in INSTRUCTIONS or length != INSTRUCTIONS[kind].size:
            raise WireError(f"instruction of type {kind} with {length} bytes")
        elif kind == ofp.OFPIT_GOTO_TABLE:
            _, _, goto = _GOTO.unpack_from(data, offset)
        elif kind == ofp.OFPIT_WRITE_METADATA:
            _, _, metadata, mask = _METADATA.unpack_from(data, offset)
            is_ours = is_ours and mask == _ALL_METADATA
        else:
            is_ours = False
        offset += length
    return (actions, metadata, goto) if is_ours else None, frozenset(groups)


def parse_actions(data: bytearray, offset: int = 0, end: int | None = None) -> Actions:
    """Return a list of actions, which ends at ``end`` or where ``data`` ends."""
    end = len(data) if end is None else end
    actions, is_complete = list[Action](), True
    while offset < end:
        kind, length = parse_element(data, offset, end)
        action: Action | None = None
        if kind == ofp.OFPAT_EXPERIMENTER and (choice := _parse_choice(data, offset, end)):
            action, length = choice
        elif kind == ofp.OFPAT_SET_FIELD and length % 8 == 0:
            is_masked = data[offset + 6] & 1
            field, stop = _parse_field(data, offset + 4, offset + length)
            if field is None or is_masked or (stop - offset + 7) // 8 * 8 != length:
                raise WireError(f"set-field action with {length} bytes")
            action = SetField(field.name, field.value) if field.name in FIELDS else None
        elif kind == ofp.OFPAT_EXPERIMENTER and length % 8 == 0:
            data[offset + 4 : offset + 8] = _UNKNOWN_EXPERIMENTER
        elif kind in ACTIONS and length == ACTIONS[kind].layout.size:
            _, _, *values = ACTIONS[kind].layout.unpack_from(data, offset)
            action = ACTIONS[kind].read(*values)
        else:
            raise WireError(f"action of type {kind} with {length} bytes")
        if action is not None:
            actions.append(action)
        is_complete = is_complete and action is not None
        offset += length
    return tuple(actions), is_complete


def _parse_choice(data: bytearray, offset: int, end: int) -> tuple[Choose, int] | None:
    """Return the choice whose actions begin at ``offset``, and their bytes; None if none does."""
    start = offset + len(_HASH_BOTH)
    if data[offset:start] != _HASH_BOTH or start + _NX_BUNDLE.size > end:
        return None
    *_, basis, _, count, _, _ = _NX_BUNDLE.unpack_from(data, start)
    first = start + _NX_BUNDLE.size
    if first + _NX_MEMBER.size * count > end:
        return None
    members = data[first : first + _NX_MEMBER.size * count]
    ports = tuple(port for (port,) in _NX_MEMBER.iter_unpack(members))
    whole = _emit_choice(ports, basis)
    if not ports or offset + len(whole) > end or data[offset : offset + len(whole)] != whole:
        return None
    return Choose(ports, basis), len(whole)


def _parse_field(data: bytearray, offset: int, end: int) -> tuple[Field | None, int]:
    """Return a match field, None if it matches everything, and where it ends."""
    start = offset + _OXM.size
    if start > end:
        raise WireError(f"{end - offset} bytes where a match field should begin")
    oxm_class, number, length = _OXM.unpack_from(data, offset)
    number, is_masked = number >> 1, number & 1
    if start + length > end:
        raise WireError(f"match field {number} with {length} bytes where {end - start} are")
    if oxm_class != _BASIC:
        if length < 1 or (is_masked and length % 2):
            raise WireError(f"match field {number} of class {oxm_class:#x} with {length} bytes")
        data[offset : offset + 2] = _UNKNOWN_CLASS.to_bytes(2, "big")
        return Field(f"{OTHER_FIELD}{_UNKNOWN_CLASS << 7 | number}", 0), start + length
    kind = _NUMBERED.get(number)
    if kind is None or length != kind.size << is_masked:
        raise WireError(f"match field {number} with {length} bytes")
    value = int.from_bytes(data[start : start + kind.size], "big")
    mask = int.from_bytes(data[start + kind.size : start + length], "big")
    if not is_masked or mask & kind.all_bits == kind.all_bits:
        return Field(kind.name, value), start + length
    return Field(kind.name, value & mask, mask) if mask else None, start + length
