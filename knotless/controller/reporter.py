"""Reports to operators of what happens to switches: events, metrics and the history of changes."""

from __future__ import annotations

from typing import Any

from knotless.controller import runtime
from knotless.controller.reconcile import Changes
from knotless.controller.rest.events import Events
from knotless.controller.rest.metrics import Metrics
from knotless.controller.status import Status
from knotless.controller.updates.journal import History
from knotless.controller.updates.planning import UpdatePlan

_RECORD_AFTER_S = 1.0
"""Repairs come first: records of changes wait until no change has ended for this time."""


class EventReporter:
    """The :class:`~knotless.controller.updates.scheduler.Reporter` of a controller.

    ``status`` reports the state, ``history`` keeps the last updates, ``events`` and ``metrics`` are
    what ``GET /events`` and ``GET /metrics`` show.
    """

    def __init__(self, *, status: Status, history: History, threads: runtime.Threads) -> None:
        self._status, self._state, self._threads = status, status.state, threads
        self.history = history
        self.events = Events(runtime.unix_time_s)
        self.metrics = Metrics(status, runtime.now_s)
        self._recording: Any = None

    def tell(self, kind: str, **fields: Any) -> None:
        """Report an event to all clients of ``/events``."""
        if kind == "installed":
            self.history.confirmed(str(fields["switch"]), self._state.update.progress.number)
        elif kind == "dropped":
            self.metrics.dropped_pairs.inc(fields["pairs"])
            self.metrics.dropped_s.inc(fields["seconds"])
            self.history.dropped(fields["seconds"])
        elif kind == "served":
            self.history.served(fields["seconds"])
        self.events.tell(kind, **fields)

    def installed(self, changes: Changes, seconds: float) -> None:
        """Count the changes with which a switch got its rules."""
        for command in ("add", "modify", "delete"):
            self.metrics.changes.labels(command).inc(changes.count(command))
        self.metrics.install_s.observe(seconds)

    def changed(self, plan: UpdatePlan, seconds: float) -> None:
        """Count and report an update that all switches have confirmed."""
        stretch = self._status.stretch
        self.metrics.route_change_s.labels(str(plan.change.tier)).observe(seconds)
        self.tell(
            "routes",
            failed=list(plan.goal.failures.names),
            drained=list(plan.goal.desired.drained),
            repair=plan.kind,
            tier=plan.change.tier,
            rules_changed=plan.rules_changed,
            dropped_pairs=plan.change.count(plan.change.dropped),
            seconds=round(seconds, 3),
            stretch=stretch,
        )
        ages_s = self._state.observed.ages_of_update_s
        self.history.add(plan, self._state.update.progress.number, seconds, stretch, ages_s)
        if self._recording is not None:
            self._recording.cancel()
        self._recording = self._threads.spawn_after(_RECORD_AFTER_S, self._record)

    def _record(self) -> None:
        """Compute the records of the last updates."""
        self._recording = None
        while self.history.complete_record(runtime.in_thread):
            pass
