"""Batches: switches that change one after the other where they cannot change in any order."""

from __future__ import annotations

from knotless.forwarding.openflow.rules import FabricRules
from knotless.routing.vlans.host_tags import HostTags
from knotless.verification.changes.steps import Steps

MOST_SWITCHES = 128
"""Fabrics with more switches have no batches: each switch is tried in each batch."""


def add_batches(steps: Steps, rules: FabricRules, tags: HostTags | None) -> bool:
    """Add steps to ``rules`` in which only some switches change; return whether that is possible.

    Each batch is the largest that this rule finds: in the order of the fabric, a switch joins if
    the step is still proven with it. Packets of all earlier batches count as undrained. Hosts that
    tag change their tags after the last batch.
    """
    held = dict(steps.before.rules)
    waiting = [name for name in rules if held.get(name) != rules[name]]
    if len(waiting) > MOST_SWITCHES:
        return False
    while waiting:
        batch: list[str] = []
        for name in waiting:
            tried = {**held, **{other: rules[other] for other in (*batch, name)}}
            if steps.proof(tried, steps.before.tags).safe:
                batch.append(name)
        if not batch:
            return False
        held |= {name: rules[name] for name in batch}
        waiting = [name for name in waiting if name not in batch]
        steps.add(f"install the new rules on {', '.join(batch)}", dict(held), steps.before.tags)
    if tags != steps.before.tags:
        steps.add("hosts take their new tags", rules, tags)
    return steps.proven
