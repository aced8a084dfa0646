"""The steps that packets take whatever the rules do that cannot be read.

A packet takes a step for certain if a rule that was read forwards it, and no unread rule of the
same or a higher priority may match it. A cycle of such steps can deadlock, whatever else is
unknown: unread rules can only add steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

from knotless.forwarding.openflow.reader import state_of_rules
from knotless.forwarding.openflow.rules import FabricRules, Field, Rule, SwitchRules
from knotless.forwarding.state import ForwardingState
from knotless.topologies.fabric import Fabric

_MATCHED = {"in_port", "metadata", "eth_dst", "eth_src", "eth_type", "vlan_vid", "vlan_pcp"}
_INSIDE = {"arp_sha", "arp_spa", "ipv4_src"}
"""Fields inside of frames that hosts send: a rule has to match their port and address as well."""
_OTHER_STEPS = ("untagged frame", "goes back to table")
"""What problems of rules say after which a switch may take another step."""


def certain_state(
    fabric: Fabric, rules: FabricRules, unread: Mapping[str, Sequence[Rule]]
) -> ForwardingState:
    """Return the forwarding state of the steps that are certain.

    ``unread`` are the rules of switches that cannot be read: each matches at least what it does,
    and has no actions. Raises RuleError as :func:`state_of_rules`.
    """
    certain = {name: _certain(held, unread.get(name, ())) for name, held in rules.items()}
    state = state_of_rules(fabric, certain)
    unsure = {
        fabric.switches[number].name
        for number, text in state.core.problems
        if any(step in text for step in _OTHER_STEPS)
    }
    if not unsure:
        return state
    # Without these switches, packets take some of the same steps, and meet no further rules.
    nothing = SwitchRules(())
    return state_of_rules(
        fabric, {name: nothing if name in unsure else held for name, held in certain.items()}
    )


def _certain(held: SwitchRules, unread: Iterable[Rule]) -> SwitchRules:
    """Return rules that drop what an unread rule may match; it outdoes those of its priority."""
    rules = []
    drops = [*unread]
    for rule in held.rules:
        if _is_followed(rule):
            rules.append(rule._replace(priority=2 * rule.priority))
        else:
            drops.append(rule)
    rules += [
        Rule(
            rule.table,
            2 * rule.priority + 1,
            tuple(field for field in rule.match if field.name in _MATCHED),
        )
        for rule in drops
    ]
    return SwitchRules(tuple(sorted(rules, key=attrgetter("order"))), held.groups)


def _is_followed(rule: Rule) -> bool:
    """Tell whether the core follows the match of a rule, as its ``Rule::is_followed`` says."""
    fields: dict[str, Field] = {field.name: field for field in rule.match}
    if not fields.keys() <= _MATCHED | _INSIDE:
        return False
    inside = fields.keys() & _INSIDE
    exact = {name for name, field in fields.items() if field.mask is None}
    return not inside or {"in_port", "eth_src", *inside} <= exact
