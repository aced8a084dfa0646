"""Rules written as ovs-ofctl's OpenFlow13 text.

References
----------
ovs-ofctl(8), ovs-actions(7), ovs-fields(7).

"""

from __future__ import annotations

import ipaddress
from functools import lru_cache

from knotless.forwarding.openflow.rules import (
    CONTROLLER,
    IN_PORT,
    Action,
    Choose,
    Field,
    Group,
    Output,
    PopVlan,
    PushVlan,
    Rule,
    SetField,
    SwitchRules,
    ToGroup,
)
from knotless.topologies.numbering import mac_text

CHOOSE = (
    "move:NXM_OF_ETH_SRC[]->NXM_NX_XXREG0[0..47],"
    "move:NXM_OF_ETH_DST[0..23]->NXM_OF_ETH_SRC[24..47],"
    "bundle_load(eth_src,{basis},hrw,ofport,OXM_OF_METADATA[0..15],members:{ports}),"
    "move:NXM_NX_XXREG0[0..47]->NXM_OF_ETH_SRC[]"
)
"""The actions of a choice; :class:`knotless.forwarding.openflow.rules.Choose` says what they do."""
_MACS = ("eth_dst", "eth_src", "arp_sha", "arp_tha")
_ADDRESSES = ("ipv4_src", "ipv4_dst", "arp_spa", "arp_tpa")
_PORTS = {IN_PORT: "IN_PORT", CONTROLLER: "CONTROLLER"}
_MAX_KNOWN = 1 << 17
"""The most values whose text is kept: those of one fabric's switches are mostly the same."""
_WRITTEN = {"ipv4_src": "nw_src", "ipv4_dst": "nw_dst", "ip_proto": "nw_proto"}
"""The names that ovs-ofctl has instead of OpenFlow's."""


def write(rules: SwitchRules) -> tuple[str, str]:
    """Return (flows, groups) for ``ovs-ofctl -O OpenFlow13 add-flows`` and ``add-groups``."""
    flows = "".join(f"{_rule_text(rule)}\n" for rule in rules.rules)
    groups = "".join(f"{_group_text(group)}\n" for group in rules.groups)
    return flows, groups


def _rule_text(rule: Rule) -> str:
    parts = [f"cookie={rule.cookie:#x}", f"table={rule.table}", f"priority={rule.priority}"]
    parts += [_field_text(field) for field in rule.match]
    instructions = [_actions_text(rule.actions)] if rule.actions else []
    instructions += [f"write_metadata:{rule.metadata:#x}"] if rule.metadata is not None else []
    instructions += [f"goto_table:{rule.goto}"] if rule.goto is not None else []
    return f"{','.join(parts)} actions={','.join(instructions) or 'drop'}"


@lru_cache(_MAX_KNOWN)
def _field_text(field: Field) -> str:
    def shown(value: int) -> str:
        if field.name in _MACS:
            return mac_text(value)
        if field.name in ("in_port", "vlan_pcp", "arp_op", "ip_proto") and field.mask is None:
            return str(value)
        if field.name in _ADDRESSES:
            return str(ipaddress.IPv4Address(value))
        return f"{value:#x}"

    mask = "" if field.mask is None else f"/{shown(field.mask)}"
    return f"{_WRITTEN.get(field.name, field.name)}={shown(field.value)}{mask}"


@lru_cache(_MAX_KNOWN)
def _actions_text(actions: tuple[Action, ...]) -> str:
    return ",".join(map(_action_text, actions))


def _action_text(action: Action) -> str:
    match action:
        case Output(port):
            return _PORTS.get(port, f"output:{port}")
        case PushVlan():
            return "push_vlan:0x8100"
        case PopVlan():
            return "pop_vlan"
        case SetField(name, value):
            shown = mac_text(value) if name in _MACS else str(value)
            return f"set_field:{shown}->{_WRITTEN.get(name, name)}"
        case ToGroup(group_id):
            return f"group:{group_id}"
        case Choose(ports, basis):
            return CHOOSE.format(basis=basis, ports=",".join(map(str, ports)))


def _group_text(group: Group) -> str:
    watched = [f"watch_port:{port}," for port in group.watch] or [""] * len(group.buckets)
    buckets = "".join(
        f",bucket={watch}actions={_actions_text(bucket) or 'drop'}"
        for watch, bucket in zip(watched, group.buckets, strict=True)
    )
    kind = "ff" if group.watch else "select" if group.selects else "all"
    return f"group_id={group.group_id},type={kind}{buckets}"
