"""Conversion of rules and groups to OpenFlow 1.3 messages, and of statistics to rules.

This needs only the parser of a Ryu datapath, no connection.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from knotless.controller.openflow.entries import FlowEntry, GroupEntry
from knotless.controller.reconcile import Change, FoundGroup, FoundRule, GroupChange, RuleChange
from knotless.forwarding.openflow.rules import (
    Action,
    Field,
    Group,
    Output,
    PopVlan,
    PushVlan,
    Rule,
    SetField,
    ToGroup,
    match_order,
)

VLAN_TPID = 0x8100
_ALL_METADATA = 0xFFFFFFFFFFFFFFFF
_ALL_COOKIE = 0xFFFFFFFFFFFFFFFF
_CACHED_BYTES = 256
_TYPES = {field.name: field.type for field in ofp.oxm_types}
# For fields that do not fill their bytes: the mask with all bits.
_NARROW = {"vlan_vid": 0x1FFF, "vlan_pcp": 0x7, "ip_dscp": 0x3F, "ip_ecn": 0x3, "mpls_tc": 0x7}
_RULE_COMMANDS = {
    "add": ofp.OFPFC_ADD,
    "modify": ofp.OFPFC_MODIFY_STRICT,
    "delete": ofp.OFPFC_DELETE_STRICT,
}
_GROUP_COMMANDS = {
    "add": ofp.OFPGC_ADD,
    "modify": ofp.OFPGC_MODIFY,
    "delete": ofp.OFPGC_DELETE,
}


Parsed = TypeVar("Parsed")
Written = tuple[tuple[Action, ...], int | None, int | None]
"""Actions, metadata and next table of a rule."""


class UnknownToUsError(Exception):
    """An entry in a switch uses something that our rules cannot represent."""


# --- values to messages ----------------------------------------------------------------------


def change_message(datapath: Any, change: Change) -> Any:
    """Return the message for ``change``, which affects no other entry."""
    if isinstance(change, RuleChange):
        return _flow_mod(datapath, change)
    return _group_mod(datapath, change)


def _flow_mod(datapath: Any, change: RuleChange) -> Any:
    rule = change.rule
    delete = change.command == "delete"
    return parser.OFPFlowMod(
        datapath,
        cookie=rule.cookie,
        # Delete only our own entry: another controller may have replaced it in the meantime.
        cookie_mask=_ALL_COOKIE if delete else 0,
        table_id=rule.table,
        command=_RULE_COMMANDS[change.command],
        priority=rule.priority,
        buffer_id=ofp.OFP_NO_BUFFER,
        out_port=ofp.OFPP_ANY,
        out_group=ofp.OFPG_ANY,
        match=match_of(rule.match),
        instructions=() if delete else _instructions(rule.actions, rule.metadata, rule.goto),
    )


def _group_mod(datapath: Any, change: GroupChange) -> Any:
    group = change.group
    watch = group.watch or (ofp.OFPP_ANY,) * len(group.buckets)
    buckets = [
        parser.OFPBucket(
            watch_port=port, watch_group=ofp.OFPG_ANY, actions=[_action(a) for a in bucket]
        )
        for port, bucket in zip(watch, group.buckets, strict=True)
    ]
    return parser.OFPGroupMod(
        datapath,
        _GROUP_COMMANDS[change.command],
        ofp.OFPGT_FF if group.watch else ofp.OFPGT_ALL,
        group.group_id,
        [] if change.command == "delete" else buckets,
    )


def match_of(fields: tuple[Field, ...]) -> Any:
    """Return ``fields`` as an OpenFlow match."""
    return parser.OFPMatch(
        **{
            f.name: _to_ryu(f.name, f.value)
            if f.mask is None
            else (_to_ryu(f.name, f.value), _to_ryu(f.name, f.mask))
            for f in fields
        }
    )


@lru_cache(maxsize=4096)
def _instructions(
    actions: tuple[Action, ...], metadata: int | None, goto: int | None
) -> tuple[Any, ...]:
    """Return the instructions of a rule; cached, because thousands of rules share a few."""
    instructions = []
    if actions:
        applied = [_action(action) for action in actions]
        instructions.append(parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, applied))
    if metadata is not None:
        instructions.append(parser.OFPInstructionWriteMetadata(metadata, _ALL_METADATA))
    if goto is not None:
        instructions.append(parser.OFPInstructionGotoTable(goto))
    return tuple(instructions)


def _action(action: Action) -> Any:
    match action:
        case Output(port):
            return parser.OFPActionOutput(port, ofp.OFPCML_NO_BUFFER)
        case PushVlan():
            return parser.OFPActionPushVlan(VLAN_TPID)
        case PopVlan():
            return parser.OFPActionPopVlan()
        case SetField(name, value):
            return parser.OFPActionSetField(**{name: _to_ryu(name, value)})
        case ToGroup(group_id):
            return parser.OFPActionGroup(group_id)


@lru_cache(maxsize=65536)
def _to_ryu(name: str, value: int) -> Any:
    """Return ``value`` in Ryu's form of field ``name``: a MAC as text, a number unchanged."""
    kind = _TYPES[name]
    return kind.to_user(value.to_bytes(kind.size, "big"))


# --- statistics to values --------------------------------------------------------------------


def found_rule(entry: FlowEntry) -> FoundRule:
    """Parse an entry of a flow statistics reply.

    ``rule`` is None if the entry has something that Knotless never writes: a time-out, a flag,
    an unknown action. Matches compare equal with those of compiled rules.
    """
    match = _cached(_fields, entry.match_bytes)
    written, uses = _cached(_written, entry.instruction_bytes)
    rule: Rule | None = None
    if entry.is_plain and written is not None:
        rule = Rule(entry.table, entry.priority, match, *written, entry.cookie)
    return FoundRule(entry.table, entry.priority, match, entry.cookie, rule, uses)


def found_group(entry: GroupEntry) -> FoundGroup:
    """Parse an entry of a group description reply; ``group`` is None if not representable."""
    if entry.type not in (ofp.OFPGT_ALL, ofp.OFPGT_FF):
        return FoundGroup(entry.group_id, None)
    buckets: list[tuple[Action, ...]] = []
    watched = []
    for port, actions in entry.bucket_bytes():
        found = [_cached(_ours, data) for data in actions]
        known = tuple(action for action in found if action is not None)
        if len(known) < len(found):
            return FoundGroup(entry.group_id, None)
        buckets.append(known)
        watched.append(port)
    watch = tuple(watched) if entry.type == ofp.OFPGT_FF else ()
    return FoundGroup(entry.group_id, Group(entry.group_id, tuple(buckets), watch))


def _ours(data: bytes) -> Action | None:
    """Return what an action does, None if no group of ours does that."""
    try:
        return _value(parser.OFPAction.parser(data, 0))
    except UnknownToUsError:
        return None


def _cached(parse: Callable[[bytes], Parsed], data: bytes) -> Parsed:
    """Return ``parse(data)``; long ones are not kept, so that no switch can fill the memory."""
    if len(data) > _CACHED_BYTES:
        return parse(data)
    return _parsed(parse, data)  # type: ignore[return-value]


@lru_cache(maxsize=65536)
def _parsed(parse: Callable[[bytes], object], data: bytes) -> object:
    return parse(data)


def _fields(data: bytes) -> tuple[Field, ...]:
    found = parser.OFPMatch.parser(data, 0).items()
    return match_order(f for f in map(_field, found) if f is not None)


def _field(item: tuple[str, Any]) -> Field | None:
    name, content = item
    value, mask = content if isinstance(content, tuple) else (content, None)
    kind = _TYPES.get(name)
    if kind is None:
        # An experimenter field, which none of our matches has: the value does not matter.
        return Field(name, 0)
    number = int.from_bytes(kind.from_user(value), "big")
    if mask is None:
        return Field(name, number)
    bits = int.from_bytes(kind.from_user(mask), "big")
    full = _NARROW.get(name, (1 << (8 * kind.size)) - 1)
    if not bits:
        return None
    return Field(name, number) if bits & full == full else Field(name, number & bits, bits)


def _written(data: bytes) -> tuple[Written | None, frozenset[int]]:
    """Return what instructions say, None if a rule of ours never says that, and their groups."""
    instructions, at = [], 0
    while at < len(data):
        instructions.append(parser.OFPInstruction.parser(data, at))
        at += instructions[-1].len
    uses = _groups_used(instructions)
    try:
        return _parts(instructions), uses
    except UnknownToUsError:
        return None, uses


def _parts(instructions: list[Any]) -> Written:
    actions: tuple[Action, ...] = ()
    metadata: int | None = None
    goto: int | None = None
    for instruction in instructions:
        if instruction.type == ofp.OFPIT_APPLY_ACTIONS:
            actions = tuple(map(_value, instruction.actions))
        elif instruction.type == ofp.OFPIT_GOTO_TABLE:
            goto = instruction.table_id
        elif (
            instruction.type == ofp.OFPIT_WRITE_METADATA
            and instruction.metadata_mask == _ALL_METADATA
        ):
            metadata = instruction.metadata
        else:
            raise UnknownToUsError(f"instruction {instruction.type}")
    return actions, metadata, goto


def _value(action: Any) -> Action:
    if action.type == ofp.OFPAT_OUTPUT:
        return Output(action.port)
    if action.type == ofp.OFPAT_PUSH_VLAN and action.ethertype == VLAN_TPID:
        return PushVlan()
    if action.type == ofp.OFPAT_POP_VLAN:
        return PopVlan()
    if action.type == ofp.OFPAT_GROUP:
        return ToGroup(action.group_id)
    if action.type == ofp.OFPAT_SET_FIELD and action.key in _TYPES:
        kind = _TYPES[action.key]
        return SetField(action.key, int.from_bytes(kind.from_user(action.value), "big"))
    raise UnknownToUsError(f"action {action.type}")


def _groups_used(instructions: list[Any]) -> frozenset[int]:
    return frozenset(
        action.group_id
        for instruction in instructions
        for action in getattr(instruction, "actions", ())
        if action.type == ofp.OFPAT_GROUP
    )
