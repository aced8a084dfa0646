"""Changes that are planned before they are needed: the failure, and the return, of each link. Pure.

A way to a goal depends only on what switches hold. So while nothing changes, the ways after the
next failure can be computed, and a failure then costs no time for planning and proofs. What was
planned is kept for some time, since switches often come back to the rules that they had.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from knotless.base.errors import KnotlessError
from knotless.controller.packing import Packing
from knotless.controller.planning import Goal, Planned, Task, planned
from knotless.topologies.failures import Failures

MOST_BYTES = 96 << 20
"""Size of the ways of all bases together: of 100 switches, those of the intact plan take 40 MB."""
MOST_BASES = 6
"""Rules of which the ways are kept. Four are of the intact plan: a returning link puts it into the
other plane, there with the same priorities or with others."""


def plan_ahead(task: Task) -> Planned | None:
    """Return the way for a task, or None if there is no proven one."""
    try:
        return planned(task)
    except KnotlessError:
        return None


@dataclass(eq=False)
class _Base:
    """Rules that all switches hold, and the ways from them, packed, by what has failed then."""

    task: Task
    packing: Packing
    ways: dict[Failures, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, task: Task) -> _Base:
        """Return a base without ways; ``task`` is one of which all steps are done."""
        desired, held = task.goal.desired, task.held
        switches = [held.rules[name] for name in sorted(held.rules)]
        rules = (rule for of in switches for rule in of.rules)
        whole = (desired, desired.fabric, desired.plan, desired.routed)
        shared = (*whole, task.plan, held, held.rules, held.tags, *switches, *rules)
        return cls(task, Packing(shared))

    def equals(self, task: Task) -> bool:
        """Whether the ways are also those from the rules of a task."""
        mine = self.task
        return (
            mine.goal == task.goal
            and mine.flow_control == task.flow_control
            and (mine.plan is None) == (task.plan is None)
            and mine.held == task.held
        )


class Ahead:
    """Ways from the rules that switches hold now, and from those that they held before."""

    def __init__(self) -> None:
        self._bases: list[_Base] = []
        """Those of the rules of now are the last ones."""

    def find(self, task: Task) -> Planned | None:
        """Return the way for a task, if it is known."""
        if not self._starts_like(task) or task.existing is not None:
            return None
        base = self._bases[-1]
        if task.goal.desired is not base.task.goal.desired:
            return None
        packed = base.ways.get(task.goal.failures)
        way: Planned | None = base.packing.unpack(packed) if packed else None
        return way

    def next(self, now: Task | None) -> Task | None:
        """Return what to plan next; ``now`` is the task that has no steps, None during a change."""
        if now is None:
            return None
        if not self._starts_like(now):
            self._begin(now)
        goal = self._missing()
        return None if goal is None else replace(self._bases[-1].task, goal=goal)

    @property
    def packing(self) -> Packing:
        """How the ways from the rules of now are packed; only after :meth:`next`."""
        return self._bases[-1].packing

    def keep(self, task: Task, way: bytes) -> None:
        """Keep what :func:`plan_ahead` has returned for a task, packed."""
        if self._starts_like(task):
            self._bases[-1].ways[task.goal.failures] = way

    def as_json(self, now: Task | None) -> dict[str, object]:
        """Return how many changes from the rules of now are planned, and whether none is left."""
        if now is None or not self._starts_like(now):
            return {"ways": 0, "complete": False}
        return {"ways": len(self._bases[-1].ways), "complete": self._missing() is None}

    def _missing(self) -> Goal | None:
        """Return the first goal without a way, None if there is none or no room for more."""
        if self._size > MOST_BYTES:
            return None
        base = self._bases[-1]
        goals = _next_goals(base.task.goal)
        return next((goal for goal in goals if goal.failures not in base.ways), None)

    @property
    def _size(self) -> int:
        return sum(len(way) for base in self._bases for way in base.ways.values())

    def _begin(self, now: Task) -> None:
        """Make a base of the rules of now; the ways from equal rules are its own."""
        base = _Base.of(now)
        for known in self._bases:
            if known.equals(now):
                base.ways = known.ways
                self._bases.remove(known)
                break
        self._bases.append(base)
        while len(self._bases) > MOST_BASES or (len(self._bases) > 1 and self._size > MOST_BYTES):
            earlier = self._bases[:-1]
            # The next failure is seldom the same one again.
            of_failures = [known for known in earlier if known.task.goal.failures]
            self._bases.remove((of_failures or earlier)[0])

    def _starts_like(self, task: Task) -> bool:
        if not self._bases:
            return False
        known = self._bases[-1].task
        return (
            task.held.rules is known.held.rules
            and task.plan is known.plan
            and task.flow_control == known.flow_control
            and not task.undrained
        )


def _next_goals(goal: Goal) -> Iterator[Goal]:
    """Yield the goals after one failed link returns, then those after one more link fails."""
    fabric, names = goal.desired.fabric, goal.failures.names
    for name in names:
        others = [other for other in names if other != name]
        yield Goal(goal.desired, Failures.of(fabric, others))
    for link in fabric.links:
        if link.name not in names:
            yield Goal(goal.desired, Failures.of(fabric, [*names, link.name]))
