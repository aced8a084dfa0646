"""Goals that were tried in vain, until something changes that may make them possible. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from knotless.controller.updates.planning import Goal
from knotless.topologies.failures import Failures


@dataclass
class FailedAttempts:
    """Goals to which no steps lead at the moment.

    ``problem`` is the reason for which the goal cannot be reached, one line, or None.
    """

    problem: str | None = None
    refused: tuple[Goal, Failures] | None = None
    """The goal that cannot be reached, and what had failed."""
    early: tuple[Goal, Failures] | None = None
    """What cannot be served before the current step ends, or all have confirmed it."""
    declined: set[Goal] = field(default_factory=set)
    """Goals to which no steps lead, and in place of which there are others."""

    def refuse(self, goal: Goal, failures: Failures, reason: str) -> None:
        """Record that a goal cannot be reached."""
        self.problem, self.refused = reason, (goal, failures)

    def retry(self) -> None:
        """Forget the refusal, because the goal is another one or there may be steps now."""
        self.problem = self.refused = None

    def retry_all(self) -> None:
        """Forget what was refused and declined, because something has failed or returned."""
        self.retry()
        self.declined.clear()

    def fewer_in_flight(self) -> None:
        """Forget all, because packets of older rules have left: there may be a proof now."""
        self.refused = self.early = None
        self.declined.clear()
