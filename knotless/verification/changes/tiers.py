"""The steps from what is installed to a new plan: the first tier of which each step is proven.

1. All switches take the new rules, in any order; or, after a failure, what leads to the failed
   part is dropped first (:mod:`knotless.verification.changes.in_place`).
2. Two planes (:mod:`knotless.forwarding.openflow.planes`): the new rules are installed in VLANs
that are
   not in use, then admission is switched over, and when the old plane is empty it is removed.
   Under PFC the new plane gets priorities of its own if it can deadlock with the old one.
3. Frames of some pairs are stopped at admission until the old plane is empty, so that what is left
   cannot deadlock. If no plane is free, switches change in batches
   (:mod:`knotless.verification.changes.batches`). If neither is proven, everything is stopped.

If the new plan is of another fabric, rules of both never meet on a packet: two planes, or all
frames are stopped. Compiled rules forward an address that no host of their fabric has to some host
or other, so that the rules of two fabrics together could send such a packet round for ever.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from knotless.base.errors import PlanError, RuleError
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.failover import ProtectedRules
from knotless.forwarding.openflow.planes import (
    PLANES,
    VLAN_BITS,
    Plane,
    joined,
    plane_of,
    planes_in,
    priorities_of,
    rules_in,
    tags_in,
    without_admission,
)
from knotless.forwarding.openflow.reader import Generation, state_of_rules
from knotless.forwarding.openflow.rules import FabricRules, SwitchRules
from knotless.routing.graphs.channels import PRIORITIES
from knotless.routing.plan import Plan
from knotless.routing.vlans.host_tags import HostTags
from knotless.verification.changes.batches import add_batches
from knotless.verification.changes.change import EVERYTHING, Change, Installed, Pair
from knotless.verification.changes.in_place import common_rules, guarded
from knotless.verification.changes.proof import Circumstances, Prover
from knotless.verification.changes.steps import Steps
from knotless.verification.changes.stops import pairs_to_stop
from knotless.verification.verdict_text import verdict_text


def plan_change(before: Installed, new_plan: Plan) -> Change:
    """Return the proven steps from what is installed to ``new_plan``.

    The last step's rules are those of the plan, in the plane that was chosen. If the installed
    rules do the same already, there are no steps and the tier is 0.

    Raises
    ------
    PlanError
        The switches' tables cannot express the plan, or it can deadlock under the flow control
        of ``before``, or so can what is installed: then nothing can be proven.

    """
    return _planner(before, new_plan).change()


def plan_in_place(before: Installed, new_plan: Plan) -> Change | None:
    """Return the steps of a repair in place (:mod:`verification.changes.in_place`), or None."""
    steps = _planner(before, new_plan).in_place()
    return None if steps is None else steps.change(1, in_place=True)


def _planner(before: Installed, new_plan: Plan) -> _Planner:
    groups = {group.number: group for group in (*before.multicast, *new_plan.multicast)}
    circumstances = Circumstances(before.fabric, before.flow_control, tuple(groups.values()))
    return _Planner(before, new_plan, Prover(circumstances, before.staying))


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
class _Planes:
    """The new rules and tags in a plane of their own, and the rules of both planes together.

    ``both`` admit what is admitted now, and frames that hosts tag for the new plane. ``admitted``
    admit frames to the new plane; if hosts tag now, also what they send until they stop doing so.
    """

    new: FabricRules
    tags: HostTags | None
    both: FabricRules
    admitted: FabricRules


class _Planner:
    def __init__(self, before: Installed, new_plan: Plan, prover: Prover) -> None:
        self.before, self.new_plan, self.prover = before, new_plan, prover
        self.compiled: FabricRules = compile_rules(new_plan)
        names = [switch.name for switch in before.fabric.switches]
        if missing := [name for name in names if name not in self.compiled]:
            self.compiled = {**self.compiled, **dict.fromkeys(missing, SwitchRules(()))}
        self.tags = new_plan.host_tags()
        self.now = before.plane or plane_of(before.rules, before.tags)
        self.fits_in_a_plane = int(new_plan.pair_vlans.max()) >> VLAN_BITS == 0
        self.priorities = new_plan.vcs
        if isinstance(self.compiled, ProtectedRules):
            self.priorities = max(self.priorities, self.compiled.backups.priority + 1)
        self._in_planes: dict[Plane, tuple[FabricRules, HostTags | None]] = {}

    def change(self) -> Change:
        steps = self.at_once()
        if not steps.taken:
            return Change(0, self.before, ())
        if self.before.staying is None:
            if steps.proven:
                return steps.change(1)
            if (found := self.in_place()) is not None:
                return found.change(1, in_place=True)
        self._refuse_deadlock()
        planes = None
        for plane in self._free_planes():
            planes = self._side_by_side(plane)
            if planes and (steps := self.two_planes(planes)).proven:
                return steps.change(2)
        if planes:
            steps = self.stopped_planes(planes)
            suffices = steps.proven
        elif self.before.staying is None:
            steps = Steps(self.prover, self.before)
            suffices = add_batches(steps, *self.in_plane(self._plane_in_place()))
        else:
            suffices = False
        if not suffices:
            steps = self.stopped_in_place()
        if not steps.proven:
            raise PlanError("no order of steps could be proven for this change")
        return steps.change(3)

    def in_plane(self, plane: Plane) -> tuple[FabricRules, HostTags | None]:
        """Return the new rules and tags in a plane; again the same ones for the same plane."""
        if plane not in self._in_planes:
            found = rules_in(self.compiled, plane), tags_in(self.tags, plane)
            self._in_planes[plane] = found
        return self._in_planes[plane]

    @cached_property
    def _old(self) -> FabricRules:
        return dict(self.before.rules)

    def _plane_in_place(self) -> Plane:
        """Return the plane in use, without priorities of its own if the plan needs them."""
        number = self.now.number if self.fits_in_a_plane else 0
        return Plane(number, min(self.now.first_priority, PRIORITIES - self.priorities))

    def _free_planes(self) -> list[Plane]:
        """Return the planes that the new rules can take, first those with the same priorities."""
        held = [*self.before.undrained, Generation(self._old, self.before.tags)]
        used = frozenset[int]().union(*(planes_in(of.rules, of.tags) for of in held))
        if not self.fits_in_a_plane:
            return []
        taken = frozenset[int]().union(*(priorities_of(of.rules) for of in held))
        fits = range(PRIORITIES - self.priorities + 1)
        apart = [first for first in fits if taken.isdisjoint(range(first, first + self.priorities))]
        usual = self._plane_in_place().first_priority
        choices = dict.fromkeys([usual, *apart[:1]] if self._has_priorities() else [usual])
        free = [number for number in range(PLANES) if number not in used][:1]
        return [Plane(number, first) for number in free for first in choices]

    def _has_priorities(self) -> bool:
        return self.before.flow_control.switch_links.by_priority

    def at_once(self) -> Steps:
        """Tier 1: all switches take the new rules."""
        steps = Steps(self.prover, self.before)
        steps.add("install the new rules", *self.in_plane(self._plane_in_place()))
        return steps

    def in_place(self) -> Steps | None:
        """Tier 1 after a failure: drop what leads to the failed part, install the new rules.

        None if that is not proven, or if frames would be dropped that are delivered now.
        """
        if self.before.plan is None or self.before.undrained:
            return None
        common = common_rules(self.before.plan, self.new_plan)
        if common is None:
            return None
        try:
            common_here: FabricRules = rules_in(common, self._plane_in_place())
        except RuleError:
            return None
        rules, tags = self.in_plane(self._plane_in_place())
        before, fabric = Generation(self.before.rules, self.before.tags), self.before.fabric
        if self.before.whole is not None:
            whole = replace(self.prover.circumstances, fabric=self.before.whole)
            early = whole.judge([before, Generation(common_here, tags)])
            if not early.outcome.acyclic:
                allowed = [whole.judge([before]).dependencies]
                common_here = guarded(common_here, whole.fabric, early.dependencies, allowed)
        trial = Steps(self.prover, self.before)
        trial.add("drop", common_here, tags)
        mixed, guarded_rules = trial.proof(rules, tags).mixed, rules
        if not mixed.outcome.acyclic:
            after = Generation(rules, tags)
            allowed = [self.prover.alone(of).dependencies for of in (before, after)]
            common_here = guarded(common_here, fabric, mixed.dependencies, allowed)
            guarded_rules = guarded(rules, fabric, mixed.dependencies, allowed)
        steps = Steps(self.prover, self.before)
        steps.add("drop what leads to failed parts", common_here, tags)
        is_guarded = guarded_rules is not rules
        steps.add("install the new rules", guarded_rules, tags, drain=is_guarded)
        if not (steps.proven and all(step.proof.fails_no_more for step in steps.taken)):
            return None
        if is_guarded:
            steps.add("remove the guards", rules, tags)
        return steps if steps.proven else None

    def _side_by_side(self, plane: Plane) -> _Planes | None:
        """Return the new rules in a plane next to what is installed; None if these do not fit."""
        old, (new, tags) = self._old, self.in_plane(plane)
        try:
            both = joined(old, without_admission(new))
            admitted = joined(without_admission(old) if tags is None else old, new)
        except RuleError:
            return None
        return _Planes(new, tags, both, admitted)

    def two_planes(self, planes: _Planes) -> Steps:
        """Tier 2: install the new plane, switch admission over, remove the old plane."""
        steps = Steps(self.prover, self.before)
        steps.add("install the new plane", planes.both, self.before.tags)
        if steps.proven:
            self._switch_over(steps, planes)
            steps.add("remove the old plane", planes.new, planes.tags)
        return steps

    def stopped_planes(self, planes: _Planes) -> Steps:
        """Tier 3: as tier 2, while the pairs that could close a cycle are stopped."""
        about = self.prover.circumstances
        states = [
            state_of_rules(about.fabric, self.before.rules, about.multicast, self.before.tags),
            state_of_rules(about.fabric, planes.new, about.multicast, planes.tags),
        ]
        stopped = pairs_to_stop(states, about.flow_control)
        steps = Steps(self.prover, self.before)
        action = "install the new plane, stop frames that could close a cycle"
        steps.add(action, planes.both, self.before.tags, drain=True, stopped=stopped)
        self._switch_over(steps, planes, stopped)
        action = "remove the old plane, admit the stopped frames"
        steps.add(action, planes.new, planes.tags)
        return steps

    def _switch_over(self, steps: Steps, planes: _Planes, stopped: tuple[Pair, ...] = ()) -> None:
        """Add the steps after which all frames are admitted to the new plane, and drain."""
        old_tags, retagged = self.before.tags, planes.tags != self.before.tags
        action = "switch admission over to the new plane"
        steps.add(action, planes.admitted, old_tags, drain=not retagged, stopped=stopped)
        if retagged:
            action = "hosts take their new tags"
            steps.add(action, planes.admitted, planes.tags, drain=True, stopped=stopped)

    def stopped_in_place(self) -> Steps:
        """Tier 3 without a free plane: all frames are stopped."""
        rules, tags = self.in_plane(self._plane_in_place())
        stopped = tuple((host.name, EVERYTHING) for host in self.before.fabric.hosts)
        steps = Steps(self.prover, self.before)
        action = "stop all frames"
        steps.add(action, self.before.rules, self.before.tags, drain=True, stopped=stopped)
        steps.add("install the new rules", rules, tags, stopped=stopped)
        steps.add("admit all frames", rules, tags)
        return steps

    def _refuse_deadlock(self) -> None:
        """Raise PlanError if the new plan, or what is installed, can deadlock by itself."""
        about = self.prover.circumstances
        for what, generation in (
            ("what is installed", Generation(self.before.rules, self.before.tags)),
            ("the new plan", Generation(self.compiled, self.tags)),
        ):
            outcome = self.prover.alone(generation).outcome
            if not outcome.acyclic:
                raise PlanError(
                    f"{what} {verdict_text(about.flow_control, outcome.cycle)}; no change between"
                    " rules of which either can deadlock can be proven"
                )
