"""The steps from what is installed to a new plan: the first kind of which each step is proven.

One step : all switches take the new rules, in any order; or, after a failure, what leads to the
failed part is dropped first (:mod:`knotless.verification.changes.in_place`). In the middle of a
change with two VLAN generations, the rules of the other generation stay until it is empty.

Two-phase : the new rules are installed in a VLAN generation that is not in use
(:mod:`knotless.forwarding.openflow.vlan_generations`), then admission is switched over, and when
the old generation is empty it is removed. Under PFC the new generation gets priorities of its own
if it can deadlock with the old one.

In stages : two-phase, but admission is switched over for some pairs of hosts after the others, when
these have left the old generation (:mod:`knotless.verification.changes.stages`).

With dropping : as two-phase or in stages, while frames of some pairs are dropped at admission, so
that what is left cannot deadlock. If no VLAN generation is free, switches change in batches
(:mod:`knotless.verification.changes.steps`). If neither is proven, everything is dropped.

If the new plan is of another fabric, rules of both never meet on a packet: two VLAN generations, or
all frames are dropped. Compiled rules forward an address that no host of their fabric has to some
host or other, so that the rules of two fabrics together could send such a packet round for ever.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from knotless.base.errors import PlanError, RuleError
from knotless.base.flow_control import verdict_text
from knotless.base.model_limits import PRIORITIES
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.failover import ProtectedRules
from knotless.forwarding.openflow.reader import Generation, state_of_rules
from knotless.forwarding.openflow.rules import FabricRules, SwitchRules
from knotless.forwarding.openflow.vlan_generations import (
    VLAN_BITS,
    VLAN_GENERATIONS,
    VlanGeneration,
    joined,
    priorities_of,
    rules_in,
    tags_in,
    vlan_generation_of,
    vlan_generations_in,
    without_admission,
    without_rules,
)
from knotless.routing.multicast import united
from knotless.routing.plan import Plan
from knotless.routing.vlans.host_tags import HostTags
from knotless.verification.changes.change import Change, Installed, Pair
from knotless.verification.changes.drops import keeping
from knotless.verification.changes.in_place import (
    common_rules,
    guarded,
    guards_of,
    with_guards,
    without_ports,
)
from knotless.verification.changes.outage import pairs_down
from knotless.verification.changes.proof import ALL, ProofContext, Prover
from knotless.verification.changes.stages import (
    EVERYBODY,
    MAX_HOSTS,
    Schedule,
    Stage,
    dropped_throughout,
    edges_by_pair,
    everything_dropped,
    schedule_between,
    throughout,
)
from knotless.verification.changes.steps import Steps, add_batches


def plan_change(before: Installed, new_plan: Plan) -> Change:
    """Return the proven steps from what is installed to ``new_plan``.

    The last step's rules are those of the plan, in the VLAN generation that was chosen. If the
    installed rules do the same already, there are no steps and the tier is 0.

    Raises
    ------
    PlanError
        The switches' tables cannot express the plan, or it can deadlock under the flow control
        of ``before``, or so can what is installed: then nothing can be proven.

    """
    return _described(_planner(before, new_plan).change(), new_plan)


def plan_in_place(before: Installed, new_plan: Plan) -> Change | None:
    """Return the steps of a repair in place (:mod:`verification.changes.in_place`), or None."""
    steps = _planner(before, new_plan).in_place()
    if steps is None:
        return None
    return _described(steps.change(1, in_place=True), new_plan)


def plan_dropping_first(before: Installed, new_plan: Plan) -> Change | None:
    """Return two-phase steps of which the first drops what leads to links that are down, or None.

    Older frames cannot cross these links any more, if they return, when others are admitted.
    """
    steps = _planner(before, new_plan).dropping_first()
    return None if steps is None else _described(steps.change(2, drops_first=True), new_plan)


def _described(change: Change, new_plan: Plan) -> Change:
    """Return a change with the groups of the new plan, and the pairs that are down."""
    return replace(change, multicast=new_plan.multicast, down=pairs_down(change))


def _planner(before: Installed, new_plan: Plan) -> _Planner:
    groups = united(before.multicast, new_plan.multicast)
    context = ProofContext(before.fabric, before.flow_control, groups)
    return _Planner(before, new_plan, Prover(context, before.staying))


def between_plans(old: Plan, new: Plan) -> Change:
    """Return the proven steps between two plans of a fabric on which nothing has failed.

    The links use PFC if one of the plans needs it, else the flow control of the old one. Raises
    PlanError as :func:`plan_change`.
    """
    both = (old.flow_control, new.flow_control)
    in_use = next((used for used in both if used.switch_links.by_priority), old.flow_control)
    rules = compile_rules(old)
    before = Installed(old.fabric, rules, in_use, old.host_tags(), old.multicast)
    return plan_change(before, new)


@dataclass(frozen=True)
class _SideBySide:
    """The new rules and tags in a VLAN generation of their own, and old and new rules together.

    ``installed`` admit what is admitted now, and frames that hosts tag for the new generation.
    ``admitting`` admit frames to the new generation; if hosts tag now, also what they send until
    they stop doing so.
    """

    new: FabricRules
    tags: HostTags | None
    installed: FabricRules
    admitting: FabricRules


class _Planner:
    def __init__(self, before: Installed, new_plan: Plan, prover: Prover) -> None:
        self.before, self.new_plan, self.prover = before, new_plan, prover
        self.compiled: FabricRules = compile_rules(new_plan)
        names = [switch.name for switch in before.fabric.switches]
        if missing := [name for name in names if name not in self.compiled]:
            self.compiled = {**self.compiled, **dict.fromkeys(missing, SwitchRules(()))}
        self.tags = new_plan.host_tags()
        self.vlan_generation = before.vlan_generation or vlan_generation_of(
            before.rules, before.tags
        )
        self.fits_in_a_generation = int(new_plan.pair_vlans.max()) >> VLAN_BITS == 0
        self.priorities = new_plan.vcs
        if isinstance(self.compiled, ProtectedRules):
            self.priorities = max(self.priorities, self.compiled.backups.priority + 1)
        self._in_generations: dict[VlanGeneration, tuple[FabricRules, HostTags | None]] = {}

    def change(self) -> Change:
        steps = self.at_once()
        if not steps.steps:
            return Change(0, self.before, ())
        if self.before.staying is None:
            if steps.proven:
                return steps.change(1)
            if (repair := self.in_place()) is not None:
                return repair.change(1, in_place=True)
            if (beside := self.beside()) is not None:
                return beside.change(2)
        self._refuse_deadlock()
        side_by_side = None
        for generation in self._free_generations():
            side_by_side = self._side_by_side(generation)
            if side_by_side and (steps := self.two_phase(side_by_side)).proven:
                return steps.change(2)
        if side_by_side:
            steps = self.in_stages(side_by_side)
            suffices = steps.proven
        elif self.before.staying is None:
            steps = Steps(self.prover, self.before)
            suffices = add_batches(steps, *self.in_generation(self._generation_in_place()))
        else:
            suffices = False
        if not suffices:
            steps = self.dropped_in_place()
        if not steps.proven and not (self._loses_already and steps.acyclic):
            raise PlanError("no order of steps could be proven for this change")
        drops = not side_by_side or any(step.dropped for step in steps.steps)
        return steps.change(3 if drops else 2)

    @property
    def _loses_already(self) -> bool:
        """Whether what is installed loses packets by itself, as in the middle of a step.

        What a mixture loses besides is not known exactly then (:attr:`Proof.lost`).
        """
        return self.prover.alone(self.before.held).loses

    def in_generation(self, generation: VlanGeneration) -> tuple[FabricRules, HostTags | None]:
        """Return the new rules and tags in a VLAN generation; for the same one the same objects."""
        if generation not in self._in_generations:
            rules, tags = rules_in(self.compiled, generation), tags_in(self.tags, generation)
            self._in_generations[generation] = rules, tags
        return self._in_generations[generation]

    @cached_property
    def _old(self) -> FabricRules:
        return dict(self.before.rules)

    def _generation_in_place(self) -> VlanGeneration:
        """Return the VLAN generation in use, with the priorities that the plan leaves."""
        number = self.vlan_generation.number if self.fits_in_a_generation else 0
        return VlanGeneration(
            number, min(self.vlan_generation.first_priority, PRIORITIES - self.priorities)
        )

    def _free_generations(self) -> list[VlanGeneration]:
        """Return the VLAN generations that the new rules can take.

        Those with the priorities in use come first.
        """
        installed = self.before.generations
        used = frozenset[int]().union(
            *(vlan_generations_in(old.rules, old.tags) for old in installed)
        )
        if not self.fits_in_a_generation or (self.before.keeps_tags and self.tags is not None):
            return []
        in_use = frozenset[int]().union(*(priorities_of(old.rules) for old in installed))
        fits = range(PRIORITIES - self.priorities + 1)
        unused = [
            first for first in fits if in_use.isdisjoint(range(first, first + self.priorities))
        ]
        default = self._generation_in_place().first_priority
        choices = dict.fromkeys([default, *unused[:1]] if self._has_priorities() else [default])
        free = [number for number in range(VLAN_GENERATIONS) if number not in used][:1]
        return [VlanGeneration(number, first) for number in free for first in choices]

    def _has_priorities(self) -> bool:
        return self.before.flow_control.switch_links.by_priority

    def at_once(self) -> Steps:
        """One step: all switches take the new rules."""
        steps = Steps(self.prover, self.before)
        steps.add("install the new rules", *self.in_generation(self._generation_in_place()))
        return steps

    def beside(self) -> Steps | None:
        """One step in the middle of a change: the rules of another VLAN generation stay.

        They are removed when it is empty. None if that is not proven.
        """
        if self.before.admitting is None:
            return None
        generation = self._generation_in_place()
        rules, tags = self.in_generation(generation)
        steps = Steps(self.prover, self.before)
        with suppress(RuleError):
            admitting = rules_in(compile_rules(self.before.admitting), generation)
            both = joined(rules, without_rules(self._old, admitting))
            action = "install the new rules beside another VLAN generation"
            steps.add(action, both, tags, await_quiescence=True)
            steps.add("remove the other VLAN generation", rules, tags)
        return steps if steps.steps and steps.proven else None

    def in_place(self) -> Steps | None:
        """One step after a failure: drop what leads to the failed part, install the new rules.

        None if that is not proven, or if frames would be dropped that are delivered now.
        """
        if self.before.plan is None:
            return None
        common = common_rules(self.before.plan, self.new_plan)
        if common is None:
            return None
        try:
            common_here: FabricRules = rules_in(common, self._generation_in_place())
        except RuleError:
            return None
        # Those of a step before this one stay until packets of older rules have left.
        guards = guards_of(self.before.rules)
        common_here = with_guards(common_here, guards)
        rules, tags = self.in_generation(self._generation_in_place())
        old = self.before.generations
        fabric = self.before.fabric
        if self.before.whole is not None:
            whole = replace(self.prover.context, fabric=self.before.whole)
            early = whole.judge([*old, Generation(common_here, tags, self.before.lag)])
            if not early.outcome.acyclic:
                allowed = [whole.judge(old).dependencies]
                common_here = guarded(common_here, whole.fabric, early.dependencies, allowed)
        trial = Steps(self.prover, self.before)
        trial.add("drop", common_here, tags)
        guarded_rules = with_guards(rules, guards)
        mixed = trial.proof(guarded_rules, tags).mixed
        if not mixed.outcome.acyclic:
            apart = [self.prover.judge(old), self.prover.alone(Generation(rules, tags))]
            allowed = [verdict.dependencies for verdict in apart]
            common_here = guarded(common_here, fabric, mixed.dependencies, allowed)
            guarded_rules = guarded(guarded_rules, fabric, mixed.dependencies, allowed)
        steps = Steps(self.prover, self.before)
        steps.add("drop what leads to failed parts", common_here, tags)
        is_guarded = guarded_rules is not rules
        steps.add("install the new rules", guarded_rules, tags, await_quiescence=is_guarded)
        if not (steps.proven and all(step.proof.fails_no_more(len(old)) for step in steps.steps)):
            return None
        if is_guarded:
            steps.add("remove the guards", rules, tags)
        return steps if steps.proven else None

    def dropping_first(self) -> Steps | None:
        """Two-phase, in which nothing is sent to links that are down from the first step on.

        None if that is not proven.
        """
        if self.before.whole is None or self.before.staying is not None:
            return None
        usable = set(self.before.fabric.links)
        down = [link for link in self.before.whole.links if link not in usable]
        ports = {end for link in down for end in ((link.a, link.a_port), (link.b, link.b_port))}
        for generation in self._free_generations():
            side_by_side = self._side_by_side(generation, ports)
            if side_by_side and (steps := self.two_phase(side_by_side)).proven:
                return steps
        return None

    def _side_by_side(
        self, generation: VlanGeneration, ports_down: Collection[tuple[str, int]] = ()
    ) -> _SideBySide | None:
        """Return the new rules next to what is installed; None if these do not fit.

        Until the old rules are removed, nothing is sent to ``ports_down``.
        """
        old, (new, tags) = self._old, self.in_generation(generation)
        prepared = without_ports(new, ports_down)
        old = without_ports(old, ports_down)
        try:
            installed = joined(old, without_admission(prepared))
            admitting = joined(without_admission(old) if tags is None else old, prepared)
        except RuleError:
            return None
        return _SideBySide(new, tags, installed, admitting)

    def two_phase(self, side_by_side: _SideBySide) -> Steps:
        """Two-phase: install the new generation, switch admission over, remove the old one."""
        steps = Steps(self.prover, self.before)
        steps.add("install the new VLAN generation", side_by_side.installed, self.before.tags)
        if steps.proven:
            self._switch_over(steps, side_by_side)
            steps.add("remove the old VLAN generation", side_by_side.new, side_by_side.tags)
        return steps

    def in_stages(self, side_by_side: _SideBySide) -> Steps:
        """Two-phase, in stages and while few pairs are dropped; else while more are, throughout."""
        context = self.prover.context
        if len(context.fabric.hosts) > MAX_HOSTS:
            return self._scheduled(side_by_side, throughout(everything_dropped(context.fabric)))
        old, new = (
            edges_by_pair(
                state_of_rules(context.fabric, rules, context.multicast, tags, any_address=False),
                context.flow_control,
            )
            for rules, tags in (
                (self.before.rules, self.before.tags),
                (side_by_side.new, side_by_side.tags),
            )
        )
        if self.before.tags is None and side_by_side.tags is None:
            now = self.prover.alone(self.before.held)
            schedule = schedule_between(old, new, now.failing_pairs(context.fabric))
            with suppress(RuleError):
                steps = self._scheduled(side_by_side, schedule)
                if steps.proven:
                    return steps
        return self._scheduled(side_by_side, throughout(dropped_throughout(old, new)))

    def _scheduled(self, side_by_side: _SideBySide, schedule: Schedule) -> Steps:
        """Switch admission over in the stages of a schedule.

        Raises RuleError if a switch cannot admit some pairs of a host to the old routes.
        """
        steps, dropped = Steps(self.prover, self.before), self._expanded(schedule.dropped_before)
        steps.add(
            "install the new VLAN generation" + _dropping(dropped),
            side_by_side.installed,
            self.before.tags,
            await_quiescence=bool(dropped or self.before.older_generations),
            dropped=dropped,
        )
        for stage in schedule.stages:
            self._switch_over(steps, side_by_side, stage)
        action = "remove the old VLAN generation"
        if schedule.stages[-1].dropped:
            action += ", admit the dropped frames"
        steps.add(action, side_by_side.new, side_by_side.tags)
        return steps

    def _expanded(self, pairs: tuple[Pair, ...]) -> tuple[Pair, ...]:
        """Return the pairs, and those of groups, whose frames are dropped with those to all."""
        groups = [f"multicast:{group.number}" for group in self.prover.context.multicast]
        more = [(source, name) for source, to in pairs if to == ALL for name in groups]
        return tuple(sorted({*pairs, *more}))

    def _switch_over(
        self, steps: Steps, side_by_side: _SideBySide, stage: Stage = EVERYBODY
    ) -> None:
        """Add the steps that admit frames to the new generation, until the old is quiescent."""
        context = self.prover.context
        old_tags, retagged = self.before.tags, side_by_side.tags != self.before.tags
        dropped = self._expanded(stage.dropped)
        admitting = side_by_side.admitting
        action = "switch admission over to the new VLAN generation"
        if stage.staying:
            admitting = keeping(
                admitting, self.before.rules, context.fabric, stage.staying, context.multicast
            )
            action += f", but for {len(stage.staying)} pairs of hosts"
        action += _dropping(dropped)
        steps.add(action, admitting, old_tags, await_quiescence=not retagged, dropped=dropped)
        if retagged:
            action = "hosts take their new tags"
            steps.add(action, admitting, side_by_side.tags, await_quiescence=True, dropped=dropped)

    def dropped_in_place(self) -> Steps:
        """With dropping, without a free VLAN generation: all frames are dropped."""
        rules, tags = self.in_generation(self._generation_in_place())
        dropped = everything_dropped(self.before.fabric)
        steps = Steps(self.prover, self.before)
        action = "drop all frames"
        steps.add(
            action, self.before.rules, self.before.tags, await_quiescence=True, dropped=dropped
        )
        steps.add("install the new rules", rules, tags, dropped=dropped)
        steps.add("admit all frames", rules, tags)
        return steps

    def _refuse_deadlock(self) -> None:
        """Raise PlanError if the new plan, or what is installed, can deadlock by itself."""
        context = self.prover.context
        for subject, generation in (
            ("what is installed", self.before.held),
            ("the new plan", Generation(self.compiled, self.tags)),
        ):
            outcome = self.prover.alone(generation).outcome
            if not outcome.acyclic:
                raise PlanError(
                    f"{subject} {verdict_text(context.flow_control, outcome.cycle)}; no change"
                    " between rules of which either can deadlock can be proven"
                )


def _dropping(pairs: tuple[Pair, ...]) -> str:
    """Return what the action of a step says of the pairs that it drops."""
    return f", drop frames of {len(pairs)} pairs that could close a cycle" if pairs else ""
