"""Rules written as ovs-ofctl's OpenFlow13 text.

References
----------
ovs-ofctl(8), ovs-actions(7), ovs-fields(7).

"""

from __future__ import annotations

import ipaddress
from functools import lru_cache

from knotless.forwarding.openflow.ofctl_parser import (
    ADDRESSES,
    CHOOSE,
    MACS,
    MAX_KNOWN,
    PORTS,
)
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
    SwitchRules,
    ToGroup,
)
from knotless.topologies.numbering import mac_text

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


@lru_cache(MAX_KNOWN)
def _field_text(field: Field) -> str:
    def shown(value: int) -> str:
        if field.name in MACS:
            return mac_text(value)
        if field.name in ("in_port", "vlan_pcp", "arp_op", "ip_proto") and field.mask is None:
            return str(value)
        if field.name in ADDRESSES:
            return str(ipaddress.IPv4Address(value))
        return f"{value:#x}"

    mask = "" if field.mask is None else f"/{shown(field.mask)}"
    return f"{_WRITTEN.get(field.name, field.name)}={shown(field.value)}{mask}"


@lru_cache(MAX_KNOWN)
def _actions_text(actions: tuple[Action, ...]) -> str:
    return ",".join(map(_action_text, actions))


def _action_text(action: Action) -> str:
    match action:
        case Output(port):
            name = next((name for name, number in PORTS.items() if number == port), str(port))
            return f"output:{name}" if name.isdigit() else name
        case PushVlan():
            return "push_vlan:0x8100"
        case PopVlan():
            return "pop_vlan"
        case SetField(name, value):
            shown = mac_text(value) if name in MACS else str(value)
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
