"""Changes that share what does not change, because many of them are kept."""

from __future__ import annotations

from dataclasses import replace

from knotless.forwarding.openflow.reader import Generation
from knotless.forwarding.openflow.rules import FabricRules, SwitchRules
from knotless.verification.changes.change import Change, Step


def compact(change: Change) -> Change:
    """Return a change with the same steps, which share all rules that stay the same.

    So it is small, and what a step changes is found without comparing rules.
    """
    held: FabricRules = change.before.rules
    kept = {id(held): held}
    steps: list[Step] = []
    for step in change.steps:
        rules = {
            name: _sharing(held[name], of) if name in held else of
            for name, of in step.rules.items()
        }
        kept[id(step.rules)] = held = rules
        generations = [
            Generation(kept.get(id(of.rules), of.rules), of.tags) for of in step.proof.generations
        ]
        steps.append(replace(step, rules=rules, proof=step.proof.without_cache(generations)))
    return replace(change, steps=tuple(steps))


def _sharing(was: SwitchRules, of: SwitchRules) -> SwitchRules:
    """Return the rules ``of`` a switch, with those that it held before if these are equal."""
    known = {rule.key: rule for rule in was.rules}
    rules = tuple(old if (old := known.get(rule.key)) == rule else rule for rule in of.rules)
    if rules == was.rules and of.groups == was.groups:
        return was
    return SwitchRules(rules, of.groups)
