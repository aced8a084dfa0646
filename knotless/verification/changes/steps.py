"""Steps that are proven one after the other, as they are added."""

from __future__ import annotations

from knotless.forwarding.openflow.planes import same_rules
from knotless.forwarding.openflow.reader import Generation
from knotless.forwarding.openflow.rules import FabricRules
from knotless.routing.vlans.host_tags import HostTags
from knotless.verification.changes.change import Change, Installed, Pair, Step
from knotless.verification.changes.proof import Proof, Prover
from knotless.verification.changes.stops import stopping


class Steps:
    """The steps of a change so far, and the generations whose packets may be in the fabric."""

    def __init__(self, prover: Prover, before: Installed) -> None:
        self.before, self.taken = before, list[Step]()
        self._prover = prover
        self._generations = [*before.undrained, Generation(before.rules, before.tags)]

    def proof(self, rules: FabricRules, tags: HostTags | None) -> Proof:
        """Return the proof of a step to ``rules`` after those so far, without adding it."""
        return self._prover.prove([*self._generations, Generation(rules, tags)])

    def add(
        self,
        action: str,
        rules: FabricRules,
        tags: HostTags | None,
        *,
        drain: bool = False,
        stopped: tuple[Pair, ...] = (),
    ) -> None:
        """Add a step to ``rules``, and to rules that stop the frames of the ``stopped`` pairs.

        If it would change nothing, no step is added.
        """
        fabric, groups = self._prover.circumstances.fabric, self._prover.circumstances.multicast
        rules = stopping(rules, fabric, stopped, groups)
        held, last = Generation(rules, tags), self._generations[-1]
        if tags == last.tags and same_rules(last.rules, rules):
            return
        proof = self._prover.prove([*self._generations, held])
        self.taken.append(Step(action, rules, tags, proof, drain, stopped))
        # After draining, all packets in the fabric were admitted under these rules.
        self._generations = [held] if drain else [*self._generations, held]

    @property
    def proven(self) -> bool:
        """Whether each step is proven."""
        return all(step.proof.safe for step in self.taken)

    def change(self, tier: int, *, in_place: bool = False) -> Change:
        """Return the change that consists of these steps."""
        return Change(tier, self.before, tuple(self.taken), in_place)
