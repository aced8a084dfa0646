"""What folders of rules mean, in the lines that ``knotless-verify --print`` writes."""

from __future__ import annotations

from collections.abc import Iterator

from knotless.forwarding.openflow.rules import (
    Action,
    FabricRules,
    Field,
    Output,
    PopVlan,
    PushVlan,
    Rule,
    SetField,
    ToGroup,
)
from knotless.topologies import Fabric

BITS = {"in_port": 32, "eth_dst": 48, "eth_src": 48, "vlan_vid": 13, "vlan_pcp": 3, "metadata": 62}


MORE = {"eth_type", "arp_op", "arp_sha", "arp_tha", "arp_spa", "arp_tpa"} | {
    *("ipv4_src", "ipv4_dst", "ip_proto")
}
"""Fields that frames do not have in proofs."""


def action_text(action: Action) -> str:
    match action:
        case Output(port):
            return f"output:{port}"
        case PushVlan():
            return "push"
        case PopVlan():
            return "pop"
        case ToGroup(group_id):
            return f"group:{group_id}"
        case SetField(name, value):
            return f"{ {'vlan_vid': 'vid', 'vlan_pcp': 'pcp'}[name] }:{value}"
    raise AssertionError(action)


def actions_text(actions: tuple[Action, ...]) -> str:
    return "[" + " ".join(map(action_text, actions)) + "]"


def rule_text(switch: str, rule: Rule) -> str:
    fields: dict[str, Field] = {field.name: field for field in rule.match}
    words = [f"rule {switch} table {rule.table} priority {rule.priority}"]
    for name, bits in BITS.items():
        value, mask = 0, 0
        if name in fields:
            found = fields.pop(name)
            mask = (1 << bits) - 1 if found.mask is None else found.mask
            value = found.value & mask
        words.append(f"{name} {value:#x}/{mask:#x}")
    words.append(f"more {'true' if fields else 'false'}")
    assert {*fields} <= MORE
    all_bits = (1 << BITS["metadata"]) - 1
    written = "0x0/0x0" if rule.metadata is None else f"{rule.metadata:#x}/{all_bits:#x}"
    words.append(f"actions {actions_text(rule.actions)} write {written}")
    words.append(f"goto {'none' if rule.goto is None else rule.goto}")
    return " ".join(words)


def printed(fabric: Fabric, rules: FabricRules) -> Iterator[str]:
    """Yield the lines that the verifier prints, from what the product has read."""
    for link in fabric.links:
        yield f"channel {link.a}:{link.a_port} to {link.b}:{link.b_port}"
        yield f"channel {link.b}:{link.b_port} to {link.a}:{link.a_port}"
    for host in fabric.hosts:
        yield f"host {host.name} to {host.switch}:{host.port} {host.mac}"
    for switch, held in rules.items():
        for rule in held.rules:
            yield rule_text(switch, rule)
        for group in held.groups:
            buckets = " ".join(map(actions_text, group.buckets))
            assert not group.watch
            kind = "select" if group.selects else "all"
            yield f"group {switch} {group.group_id} {kind} {buckets}"
