"""Rules for which no frame of a host can come, such as those for probes between switches.

The specification of proofs has no EtherTypes, and a controller may have rules that test them for
its own frames. Such a rule matters to no frame of a host if it is for one destination address, for
a port to another switch, and each host's first switch drops what is sent to this address: rules
that proofs cover change no addresses, so that nothing with it ever comes from another switch.
"""

from __future__ import annotations

from collections.abc import Iterable

from knotless.forwarding.openflow.rules import NO_RULES, FabricRules, Rule, SwitchRules
from knotless.topologies.fabric import Fabric
from knotless.topologies.numbering import mac_value

_ANOTHER_TYPE = 0x0800


def without_unmet_rules(fabric: Fabric, rules: FabricRules) -> tuple[FabricRules, int]:
    """Return the rules without those that test an EtherType and that no frame of a host meets.

    Also how many they are.
    """
    special = {
        name: [rule for rule in held.rules if _is_for_probes(rule, fabric.neighbours[name])]
        for name, held in rules.items()
    }
    dropped = _never_admitted(fabric, rules, (rule for each in special.values() for rule in each))
    unmet = {
        name: {rule for rule in each if _value(rule, "eth_dst") in dropped}
        for name, each in special.items()
    }
    left = {
        name: SwitchRules(tuple(r for r in held.rules if r not in unmet[name]), held.groups)
        for name, held in rules.items()
    }
    return left, sum(map(len, unmet.values()))


def _is_for_probes(rule: Rule, ports: Iterable[int]) -> bool:
    """Tell whether a rule is for one EtherType and one address, from one of these ports."""
    exact = {field.name for field in rule.match if field.mask is None}
    return exact >= {"eth_dst", "eth_type", "in_port"} and _value(rule, "in_port") in ports


def _value(rule: Rule, name: str) -> int:
    return next(field.value for field in rule.match if field.name == name)


def _never_admitted(fabric: Fabric, rules: FabricRules, special: Iterable[Rule]) -> set[int]:
    """Return those of the rules' addresses to which hosts cannot send: their switches drop it."""
    types: dict[int, set[int]] = {}
    for rule in special:
        tested = types.setdefault(_value(rule, "eth_dst"), {_ANOTHER_TYPE})
        tested.add(_value(rule, "eth_type"))
    return {
        address
        for address, tested in types.items()
        if not any(
            rules.get(host.switch, NO_RULES).parsed.outputs(
                host.port, address, mac_value(host.mac), eth_type, ()
            )[0]
            for host in fabric.hosts
            for eth_type in tested
        )
    }
