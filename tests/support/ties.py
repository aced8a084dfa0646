"""Rules of equal priority that match the same frames and differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from knotless.forwarding.openflow.rules import Rule, SwitchRules


def ties(rules: Mapping[str, SwitchRules]) -> Iterator[tuple[str, Rule, Rule]]:
    """Yield the switch and both rules of each pair that some frame, of whatever host, matches."""
    for name, switch in rules.items():
        equal: dict[tuple[int, int], list[Rule]] = {}
        for rule in switch.rules:
            equal.setdefault((rule.table, rule.priority), []).append(rule)
        for of_priority in equal.values():
            for one, other in combinations(of_priority, 2):
                if _does(one) != _does(other) and _meet(one, other):
                    yield name, one, other


def _does(rule: Rule) -> tuple[object, ...]:
    return rule.actions, rule.metadata, rule.goto


def _meet(one: Rule, other: Rule) -> bool:
    matches = [
        {name: (value, -1 if mask is None else mask) for name, value, mask in rule.match}
        for rule in (one, other)
    ]
    for name in matches[0].keys() & matches[1].keys():
        (value, mask), (other_value, other_mask) = (match[name] for match in matches)
        if (value ^ other_value) & mask & other_mask:
            return False
    return True
