"""Learns the fabric while none is known: what switches, probes and frames of hosts show.

It takes the place of :class:`knotless.controller.southbound.switches.Switches` until the fabric is
complete. Nothing is forwarded in the meantime.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ryu.controller.handler import DEAD_DISPATCHER
from ryu.lib import hub

from knotless.base.errors import FabricError
from knotless.controller import probe_rules
from knotless.controller.cables import At
from knotless.controller.host_frames import sender_of
from knotless.controller.learning import Learning
from knotless.controller.probing import PROBES_PER_S
from knotless.controller.southbound.probe_frames import Frames, packet_in_parts
from knotless.controller.southbound.session import Session, SwitchGoneError, ports_of
from knotless.forwarding.openflow.rules import Rule
from knotless.topologies.fabric import Fabric

_INTERVAL_S = 0.25
_ALIVE_S = 2.0
_RECENT = 16
"""Rounds for which a probe counts: nobody can keep it, and send it from elsewhere later."""
_LOG = logging.getLogger("knotless.learning")


def hear(learning: Learning, frames: Frames, at: At, frame: bytes) -> None:
    """Take a frame that a switch has sent to the controller: a probe, or one of a host."""
    probe = frames.read(frame)
    if probe is not None:
        if frames.round - probe.number <= _RECENT:
            learning.see_probe((probe.dpid, probe.port), at)
    elif (sender := sender_of(frame)) is not None:
        learning.see_frame(at, sender)


def pause_s(learning: Learning, least_s: float) -> float:
    """Return the time between two probes of each port: longer if there are many ports."""
    ports = sum(len(learning.ports(dpid)) for dpid in learning.dpids)
    at_once = PROBES_PER_S * least_s
    return least_s * max(1.0, ports / at_once) if at_once else 0.0


class Learner:
    """The switches of a fabric that is not known yet; ``name`` is what it will be called.

    ``done`` is called once, with the fabric, when it is complete.
    """

    def __init__(
        self,
        learning: Learning,
        name: str,
        done: Callable[[Fabric], None],
        session: Callable[[Any], Session] = Session,
        interval_s: float = _INTERVAL_S,
    ) -> None:
        self._learning, self._name, self._done = learning, name, done
        self._session, self._interval_s = session, interval_s
        self._frames = Frames(None, per_port=True)
        self._sessions: dict[int, Session] = {}
        self._held: dict[int, frozenset[Rule]] = {}
        """The rules that a switch holds for learning."""
        self._writing: set[int] = set()
        self._missing: str | None = None
        """What was last said to be missing for a fabric, one line; empty if nothing is."""

    def start(self) -> None:
        """Begin to learn."""
        hub.spawn(self._run)

    @property
    def datapaths(self) -> list[Any]:
        """The connections to switches."""
        return [session.datapath for session in self._sessions.values()]

    # --- called by event handlers: they return at once ---------------------------------------

    def connected(self, datapath: Any) -> None:
        """Serve a switch that has reported its ports."""
        hub.spawn(self._serve, self._session(datapath))

    def disconnected(self, datapath: Any) -> None:
        """Forget a connection, and what the switch has shown."""
        if (session := self._session_of(datapath)) is not None:
            session.end()
            del self._sessions[datapath.id]
            self._held.pop(datapath.id, None)
            self._learning.disconnected(datapath.id)

    def ports_changed(self, datapath: Any) -> None:
        """Record the ports of a switch as they are now."""
        if self._session_of(datapath) is not None:
            self._learning.see_ports(datapath.id, ports_of(datapath))

    def deliver(self, message: Any) -> None:
        """Pass a reply to the session that waits for it."""
        if (session := self._session_of(message.datapath)) is not None:
            session.deliver(message)

    def refuse(self, message: Any) -> None:
        """Pass an error message to the session that caused it."""
        if (session := self._session_of(message.datapath)) is not None:
            session.refuse(message)

    def role_answered(self, message: Any) -> None:
        """Ignore a role that nobody has asked for."""

    def packet_in(self, dpid: int, message: bytes) -> None:
        """Take a packet-in: a probe, or a frame of a host."""
        in_port, frame = packet_in_parts(message)
        if in_port is not None and dpid in self._sessions:
            hear(self._learning, self._frames, (dpid, in_port), frame)

    def _session_of(self, datapath: Any) -> Session | None:
        session = self._sessions.get(datapath.id)
        return session if session is not None and session.datapath is datapath else None

    # --- inside ------------------------------------------------------------------------------

    def _serve(self, session: Session) -> None:
        datapath = session.datapath
        older = self._sessions.get(datapath.id)
        if older is not None:
            if older.answers(_ALIVE_S):
                _LOG.warning("two switches have dpid %d: only the first is used", datapath.id)
                datapath.close()
                return
            self.disconnected(older.datapath)
            older.datapath.close()
        if datapath.state == DEAD_DISPATCHER:
            return
        self._sessions[datapath.id] = session
        try:
            held = probe_rules.held_rules(session.rules())
        except SwitchGoneError:
            datapath.close()
            return
        if self._session_of(datapath) is session and self._learning.see_ports(
            datapath.id, ports_of(datapath)
        ):
            self._held[datapath.id] = held

    def _run(self) -> None:
        while True:
            try:
                if self._tick(time.monotonic()):
                    return
            except Exception:  # noqa: BLE001 - learning must go on in any case
                _LOG.exception("learning failed")
            hub.sleep(pause_s(self._learning, self._interval_s))

    def _tick(self, now_s: float) -> bool:
        """Send probes and bring rules into line; return whether the fabric is complete."""
        learning = self._learning
        self._frames.round += 1
        is_written = True
        for dpid in list(self._held):
            ports = learning.ports(dpid)
            hosts = learning.host_ports(dpid)
            wanted = probe_rules.learning_rules(ports, hosts, learning.open_ports(dpid))
            if wanted != self._held[dpid]:
                is_written = False
                if dpid not in self._writing:
                    self._writing.add(dpid)
                    hub.spawn(self._write, dpid, wanted)
            if ports:
                probes = self._frames.packet_out(dpid, sorted(ports), reflected=False)
                self._sessions[dpid].send_probe(probes)
        learning.look(now_s)
        try:
            fabric = learning.fabric(self._name)
        except FabricError as error:
            self._say(str(error))
            return False
        self._say("")
        if self._writing or not is_written or learning.rest_s(now_s):
            return False
        self._done(fabric)
        return True

    def _say(self, missing: str) -> None:
        if missing != self._missing:
            self._missing = missing
            _LOG.info("%s", missing or "every switch and every host can be reached")

    def _write(self, dpid: int, wanted: frozenset[Rule]) -> None:
        session = self._sessions.get(dpid)
        try:
            if session is None:
                return
            with suppress(SwitchGoneError), session.lock:
                changes = probe_rules.changes(self._held.get(dpid, ()), wanted)
                for change, reason in session.change(changes):
                    _LOG.error("dpid %d refused %s: %s", dpid, change, reason)
                if self._sessions.get(dpid) is session:
                    self._held[dpid] = wanted
        finally:
            self._writing.discard(dpid)

    def as_json(self) -> dict[str, object]:
        """Return the answer to ``GET /status`` until the fabric is complete."""
        problems = self._learning.problems()
        try:
            self._learning.fabric(self._name)
        except FabricError as error:
            problems = [f"the fabric is not complete: {error}", *problems]
        return {
            "pid": os.getpid(),
            "fabric": self._name,
            "ready": False,
            "learning": self._learning.as_json(time.monotonic()),
            "problems": problems,
        }
