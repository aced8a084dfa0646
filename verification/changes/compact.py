"""Changes that share what does not change, because many of them are kept."""

from __future__ import annotations

from dataclasses import replace

from forwarding.openflow.reader import Generation
from forwarding.openflow.rules import FabricRules
from verification.changes.change import Change, Step


def compact(change: Change) -> Change:
    """Return a change with the same steps, which share the rules of switches that stay the same.

    So it is small, and what a step changes is found without comparing rule by rule.
    """
    held: FabricRules = change.before.rules
    kept = {id(held): held}
    steps: list[Step] = []
    for step in change.steps:
        rules = {
            name: was if (was := held.get(name, of)) == of else of
            for name, of in step.rules.items()
        }
        kept[id(step.rules)] = held = rules
        generations = [
            Generation(kept.get(id(of.rules), of.rules), of.tags) for of in step.proof.generations
        ]
        steps.append(replace(step, rules=rules, proof=step.proof.without_cache(generations)))
    return replace(change, steps=tuple(steps))
