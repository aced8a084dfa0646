"""Changes that are planned before they are needed: the failure, and the return, of each link. Pure.

A way to a goal depends only on what switches hold. So while nothing changes, the ways after the
next failure can be computed, and a failure then costs no time for planning and proofs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from controller.planning import Goal, Planned, Task
from topologies.failures import Failures

MOST_RULES = 40_000
"""Changed rules of all ways together. The switches that change take about 2 KB for each of them."""


class Ahead:
    """Ways from the rules that switches hold now."""

    def __init__(self) -> None:
        self._from: Task | None = None
        self._ways: dict[Goal, Planned | None] = {}
        self._rules = 0

    def find(self, task: Task) -> Planned | None:
        """Return the way for a task, if it is known."""
        return self._ways.get(task.goal) if self._starts_like(task) else None

    def next(self, now: Task | None) -> Task | None:
        """Return what to plan next; ``now`` is the task that has no steps, None during a change."""
        if now is None:
            return None
        if not self._starts_like(now):
            self._from, self._ways, self._rules = now, {}, 0
        if self._rules > MOST_RULES:
            return None
        goals = (goal for goal in _next_goals(now.goal) if goal not in self._ways)
        goal = next(goals, None)
        return None if goal is None else replace(now, goal=goal)

    def keep(self, task: Task, way: Planned | None) -> None:
        """Keep the way for a task; None: there is none, or it is to be sought when needed."""
        if self._starts_like(task):
            self._ways[task.goal] = way
            self._rules += way.change.rules_changed if way else 0

    def _starts_like(self, task: Task) -> bool:
        known = self._from
        return (
            known is not None
            and task.held.rules is known.held.rules
            and task.plan is known.plan
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
