"""One of several controllers: what it shows of the others, and how it follows operators."""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus

import eventlet

from knotless.base.errors import KnotlessError
from knotless.controller import overrides
from knotless.controller.config import Config
from knotless.controller.desired import Desired
from knotless.controller.northbound.message import HttpError
from knotless.controller.operations import Operations
from knotless.controller.roles import Election, Times
from knotless.controller.status import Status
from knotless.controller.unfinished import Unfinished
from knotless.topologies.fabric import Fabric
from knotless.topologies.union import removed

_WATCH_S = 1.0
_LOG = logging.getLogger("knotless.roles")


class Several:
    """One of the ``controllers`` of a configuration, or the only one.

    ``compute`` computes a desired state while switches are served. ``unfinished`` is where the
    active controller keeps what exists during a change. ``withdraw`` forgets what a fabric had
    before it changed.
    """

    withdraw: Callable[[], None]

    def __init__(
        self,
        status: Status,
        operations: Operations,
        compute: Callable[[Config, Fabric, tuple[str, ...]], Desired],
        unfinished: Unfinished,
    ) -> None:
        self._status, self._operations, self._compute = status, operations, compute
        self._unfinished = unfinished

    def election(self, number: int) -> Election:
        """Return the election in which this controller takes part."""
        addresses = self._operations.config.controllers
        dpids = frozenset(self._status.observed.switches)
        found = Election(number, len(addresses), dpids, Times.of(len(dpids)))

        def role() -> dict[str, object]:
            """Return what ``GET /status`` shows; ``active`` may be another one, or unknown."""
            state, active = found.state, found.active
            known = active is not None and active < len(addresses)
            return {
                "state": "reading" if state == "active" and not self._status.leads else state,
                "controller": addresses[number],
                "active": addresses[active] if active is not None and known else None,
                "term": found.term,
                "controllers": list(addresses),
            }

        self._status.role = role
        return found

    def require_active(self) -> None:
        """Raise HttpError if another controller is to be asked for changes."""
        if self._status.leads:
            return
        role = self._status.role()
        if role is None:
            raise HttpError(
                HTTPStatus.CONFLICT,
                "a change that was interrupted goes on: wait until GET /status is settled",
            )
        active = role.get("active")
        where = f"the active one is {active}" if active else "none is active yet"
        raise HttpError(
            HTTPStatus.SERVICE_UNAVAILABLE,
            f"this controller is on standby and changes nothing; {where}",
        )

    def follow_operators(self) -> None:
        """Take what operators have changed through another controller, from the state file."""
        path, operations = self._operations.path, self._operations
        if path is None:
            return
        fabric = self._status.desired.fabric
        try:
            kept = overrides.read(path).current(operations.config, fabric)
            if kept == operations.overrides:
                return
            new = self._compute(kept.applied_to(operations.config), fabric, kept.drained)
        except KnotlessError as error:
            _LOG.error("changes made through another controller are not followed: %s", error)
            return
        operations.overrides, self._status.desired = kept, new

    def follow_fabric(self) -> None:
        """Forget what the fabric had before a change that the active controller has completed."""
        if self._status.transition.existing.staying is None:
            return
        fabric = self._status.desired.fabric
        try:
            reached = self._unfinished.completed()
        except KnotlessError as error:
            _LOG.error("changes of the fabric are not followed: %s", error)
            return
        if reached is not None and not (removed(reached, fabric) or removed(fabric, reached)):
            self.withdraw()

    def watch(self) -> None:
        """Stay up to date while another controller is active, so that a takeover is quick."""
        while True:
            if not self._status.leads:
                self.follow_operators()
                self.follow_fabric()
            eventlet.sleep(_WATCH_S)
