"""The role of this controller at each switch: role requests, and what becomes of them.

:mod:`knotless.controller.election.election` decides; this is its connection to the switches.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from knotless.controller import runtime
from knotless.controller.election.election import Election, Request, Role
from knotless.controller.observed import Observed
from knotless.controller.openflow import constants as ofp
from knotless.controller.openflow.messages import role_request
from knotless.controller.openflow.records import RoleReply
from knotless.controller.openflow.replies import Refusal
from knotless.controller.openflow.session import Session, SwitchGoneError

_NO_GENERATION = (1 << 64) - 1
"""Reported by a switch that has had no master."""
_CODES: Mapping[Role | None, int] = {
    None: ofp.OFPCR_ROLE_NOCHANGE,
    "equal": ofp.OFPCR_ROLE_EQUAL,
    "master": ofp.OFPCR_ROLE_MASTER,
    "slave": ofp.OFPCR_ROLE_SLAVE,
}
_ROLES: Mapping[int, Role] = {code: role for role, code in _CODES.items() if role}
_LOG = logging.getLogger("knotless.roles")


class Roles:
    """The roles of this controller; what it calls returns at once.

    Parameters
    ----------
    election : decides.
    observed : reports of the switches.
    sessions : the connected switches, by dpid.
    lead, stand_by : begin to lead the switches; change nothing any more.
    serve : brings a switch into line that has accepted us while we are active, by its dpid.
    threads : those of the controller.

    """

    def __init__(
        self,
        *,
        election: Election,
        observed: Observed,
        sessions: Mapping[int, Session],
        lead: Callable[[], None],
        stand_by: Callable[[], None],
        serve: Callable[[int], None],
        threads: runtime.Threads,
    ) -> None:
        self.election = election
        self._observed, self._sessions, self._threads = observed, sessions, threads
        self._lead, self._stand_by, self._serve = lead, stand_by, serve
        self._sending: set[Session] = set()
        self._is_active = False

    def start(self) -> None:
        """Begin to ask switches."""
        self._threads.spawn(self._run)

    # --- events ------------------------------------------------------------------------------

    def connected(self, dpid: int) -> None:
        """Ask a switch that has connected."""
        if dpid in self.election.dpids:
            self._send(self.election.connected(dpid, runtime.now_s()))

    def disconnected(self, dpid: int) -> None:
        """Forget a connection."""
        self.election.disconnected(dpid)

    def answered(self, dpid: int, reply: RoleReply) -> None:
        """Take the answer to a role request."""
        role = _ROLES.get(reply.role)
        if role is None:
            return
        was_master = self.election.is_master(dpid)
        generation = None if reply.generation_id == _NO_GENERATION else reply.generation_id
        now_s = runtime.now_s()
        self._send(self.election.answered(dpid, role, generation, now_s))
        self._send(self.election.settle(now_s, self.dead))
        self._follow()
        if self._is_active and self.election.is_master(dpid) and not was_master:
            self._serve(dpid)

    def refused(self, dpid: int, refusal: Refusal) -> None:
        """Take an error message: of a role request, or of a change by one who is not master."""
        is_slave = (refusal.kind, refusal.code) == (ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_IS_SLAVE)
        if is_slave or refusal.kind == ofp.OFPET_ROLE_REQUEST_FAILED:
            self.election.refused(dpid, runtime.now_s())
        self._follow()

    # --- see takeover.MastershipView ----------------------------------------------------------

    def may_change(self, dpid: int) -> bool:
        """Return whether the rules of a switch may be changed now."""
        may = self.election.may_change(dpid, runtime.now_s())
        self._follow()
        return may

    @property
    def dead(self) -> set[int]:
        """The dpids of switches that carry no frames, whose rules do not matter."""
        return self._observed.dead_dpids()

    is_sole = False

    @property
    def is_complete(self) -> bool:
        """Whether this controller has been master of all switches that are not dead."""
        return self.election.is_complete

    # --- inside ------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            self._send(self.election.tick(runtime.now_s(), self.dead))
            self._follow()
            runtime.sleep(self.election.times.interval_s)

    def _follow(self) -> None:
        """Act when this controller has become active, or is no longer."""
        is_active = self.election.state == "active"
        if is_active == self._is_active:
            return
        self._is_active = is_active
        if is_active:
            _LOG.warning("this controller is active now, in term %d", self.election.term)
            self._lead()
        else:
            _LOG.warning("this controller is on standby now: %s", self.election.why)
            self._stand_by()

    def _send(self, requests: list[Request]) -> None:
        for request in requests:
            session = self._sessions.get(request.dpid)
            # A switch that takes nothing must not hold up the others.
            if session is not None and session not in self._sending:
                self._sending.add(session)
                self._threads.spawn(self._send_one, session, request)

    def _send_one(self, session: Session, request: Request) -> None:
        try:
            session.send(role_request(_CODES[request.role], request.generation))
        except SwitchGoneError:
            pass
        finally:
            self._sending.discard(session)
