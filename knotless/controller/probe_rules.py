"""The rules that bring probes to the controller, and those that block ports. Pure.

They are no part of the plan: they match only frames for the switch itself (IEEE 802.1Q, 8.6.3),
which no rule of the plan forwards, or drop all frames of a port.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from knotless.controller.steps import PROBE_COOKIE, Change, FoundRule, RuleChange
from knotless.forwarding.openflow.rules import (
    ADMISSION,
    CONTROLLER,
    IN_PORT,
    Action,
    Field,
    Output,
    Rule,
    SetField,
    match_order,
)

ETHER_TYPE = 0x88B5
"""Local experiments (IEEE 802)."""
TO_NEIGHBOUR = 0x0180C200000E
"""Destination of probes that the next switch gives to its controller."""
TO_NEIGHBOUR_AND_BACK = 0x0180C2000003
"""Destination of probes that the next switch sends back, even without a controller."""
_PROBE_PRIORITY = 0xFFFF
_BLOCK_PRIORITY = 0xFFFE


def probe_rules(ports: Iterable[int], blocked: Iterable[int]) -> tuple[Rule, ...]:
    """Return the rules of a switch for its ports to other switches.

    Probes are accepted from these ports only, so that no host can send one. Of ``blocked`` ports
    only probes are accepted.
    """
    rules = []
    for port in sorted(ports):
        rules.append(_rule(port, TO_NEIGHBOUR, (Output(CONTROLLER),)))
        back = (SetField("eth_dst", TO_NEIGHBOUR), Output(IN_PORT))
        rules.append(_rule(port, TO_NEIGHBOUR_AND_BACK, back))
    for port in sorted(blocked):
        match = (Field("in_port", port),)
        rules.append(Rule(ADMISSION, _BLOCK_PRIORITY, match, (), cookie=PROBE_COOKIE))
    return tuple(rules)


def learning_rules(
    ports: Iterable[int], of_hosts: Iterable[int], open_ports: Iterable[int]
) -> frozenset[Rule]:
    """Return the rules of a switch for ``ports`` of which nothing is declared.

    Probes come to the controller. What hosts send to ports ``of_hosts`` is dropped, so that rules
    of an earlier fabric do not forward it; from ``open_ports`` it comes to the controller as well.
    """
    wanted = set(open_ports)
    rules = {_rule(port, TO_NEIGHBOUR, (Output(CONTROLLER),)) for port in ports}
    for port in of_hosts:
        match = (Field("in_port", port),)
        actions = (Output(CONTROLLER),) if port in wanted else ()
        rules.add(Rule(ADMISSION, _BLOCK_PRIORITY, match, actions, cookie=PROBE_COOKIE))
    return frozenset(rules)


def without_ports(rules: Iterable[Rule], ports: Iterable[int]) -> frozenset[Rule]:
    """Return the rules but for those of some ports."""
    gone = {Field("in_port", port) for port in ports}
    return frozenset(rule for rule in rules if gone.isdisjoint(rule.match))


def _rule(port: int, destination: int, actions: tuple[Action, ...]) -> Rule:
    match = match_order(
        (
            Field("in_port", port),
            Field("eth_dst", destination),
            Field("eth_type", ETHER_TYPE),
        )
    )
    return Rule(ADMISSION, _PROBE_PRIORITY, match, actions, cookie=PROBE_COOKIE)


def held_rules(found: Sequence[FoundRule]) -> frozenset[Rule]:
    """Return the rules of probes that a switch holds."""
    return frozenset(of.rule for of in found if of.cookie == PROBE_COOKIE and of.rule)


def changes(held: Iterable[Rule], wanted: Iterable[Rule]) -> tuple[Change, ...]:
    """Return what gives a switch the ``wanted`` rules."""
    before, after = frozenset(held), frozenset(wanted)
    kept = {rule.key for rule in after}
    gone = [RuleChange("delete", rule) for rule in before - after if rule.key not in kept]
    return (*(RuleChange("add", rule) for rule in after - before), *gone)
