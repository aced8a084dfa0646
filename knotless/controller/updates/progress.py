"""The steps of an update plan: which rules switches shall hold now, and what is awaited. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from knotless.controller.foreign_changes import changed_by_others
from knotless.controller.reconcile import Changes, difference
from knotless.controller.updates.planning import InstalledPlan, UpdatePlan
from knotless.controller.updates.serving import admitting_plans
from knotless.forwarding.openflow.reader import Generation
from knotless.forwarding.openflow.rules import NO_RULES, FabricRules, SwitchRules
from knotless.forwarding.openflow.vlan_generations import (
    VlanGeneration,
    priorities_of,
    vlan_generation_of,
)
from knotless.routing.plan import Plan
from knotless.verification.changes.change import Step
from knotless.verification.changes.drops import dropped_rules
from knotless.verification.dependencies import longest_chain


class StepProgress:
    """The steps of the update plan that was accepted last, and how far they have come.

    Attributes
    ----------
    number : counts the steps; it is that of the rules of :attr:`held`.
    held : the rules that switches shall hold now.
    in_flight : older generations of rules that may still have packets in the fabric.
    plan : the update plan that was accepted last; None: the first rules are being installed.
    dead : the switches that carry no frames, and need not confirm anything.
    has_plan : whether the rules of :attr:`held` are those of a plan, or of a step to one.
    is_inherited : whether packets of older rules may be there that another controller has left.
    purges_megaflows : whether cached entries of older rules are removed between steps.

    """

    def __init__(self, held: Generation, first_plan: Plan) -> None:
        self.number = 0
        self.held = held
        self.in_flight: tuple[Generation, ...] = ()
        self.plan: UpdatePlan | None = None
        self.dead: frozenset[str] = frozenset()
        self.has_plan = True
        self.is_inherited = self.purges_megaflows = False
        self._first_plan: Plan | None = first_plan
        self._replaced: tuple[InstalledPlan, ...] = ()
        """The plans by which frames were admitted when the last plan was accepted."""
        self._left: deque[tuple[Step, Mapping[str, Changes]]] = deque()
        """The steps that are left, with the changes of each step in each switch."""
        self._step: Step | None = None
        self._first: Step | None = None
        self._unconfirmed = set(held.rules)
        self._steps_unconfirmed = 1
        """The number of last generations that some switches have not confirmed."""
        self._dropped = self._dropped_before = 0
        """The pairs that the current step and the one before it drop at admission."""
        self._last: tuple[FabricRules, FabricRules, Mapping[str, Changes]] = ({}, {}, {})
        """The rules before and after the last step, and its changes in each switch."""
        self._needs_purge = self._is_overtaking = False
        self._last_generation: tuple[Generation, VlanGeneration] | None = None

    def inherit(self, held: Generation, plan: Plan | None, *, is_quiescent: bool) -> None:
        """Go on from what another controller has left in the switches; ``plan`` is that of it."""
        self.number += 1
        self.plan, self._first_plan, self._replaced, self.held = None, plan, (), held
        self.in_flight = () if is_quiescent else (held,)
        self._left.clear()
        self._step = self._first = None
        self._needs_purge = self._is_overtaking = False
        self._dropped = self._dropped_before = dropped_rules(held.rules)
        self._unconfirmed, self._steps_unconfirmed = set(held.rules), 1
        self.has_plan, self.is_inherited = plan is not None, not is_quiescent

    def keep(self, names: Iterable[str]) -> None:
        """Forget the rules of all other switches, which have gone away."""
        self.held = replace(self.held, rules={name: self.wanted(name) for name in names})

    def wanted(self, name: str) -> SwitchRules:
        """Return the rules that a switch shall hold now."""
        return self.held.rules.get(name, NO_RULES)

    def changed_by_others(self, name: str, held: SwitchRules) -> None:
        """Take note that others had changed the rules of a switch, which packets may have met."""
        changed, self.held = changed_by_others(self.held, name, held)
        self.in_flight = (*self.in_flight, changed)
        self._steps_unconfirmed += 1  # it stands between those that others may hold

    def changes(self, name: str, held: SwitchRules) -> Changes:
        """Return the changes of a switch that holds exactly the rules ``held``."""
        before, after, changes = self._last
        if after is self.held.rules and name in changes and before.get(name) == held:
            return changes[name]
        return difference(held, self.wanted(name))

    # --- what is awaited -----------------------------------------------------------------------

    @property
    def waiting(self) -> frozenset[str]:
        """The switches that have not confirmed the current step; dead ones need not."""
        return frozenset(self._unconfirmed - self.dead)

    @property
    def unconfirmed_generations(self) -> int:
        """The number of last generations that switches have not confirmed, and may not hold."""
        return self._steps_unconfirmed if self.waiting else 0

    @property
    def awaits_quiescence(self) -> bool:
        """Whether all switches have confirmed, and packets of older rules must leave first."""
        must = self.is_inherited or (self._step is not None and self._step.await_quiescence)
        return must and not self.waiting

    @property
    def awaits_purge(self) -> bool:
        """Whether all switches have confirmed, and cached entries must be removed next.

        The next step of a change with two VLAN generations sends frames into VLANs that may have
        been in use before. Entries of that time drop them, or forward them by rules of which no
        proof knows.
        """
        return self._needs_purge and not self.waiting

    @property
    def is_settled(self) -> bool:
        """Whether all steps are complete."""
        return not (self.waiting or self._left or self.awaits_quiescence)

    @property
    def is_amid_step(self) -> bool:
        """Whether the current step has not ended yet.

        Switches have not confirmed it, or cached entries or packets of older rules are to go away.
        """
        is_awaited = self.awaits_purge or (self.awaits_quiescence and not self.is_in_place)
        return bool(self.waiting) or is_awaited

    @property
    def is_next_due(self) -> bool:
        """Whether the next of the steps that are left can begin."""
        if self._is_overtaking:
            return True
        return bool(self._left) and not (self.is_amid_step or self.awaits_quiescence)

    @property
    def is_in_place(self) -> bool:
        """See :attr:`Change.in_place`."""
        return bool(self.plan and self.plan.change.in_place)

    @property
    def needs_links_down(self) -> bool:
        """See :attr:`Change.needs_links_down`."""
        return bool(self.plan and self.plan.change.needs_links_down)

    @property
    def is_serving(self) -> bool:
        """Whether all frames take the routes of the plan; what is left removes what they had."""
        left = len(self._left) - self.awaits_quiescence
        return self.has_plan and not (self.waiting or left)

    @property
    def dropping(self) -> int:
        """The number of pairs of hosts whose frames switches drop now, so that a step is safe."""
        return max(self._dropped, self._dropped_before) if self.waiting else self._dropped

    @property
    def confirmed_steps(self) -> int:
        """The steps of the last plan that all switches have confirmed."""
        steps = self.plan.change.steps if self.plan else ()
        return max(0, len(steps) - len(self._left) - bool(self.waiting))

    def quiescence_rounds(self) -> tuple[int, bool]:
        """Return the number of rounds until the fabric is quiescent, and ``keeps_order``.

        See :class:`knotless.controller.updates.quiescence.CountedRounds`.

        Channels keep the order of frames if there is only one priority.
        """
        rounds = longest_chain(self._step.proof.mixed.dependencies) if self._step else None
        rules = [generation.rules for generation in (*self.in_flight, self.held)]
        priorities = frozenset[int]().union(*map(priorities_of, rules))
        return rounds or len(self.held.rules), len(priorities) <= 1

    # --- which plans switches hold -------------------------------------------------------------

    @property
    def vlan_generation(self) -> VlanGeneration:
        """The VLAN generation of the rules of :attr:`held`; found once for each step."""
        if self._last_generation is None or self._last_generation[0] is not self.held:
            self._last_generation = (
                self.held,
                vlan_generation_of(self.held.rules, self.held.tags),
            )
        return self._last_generation[1]

    @property
    def held_plan(self) -> Plan | None:
        """The plan whose rules all switches hold; None while they hold those of a step.

        After a step in place they may have guards besides until packets of older rules have left.
        """
        is_guarded = self.is_in_place and self.awaits_quiescence
        if not (self.has_plan and (self.is_settled or is_guarded)):
            return None
        return self._first_plan if self.plan is None else self.plan.new_plan

    @property
    def installed(self) -> tuple[InstalledPlan, ...]:
        """The plans by which frames are admitted now, the most likely one first.

        Before cached entries are removed, no frame may be sent into a new VLAN generation.
        """
        if not self.has_plan:
            return ()
        if (held := self.held_plan) is not None:
            return (InstalledPlan(held, self.vlan_generation),)
        if self.plan is None or self._needs_purge:
            return self._replaced
        return admitting_plans(self.plan, len(self._left), self._replaced)

    # --- what happens --------------------------------------------------------------------------

    def confirm(self, name: str) -> None:
        """Record that a switch holds the rules of :meth:`wanted`."""
        self._unconfirmed.discard(name)

    def purged(self) -> None:
        """Record that no cached entries are left that are older than the current step."""
        self._needs_purge = False

    def quiescent(self) -> None:
        """Record that no packets are left that were sent before the current step was confirmed."""
        self.in_flight = ()
        self.held = replace(self.held, lag=1)  # nothing is left of those before
        if self.awaits_quiescence:
            self._step, self.is_inherited = None, False

    def link_returned(self) -> None:
        """Record that a port has its carrier again.

        If a switch may still hold rules that lead to a failed link, the steps that are left may be
        proven only without it; others are planned instead.
        """
        if self.needs_links_down and self._left and self._step is self._first and self.waiting:
            self.abandon()

    def abandon(self) -> None:
        """Take none of the steps that are left, if there are any."""
        if self._left:
            self._left.clear()
            self.has_plan = False

    def accept(self, plan: UpdatePlan) -> None:
        """Take the steps of a plan, in place of those that are left of the last one.

        If switches have not confirmed the current step, the first begins all the same: it is proven
        beside what they may hold.
        """
        self._replaced = self.installed
        steps = plan.change.steps
        self._is_overtaking = bool(self.waiting and steps)
        if self.awaits_quiescence:  # the steps take the packets of older rules into account
            self._step = None
        self._needs_purge, self.has_plan = False, True
        self.plan = plan
        self._left = deque(zip(steps, plan.differences, strict=True))
        self._first = steps[0] if steps else None

    def begin(self) -> Mapping[str, SwitchRules]:
        """Begin the next step, and return the rules of the switches that it changes.

        A step without changes, or no step at all, changes nothing.
        """
        if not self._left:
            return {}
        step, changes = self._left.popleft()
        overtaken: Collection[str] = self._unconfirmed if self._is_overtaking else ()
        dropped = max(self._dropped, self._dropped_before) if overtaken else self._dropped
        count = self.plan.change.count(step.dropped) if self.plan else 0
        self._dropped_before, self._dropped = dropped, count
        before, self.held = self.held, step.proof.generations[-1]
        self._step, self._is_overtaking = step, False
        self._last = (before.rules, self.held.rules, changes)
        self.in_flight = (*self.in_flight, before)
        self.number += 1
        is_prepared = bool(self._left) and not (step.await_quiescence or self.is_in_place)
        self._needs_purge = self.purges_megaflows and is_prepared
        by_name = step.rules.items()
        changed = {
            name: rules for name, rules in by_name if before.rules.get(name, NO_RULES) != rules
        }
        self._unconfirmed = {*changed, *overtaken}
        self._steps_unconfirmed = 1 + (self._steps_unconfirmed if overtaken else 0)
        return changed
