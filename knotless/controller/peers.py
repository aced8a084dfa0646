"""Several controllers of one fabric: which of them is active, and what a standby follows."""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus

from knotless.base.errors import KnotlessError
from knotless.base.http_rules import HttpError
from knotless.controller import runtime
from knotless.controller.election.election import Election, Times
from knotless.controller.overrides import StateFile
from knotless.controller.updates.fabric_state import FabricState
from knotless.controller.updates.journal import UpdateJournal
from knotless.topologies.union import removed

_LOG = logging.getLogger("knotless.roles")
_WATCH_S = 1.0


class HaPeers:
    """One of the ``controllers`` of a configuration, or the only one.

    Parameters
    ----------
    state : what is known of the fabric.
    state_file : what operators have requested.
    journal : where the active controller keeps what exists during an update.
    number : that of this controller; None: it is the only one.

    Attributes
    ----------
    election : that in which this controller takes part; None: it is the only one.

    """

    def __init__(
        self,
        *,
        state: FabricState,
        state_file: StateFile,
        journal: UpdateJournal,
        number: int | None,
    ) -> None:
        self._state, self._state_file, self._journal = state, state_file, journal
        self.election: Election | None = None
        if number is not None:
            dpids = frozenset(state.observed.switches)
            count = len(state_file.config.controllers)
            self.election = Election(number, count, dpids, Times.for_switches(len(dpids)))

    def role(self) -> dict[str, object] | None:
        """Return what ``GET /status`` shows; ``active`` may be another one, or unknown.

        None: this is the only controller.
        """
        if (election := self.election) is None:
            return None
        addresses = self._state_file.config.controllers
        state, active = election.state, election.active
        is_peer = active is not None and active < len(addresses)
        return {
            "state": "reading" if state == "active" and not self._state.leads else state,
            "controller": addresses[election.number],
            "active": addresses[active] if active is not None and is_peer else None,
            "term": election.term,
            "controllers": list(addresses),
        }

    def require_active(self) -> None:
        """Raise HttpError if another controller is to be asked for changes."""
        if self._state.leads:
            return
        if (role := self.role()) is None:
            interrupted = "a change that was interrupted goes on: wait until GET /status is settled"
            reading = "the rules of all switches are read first: wait until GET /status is ready"
            raise HttpError(
                HTTPStatus.CONFLICT, interrupted if self._state.is_interrupted else reading
            )
        active = role.get("active")
        where = f"the active one is {active}" if active else "none is active yet"
        raise HttpError(
            HTTPStatus.SERVICE_UNAVAILABLE,
            f"this controller is on standby and changes nothing; {where}",
        )

    def follow_fabric(self, withdraw: Callable[[], None]) -> None:
        """Forget what the fabric had before an update that the active controller has completed.

        ``withdraw`` does that.
        """
        if self._state.update.union.staying is None:
            return
        fabric = self._state.desired.fabric
        try:
            reached = self._journal.completed()
        except KnotlessError as error:
            _LOG.error("changes of the fabric are not followed: %s", error)
            return
        if reached is not None and not (removed(reached, fabric) or removed(fabric, reached)):
            withdraw()

    def watch(self, withdraw: Callable[[], None]) -> None:
        """Stay up to date while another controller is active, so that a takeover is quick.

        ``withdraw`` forgets what a fabric had before it changed.
        """
        while True:
            if self._state.leads:
                self._state_file.mend()
            else:
                self._state_file.follow()
                self.follow_fabric(withdraw)
            runtime.sleep(_WATCH_S)
