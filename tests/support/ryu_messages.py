"""Rules and groups through Ryu's classes: what Knotless writes and reads must be the same."""

from __future__ import annotations

from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser
from ryu.ofproto.ofproto_protocol import ProtocolDesc

from knotless.controller.reconcile import Change, FoundGroup, FoundRule, GroupChange, RuleChange
from knotless.forwarding.openflow.rules import (
    Action,
    Choose,
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

DATAPATH = ProtocolDesc(version=ofp.OFP_VERSION)
_VLAN_TPID = 0x8100
_ALL = 0xFFFFFFFFFFFFFFFF
_TYPES = {field.name: field.type for field in ofp.oxm_types}
_NARROW = {"vlan_vid": 0x1FFF, "vlan_pcp": 0x7, "ip_dscp": 0x3F, "ip_ecn": 0x3, "mpls_tc": 0x7}
_NARROW |= {"ipv6_flabel": 0xFFFFF, "mpls_label": 0xFFFFF, "mpls_bos": 0x1, "ipv6_exthdr": 0x1FF}
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


class NotRepresentableError(Exception):
    """An entry in a switch uses something that our rules cannot represent."""


def written_by_ryu(change: Change, transaction: int) -> bytes:
    """Return the message for a change."""
    message = _flow_mod(change) if isinstance(change, RuleChange) else _group_mod(change)
    message.set_xid(transaction)
    message.serialize()
    return bytes(message.buf)


def _flow_mod(change: RuleChange) -> Any:
    rule = change.rule
    delete = change.command == "delete"
    return parser.OFPFlowMod(
        DATAPATH,
        cookie=rule.cookie,
        cookie_mask=_ALL if delete else 0,
        table_id=rule.table,
        command=_RULE_COMMANDS[change.command],
        priority=rule.priority,
        buffer_id=ofp.OFP_NO_BUFFER,
        out_port=ofp.OFPP_ANY,
        out_group=ofp.OFPG_ANY,
        match=_match(rule.match),
        instructions=() if delete else _instructions(rule),
    )


def _group_mod(change: GroupChange) -> Any:
    group = change.group
    watch = group.watch or (ofp.OFPP_ANY,) * len(group.buckets)
    buckets = [
        parser.OFPBucket(
            watch_port=port, watch_group=ofp.OFPG_ANY, actions=[_action(a) for a in bucket]
        )
        for port, bucket in zip(watch, group.buckets, strict=True)
    ]
    return parser.OFPGroupMod(
        DATAPATH,
        _GROUP_COMMANDS[change.command],
        ofp.OFPGT_FF if group.watch else ofp.OFPGT_ALL,
        group.group_id,
        [] if change.command == "delete" else buckets,
    )


def _match(fields: tuple[Field, ...]) -> Any:
    return parser.OFPMatch(
        **{
            f.name: _to_ryu(f.name, f.value)
            if f.mask is None
            else (_to_ryu(f.name, f.value), _to_ryu(f.name, f.mask))
            for f in fields
        }
    )


def _instructions(rule: Rule) -> list[Any]:
    instructions = []
    if rule.actions:
        applied = [_action(action) for action in rule.actions]
        instructions.append(parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, applied))
    if rule.metadata is not None:
        instructions.append(parser.OFPInstructionWriteMetadata(rule.metadata, _ALL))
    if rule.goto is not None:
        instructions.append(parser.OFPInstructionGotoTable(rule.goto))
    return instructions


def _action(action: Action) -> Any:
    match action:
        case Output(port):
            return parser.OFPActionOutput(port, ofp.OFPCML_NO_BUFFER)
        case PushVlan():
            return parser.OFPActionPushVlan(_VLAN_TPID)
        case PopVlan():
            return parser.OFPActionPopVlan()
        case SetField(name, value):
            return parser.OFPActionSetField(**{name: _to_ryu(name, value)})
        case ToGroup(group_id):
            return parser.OFPActionGroup(group_id)
        case Choose():
            raise NotRepresentableError("a choice is several actions")


def _to_ryu(name: str, value: int) -> Any:
    """Return ``value`` in Ryu's form of field ``name``: a MAC as text, a number unchanged."""
    kind = _TYPES[name]
    return kind.to_user(value.to_bytes(kind.size, "big"))


# --- entries of switches ---------------------------------------------------------------------


def rule_read_by_ryu(data: bytes) -> FoundRule:
    """Return an entry of a flow statistics reply, which must be well formed."""
    entry = parser.OFPFlowStats.parser(data, 0)
    match = match_order(f for f in map(_field, entry.match.items()) if f is not None)
    rule: Rule | None = None
    try:
        written = _written(entry.instructions)
    except NotRepresentableError:
        written = None
    if any(field.name not in _TYPES for field in match):
        written = None
    if written is not None and not (entry.idle_timeout or entry.hard_timeout or entry.flags):
        rule = Rule(entry.table_id, entry.priority, match, *written, entry.cookie)
    uses = frozenset(
        action.group_id
        for instruction in entry.instructions
        for action in getattr(instruction, "actions", ())
        if action.type == ofp.OFPAT_GROUP
    )
    return FoundRule(entry.table_id, entry.priority, match, entry.cookie, rule, uses)


def group_read_by_ryu(data: bytes) -> FoundGroup:
    """Return an entry of a group description reply, which must be well formed."""
    entry = parser.OFPGroupDescStats.parser(data, 0)
    if entry.type not in (ofp.OFPGT_ALL, ofp.OFPGT_FF):
        return FoundGroup(entry.group_id, None)
    try:
        buckets = tuple(tuple(map(_value, bucket.actions)) for bucket in entry.buckets)
    except NotRepresentableError:
        return FoundGroup(entry.group_id, None)
    watch = tuple(bucket.watch_port for bucket in entry.buckets)
    group = Group(entry.group_id, buckets, watch if entry.type == ofp.OFPGT_FF else ())
    return FoundGroup(entry.group_id, group)


def _field(item: tuple[str, Any]) -> Field | None:
    name, content = item
    value, mask = content if isinstance(content, tuple) else (content, None)
    kind = _TYPES.get(name)
    if kind is None:
        return Field(name, 0)
    number = int.from_bytes(kind.from_user(value), "big")
    if mask is None:
        return Field(name, number)
    bits = int.from_bytes(kind.from_user(mask), "big")
    full = _NARROW.get(name, (1 << (8 * kind.size)) - 1)
    if not bits:
        return None
    return Field(name, number) if bits & full == full else Field(name, number & bits, bits)


def _written(instructions: list[Any]) -> tuple[tuple[Action, ...], int | None, int | None]:
    actions: tuple[Action, ...] = ()
    metadata: int | None = None
    goto: int | None = None
    for instruction in instructions:
        if instruction.type == ofp.OFPIT_APPLY_ACTIONS:
            actions = tuple(map(_value, instruction.actions))
        elif instruction.type == ofp.OFPIT_GOTO_TABLE:
            goto = instruction.table_id
        elif instruction.type == ofp.OFPIT_WRITE_METADATA and instruction.metadata_mask == _ALL:
            metadata = instruction.metadata
        else:
            raise NotRepresentableError(f"instruction {instruction.type}")
    return actions, metadata, goto


def _value(action: Any) -> Action:
    if action.type == ofp.OFPAT_OUTPUT:
        return Output(action.port)
    if action.type == ofp.OFPAT_PUSH_VLAN and action.ethertype == _VLAN_TPID:
        return PushVlan()
    if action.type == ofp.OFPAT_POP_VLAN:
        return PopVlan()
    if action.type == ofp.OFPAT_GROUP:
        return ToGroup(action.group_id)
    if action.type == ofp.OFPAT_SET_FIELD and action.key in _TYPES:
        kind = _TYPES[action.key]
        return SetField(action.key, int.from_bytes(kind.from_user(action.value), "big"))
    raise NotRepresentableError(f"action {action.type}")
