"""Steps that are proven one after the other as they are added: of all switches, or in batches."""

from __future__ import annotations

from knotless.forwarding.openflow.reader import Generation
from knotless.forwarding.openflow.rules import FabricRules
from knotless.forwarding.openflow.vlan_generations import same_rules
from knotless.routing.vlans.host_tags import HostTags
from knotless.verification.changes.change import Change, Installed, Pair, Step
from knotless.verification.changes.drops import dropping
from knotless.verification.changes.proof import Proof, Prover, StepVerdict


class Steps:
    """The steps of a change so far, and the generations whose packets may be in the fabric."""

    def __init__(self, prover: Prover, before: Installed) -> None:
        self.before, self.steps = before, list[Step]()
        self._prover = prover
        self._generations = before.generations

    def proof(self, rules: FabricRules, tags: HostTags | None) -> Proof:
        """Return the proof of a step to ``rules`` after those so far, without adding it."""
        return self._prover.prove([*self._generations, self._next(rules, tags)])

    def _next(self, rules: FabricRules, tags: HostTags | None) -> Generation:
        """Return the generation of the next step; only the first begins before a confirmation."""
        return Generation(rules, tags, 1 if self.steps else self.before.lag)

    def alone(self, rules: FabricRules) -> StepVerdict:
        """Return the outcome of ``rules`` alone, with the tags of before."""
        return self._prover.alone(Generation(rules, self.before.tags))

    def add(
        self,
        action: str,
        rules: FabricRules,
        tags: HostTags | None,
        *,
        await_quiescence: bool = False,
        dropped: tuple[Pair, ...] = (),
    ) -> None:
        """Add a step to ``rules``, and to rules that drop the frames of the ``dropped`` pairs.

        If it would change nothing, no step is added.
        """
        fabric, groups = self._prover.context.fabric, self._prover.context.multicast
        rules = dropping(rules, fabric, dropped, groups)
        new, last = self._next(rules, tags), self._generations[-1]
        if tags == last.tags and same_rules(last.rules, rules):
            return
        proof = self._prover.prove([*self._generations, new])
        self.steps.append(Step(action, rules, tags, proof, await_quiescence, dropped))
        # In quiescence, all packets in the fabric were admitted under these rules.
        self._generations = [new] if await_quiescence else [*self._generations, new]

    @property
    def proven(self) -> bool:
        """Return whether each step is proven."""
        return all(step.proof.safe for step in self.steps)

    @property
    def acyclic(self) -> bool:
        """Return whether no step can deadlock."""
        return all(step.proof.acyclic for step in self.steps)

    def change(self, tier: int, *, in_place: bool = False, drops_first: bool = False) -> Change:
        """Return the change that consists of these steps."""
        return Change(tier, self.before, tuple(self.steps), in_place, drops_first)


MAX_SWITCHES = 128
"""Fabrics with more switches have no batches: each switch is tried in each batch."""


def add_batches(steps: Steps, rules: FabricRules, tags: HostTags | None) -> bool:
    """Add steps to ``rules`` in which only some switches change; return whether that is possible.

    Each batch is the largest that this rule finds: in the order of the fabric, a switch joins if
    the step is still proven with it, and what is installed then loses nothing that the batches so
    far and the new rules deliver. Packets of all earlier batches may still be in the fabric. Hosts
    that tag change their tags after the last batch.
    """
    goal, installed = steps.alone(rules), dict(steps.before.rules)
    waiting = [name for name in rules if installed.get(name) != rules[name]]
    if len(waiting) > MAX_SWITCHES:
        return False
    while waiting:
        batch: list[str] = []
        now = steps.alone(installed)
        for name in waiting:
            tried = {**installed, **{other: rules[other] for other in (*batch, name)}}
            proof = steps.proof(tried, steps.before.tags)
            if proof.safe and not proof.after.newly_failing(now, goal):
                batch.append(name)
        if not batch:
            return False
        installed = {**installed, **{name: rules[name] for name in batch}}
        waiting = [name for name in waiting if name not in batch]
        steps.add(f"install the new rules on {', '.join(batch)}", installed, steps.before.tags)
    if tags != steps.before.tags:
        steps.add("hosts take their new tags", rules, tags)
    return steps.proven
