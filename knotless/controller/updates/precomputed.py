"""Update plans before they are needed: for the failure of each link. Pure.

An update plan depends only on its goal and on what switches hold. So while nothing changes, those
for the next failure can be computed, and a failure then costs no time for planning and proofs. They
are kept for some time, since switches often come back to the rules that they had. What a link that
returns changes is planned when failures have settled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from knotless.base.errors import KnotlessError
from knotless.controller.updates.planning import Goal, UpdatePlan, UpdateTask, plan_update
from knotless.controller.updates.worker import Packing
from knotless.topologies.failures import Failures

MAX_BYTES = 96 << 20
"""Size of the plans of all bases together: of 100 switches, those of the intact plan take 40 MB."""
MAX_BASES = 6
"""Sets of rules from which plans are kept. Four are of the intact plan: a returning link puts it
into the other VLAN generation, there with the same priorities or with others."""


def plan_ahead(task: UpdateTask) -> UpdatePlan | None:
    """Return the update plan of a task, or None if there is no proven one."""
    try:
        return plan_update(task)
    except KnotlessError:
        return None


@dataclass(eq=False)
class _Base:
    """Rules that all switches hold, and the update plans from them, packed, by their goals.

    ``task`` is one of which all steps are done.
    """

    task: UpdateTask
    packing: Packing = field(init=False)
    plans: dict[Goal, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        desired, held = self.task.goal.desired, self.task.held
        switches = [held.rules[name] for name in sorted(held.rules)]
        rules = (rule for switch in switches for rule in switch.rules)
        whole = (desired, desired.fabric, desired.plan, desired.routed)
        parts = (*whole, self.task.plan, held, held.rules, held.tags, *switches, *rules)
        self.packing = Packing(parts)

    def equals(self, task: UpdateTask) -> bool:
        """Return whether the plans are also those from the rules of a task."""
        mine = self.task
        return (
            mine.goal == task.goal
            and mine.flow_control == task.flow_control
            and (mine.plan is None) == (task.plan is None)
            and mine.held == task.held
        )


class PrecomputedRepairs:
    """Update plans from the rules that switches hold now, and from those that they held before."""

    def __init__(self) -> None:
        self._bases: list[_Base] = []
        """The last base belongs to the current rules."""

    def find(self, task: UpdateTask) -> UpdatePlan | None:
        """Return the update plan of a task, if it was computed before."""
        if not self._starts_like(task) or task.union is not None:
            return None
        base = self._bases[-1]
        packed = base.plans.get(task.goal)
        plan: UpdatePlan | None = base.packing.unpack(packed) if packed else None
        if plan is not None and plan.change.needs_links_down and task.carrying:
            return None  # it is proven for failed links that carry nothing
        return plan

    def next(self, idle: UpdateTask | None) -> UpdateTask | None:
        """Return what to plan next; ``idle`` is the task without steps, None during an update."""
        if idle is None:
            return None
        if not self._starts_like(idle):
            self._begin(idle)
        goal = self._missing()
        return None if goal is None else replace(self._bases[-1].task, goal=goal)

    @property
    def packing(self) -> Packing:
        """The packing of plans from the current rules; only after :meth:`next`."""
        return self._bases[-1].packing

    def keep(self, task: UpdateTask, plan: bytes) -> None:
        """Keep the result of :func:`plan_ahead` for a task, packed."""
        if self._starts_like(task):
            self._bases[-1].plans[task.goal] = plan

    def as_json(self, idle: UpdateTask | None) -> dict[str, object]:
        """Return how many updates of the current rules are planned, and whether none is left."""
        if idle is None or not self._starts_like(idle):
            return {"ways": 0, "complete": False}
        return {"ways": len(self._bases[-1].plans), "complete": self._missing() is None}

    def _missing(self) -> Goal | None:
        """Return the first goal without a plan, None if there is none or no room for more."""
        if self._size > MAX_BYTES:
            return None
        base = self._bases[-1]
        goals = _next_goals(base.task.goal)
        return next((goal for goal in goals if goal not in base.plans), None)

    @property
    def _size(self) -> int:
        return sum(len(plan) for base in self._bases for plan in base.plans.values())

    def _begin(self, idle: UpdateTask) -> None:
        """Make a base of the current rules; the plans from equal rules are its own."""
        base = _Base(idle)
        for earlier in self._bases:
            if earlier.equals(idle):
                base.plans = earlier.plans
                self._bases.remove(earlier)
                break
        self._bases.append(base)
        while len(self._bases) > MAX_BASES or (len(self._bases) > 1 and self._size > MAX_BYTES):
            others = self._bases[:-1]
            # The next failure is seldom the same one again.
            after_failures = [other for other in others if other.task.goal.failures]
            self._bases.remove((after_failures or others)[0])

    def _starts_like(self, task: UpdateTask) -> bool:
        if not self._bases:
            return False
        base = self._bases[-1].task
        return (
            task.held.rules is base.held.rules
            and task.plan is base.plan
            and task.flow_control == base.flow_control
            and not (task.in_flight or task.unread)
        )


def _next_goals(goal: Goal) -> Iterator[Goal]:
    """Yield the goals after one more link fails."""
    fabric, names = goal.desired.fabric, goal.failures.names
    for link in fabric.links:
        if link.name not in names:
            yield goal.after(Failures.from_names(fabric, [*names, link.name]))
