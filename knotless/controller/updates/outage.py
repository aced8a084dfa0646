"""Pairs of hosts that are down because failures have cut their routes, and since when. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from knotless.controller.updates.state import UpdateState


@dataclass(frozen=True)
class Outage:
    """Pairs of hosts that are down since ``since_s``, until ``until_step`` of the last update plan.

    ``pairs`` and ``until_step`` are None as long as no plan tells. ``most`` are those that were
    down at a time.
    """

    since_s: float
    pairs: int | None = None
    until_step: int | None = None
    most: int = 0

    def as_json(self, now_s: float) -> dict[str, object]:
        """Return what ``GET /status`` shows: the pairs, for how long, and until which step."""
        seconds = round(now_s - self.since_s, 3)
        return {"pairs": self.pairs, "seconds": seconds, "until_step": self.until_step}


NO_OUTAGE = {"pairs": 0, "seconds": 0.0, "until_step": None}
"""What :meth:`Outage.as_json` would be if no pair is down."""


def outage_now(update: UpdateState, before: Outage | None, now_s: float) -> Outage | None:
    """Return the pairs that are down now, None if there are none; ``before`` was true until now.

    Pairs are down until all switches have confirmed the step that serves them.
    """
    since_s, most = (now_s, 0) if before is None else (before.since_s, before.most)
    fabric = update.union.fabric
    cut = update.union.failures.dead_links(fabric) - update.avoided.dead_links(fabric)
    if cut or (before is not None and not update.progress.has_plan):
        return Outage(since_s, most=most)
    change = update.progress.plan.change if update.progress.plan else None
    pairs = change.down[update.progress.confirmed_steps] if change and change.down else 0
    if not (pairs and change):
        return None
    return Outage(since_s, pairs, change.served_by_step, max(most, pairs))
