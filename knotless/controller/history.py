"""The last changes of routes: what changed, when each switch confirmed it, and the certificates.

Pure, except that the certificate of a change, which takes time, is computed by ``execute`` when
:meth:`History.certify` is called.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

from knotless.controller.planning import Planned
from knotless.verification.changes.certificate import certificate

Certify = Callable[[Callable[[Any], dict[str, object]], Any], dict[str, object]]

_MOST_WAITING = 16
"""Changes that may wait for their certificates: each of them holds all rules of its steps."""


class History:
    """The last ``size`` changes, oldest first."""

    def __init__(self, size: int, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._entries: deque[dict[str, Any]] = deque(maxlen=size)
        self._waiting: deque[tuple[dict[str, Any], Planned]] = deque()
        self._confirmed: dict[int, dict[str, float]] = {}
        self._count = 0

    def confirmed(self, switch: str, step: int) -> None:
        """Record that a switch holds the rules of a step, by the number of all steps so far."""
        self._confirmed.setdefault(step, {})[switch] = round(self._clock(), 6)

    def add(
        self, way: Planned, last_step: int, seconds: float, stretch: float | None = None
    ) -> None:
        """Add a change that all switches have confirmed; ``last_step`` is that of its last step.

        ``seconds`` are real; ``stretch`` is real over virtual time of emulated links meanwhile.
        """
        self._count += 1
        change = way.change
        first = last_step - len(change.steps) + 1
        entry: dict[str, Any] = {
            "number": self._count,
            "time": round(self._clock(), 6),
            "engine": way.goal.desired.plan.engine,
            "failed": list(way.goal.failures.names),
            "drained": list(way.goal.desired.drained),
            "repair": way.kind,
            "tier": change.tier,
            "rules_changed": way.rules_changed,
            "seconds": round(seconds, 6),
            "stretch": stretch,
            "confirmed": [self._confirmed.get(step, {}) for step in range(first, last_step + 1)],
            "certificate": None,
        }
        self._confirmed = {}
        self._entries.append(entry)
        self._waiting.append((entry, way))
        if len(self._waiting) > _MOST_WAITING:
            self._waiting.popleft()

    def certify(self, execute: Certify) -> bool:
        """Compute the oldest certificate that is missing; return whether there was one."""
        if not self._waiting:
            return False
        entry, way = self._waiting.popleft()
        entry["certificate"] = execute(certificate, way.change)
        return True

    def as_json(self) -> dict[str, object]:
        """Return the answer to ``GET /changes``."""
        return {"count": self._count, "changes": list(self._entries)}
