"""Asks the switches at intervals for the frames that they did not admit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from ryu.lib import hub

from knotless.controller.southbound.session import Session, SwitchGoneError
from knotless.controller.status import Status

INTERVAL_S = 5.0
"""Between two counts of one switch; longer than rules are counted late."""


class AdmissionWatch:
    """A green thread; ``sessions`` returns names and sessions of the connected switches."""

    def __init__(
        self, status: Status, sessions: Callable[[], Iterable[tuple[str, Session]]]
    ) -> None:
        self._status, self._sessions = status, sessions
        self._step = 0

    def run(self) -> None:
        """Watch for ever, one switch after the other, spread over the interval."""
        while True:
            sessions = list(self._sessions())
            for name, session in sessions:
                self._ask(name, session)
                hub.sleep(INTERVAL_S / len(sessions))
            if not sessions:
                hub.sleep(INTERVAL_S)

    def _ask(self, name: str, session: Session) -> None:
        transition, frames = self._status.transition, self._status.not_admitted
        if transition.number != self._step or not transition.is_there or transition.undrained:
            # A change of routes may stop frames of hosts, and its rules count from zero.
            self._step = transition.number
            frames.forget()
            return
        try:
            found = session.admission()
        except SwitchGoneError:
            return
        frames.see(name, found, time.monotonic())
