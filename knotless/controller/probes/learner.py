"""Learns the parts of a fabric: all of them while none is known, later what it does not declare.

It takes the place of :class:`knotless.controller.switches.Switches` until the fabric is
complete. Nothing is forwarded in the meantime.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from knotless.base.errors import FabricError, KnotlessError
from knotless.controller import runtime
from knotless.controller.openflow.connection import Connection
from knotless.controller.openflow.records import RoleReply
from knotless.controller.openflow.replies import read_packet_in
from knotless.controller.openflow.session import (
    Connections,
    Session,
    SwitchEvents,
    SwitchGoneError,
)
from knotless.controller.probes.cables import PortId
from knotless.controller.probes.discovery import Discovery
from knotless.controller.probes.frames import (
    Frames,
    held_probe_rules,
    learning_rules,
    probe_rule_changes,
    sender_of,
    without_ports,
)
from knotless.controller.probes.paths import PROBES_PER_S
from knotless.controller.updates.fabric_state import FabricState
from knotless.forwarding.openflow.rules import Rule
from knotless.topologies.fabric import Fabric

_INTERVAL_S = 0.25
_EXPLORE_INTERVAL_S = 1.0
_RETRY_S = 30.0
"""After a refused reload."""
_RECENT = 16
"""Rounds for which a probe counts: nobody can keep it, and send it from elsewhere later."""
_LOG = logging.getLogger("knotless.learning")


def take_frame(discovery: Discovery, frames: Frames, port: PortId, frame: bytes) -> None:
    """Take a frame that a switch has sent to the controller: a probe, or one of a host."""
    probe = frames.read(frame)
    if probe is not None:
        if frames.round - probe.number <= _RECENT:
            discovery.see_probe((probe.dpid, probe.port), port)
    elif (sender := sender_of(frame)) is not None:
        discovery.see_frame(port, sender)


def pause_s(discovery: Discovery, least_s: float) -> float:
    """Return the time between two probes of each port: longer if there are many ports."""
    ports = sum(len(discovery.ports(dpid)) for dpid in discovery.dpids)
    at_once = PROBES_PER_S * least_s
    return least_s * max(1.0, ports / at_once) if at_once else 0.0


class Learner(SwitchEvents):
    """The switches of a fabric that is not known yet; ``name`` is what it will be called.

    ``done`` is called once, with the fabric, when it is complete.
    """

    def __init__(
        self,
        discovery: Discovery,
        name: str,
        done: Callable[[Fabric], None],
        make_session: Callable[[Connection], Session] = Session,
        interval_s: float = _INTERVAL_S,
    ) -> None:
        super().__init__(make_session, runtime.Threads())
        self._discovery, self._name, self._done = discovery, name, done
        self._interval_s = interval_s
        self._frames = Frames(None, per_port=True)
        self._writing: set[int] = set()
        self._missing: str | None = None
        """The last report of what is missing for a fabric, one line; empty if nothing is."""

    def start(self) -> None:
        """Begin to learn."""
        self._threads.spawn(self._run)

    @property
    def connections(self) -> list[Connection]:
        """The connections to switches."""
        return [session.connection for session in self.sessions.values()]

    # --- see SwitchEvents --------------------------------------------------------------------

    def disconnected(self, connection: Connection) -> None:
        """Forget a connection, and what the switch has shown."""
        if (session := self.current(connection)) is not None:
            session.end()
            del self.sessions[connection.dpid]
            self._discovery.disconnected(connection.dpid)

    def ports_changed(self, connection: Connection) -> None:
        """Record the ports of a switch as they are now."""
        if self.current(connection) is not None:
            self._discovery.see_ports(connection.dpid, dict(connection.ports))

    def rules_removed(self, connection: Connection) -> None:
        """Ignore a rule that was removed: nothing is installed yet."""

    def role_answered(self, connection: Connection, role: RoleReply) -> None:
        """Ignore a role that nobody has asked for."""

    def packet_in(self, dpid: int, message: bytes) -> None:
        """Take a packet-in: a probe, or a frame of a host."""
        in_port, frame = read_packet_in(message)
        if in_port is not None and dpid in self.sessions:
            take_frame(self._discovery, self._frames, (dpid, in_port), frame)

    # --- inside ------------------------------------------------------------------------------

    def _serve(self, session: Session) -> None:
        connection = session.connection
        try:
            held = held_probe_rules(session.rules())
        except SwitchGoneError:
            connection.close()
            return
        if self.current(connection) is session and self._discovery.see_ports(
            connection.dpid, dict(connection.ports)
        ):
            session.probe_rules = held

    def _supersedes(self, _new: Session, older: Session) -> bool:
        """Keep the first of two switches with a dpid: nothing tells which one is right."""
        _LOG.warning("two switches have dpid %d: only the first is used", older.connection.dpid)
        return False

    def _run(self) -> None:
        while True:
            try:
                if self._tick(runtime.now_s()):
                    return
            except Exception:  # noqa: BLE001 - learning must go on in any case
                _LOG.exception("learning failed")
            runtime.sleep(pause_s(self._discovery, self._interval_s))

    def _tick(self, now_s: float) -> bool:
        """Send probes and bring rules into line; return whether the fabric is complete."""
        discovery = self._discovery
        self._frames.round += 1
        is_written = True
        for dpid, session in list(self.sessions.items()):
            if session.probe_rules is None:
                continue
            ports = discovery.ports(dpid)
            hosts = discovery.host_ports(dpid)
            wanted = learning_rules(ports, hosts, discovery.open_ports(dpid))
            if wanted != session.probe_rules:
                is_written = False
                if dpid not in self._writing:
                    self._writing.add(dpid)
                    self._threads.spawn(self._write, dpid, session, wanted)
            if ports:
                probes = self._frames.packet_out(dpid, sorted(ports), reflected=False)
                session.send_probe(probes)
        discovery.look(now_s)
        try:
            fabric = discovery.fabric(self._name)
        except FabricError as error:
            self._say(str(error))
            return False
        self._say("")
        if self._writing or not is_written or discovery.rest_s(now_s):
            return False
        self._done(fabric)
        return True

    def _say(self, missing: str) -> None:
        if missing != self._missing:
            self._missing = missing
            _LOG.info("%s", missing or "every switch and every host can be reached")

    def _write(self, dpid: int, session: Session, wanted: frozenset[Rule]) -> None:
        try:
            with suppress(SwitchGoneError), session.lock:
                changes = probe_rule_changes(session.probe_rules or (), wanted)
                for change, reason in session.change(changes):
                    _LOG.error("dpid %d refused %s: %s", dpid, change, reason)
                session.probe_rules = wanted
        finally:
            self._writing.discard(dpid)

    def as_json(self) -> dict[str, object]:
        """Return the answer to ``GET /status`` until the fabric is complete."""
        problems = self._discovery.problems()
        try:
            self._discovery.fabric(self._name)
        except FabricError as error:
            problems = [f"the fabric is not complete: {error}", *problems]
        return {
            "pid": os.getpid(),
            "fabric": self._name,
            "ready": False,
            "learning": self._discovery.as_json(runtime.now_s()),
            "problems": problems,
        }


# --- beside a fabric that is in use -----------------------------------------------------------


class Explorer:
    """Finds what is connected to ports that the fabric does not declare, and to new switches.

    New hosts, links and switches become parts of the fabric by a reload with a file that has them.

    Parameters
    ----------
    state : what is known of the fabric.
    discovery : what was found besides.
    threads : those of the controller.

    """

    def __init__(
        self,
        *,
        state: FabricState,
        discovery: Discovery,
        threads: runtime.Threads,
    ) -> None:
        self._state, self._discovery, self._threads = state, discovery, threads
        self._frames = Frames(None, per_port=True)
        self._given: dict[str, frozenset[Rule]] = {}
        """The same for switches of the fabric, as they were last wanted."""
        self._busy: set[int] = set()
        self._grown: Fabric | None = None
        """The larger fabric that is to be used, or is being."""
        self._woken = runtime.Event()
        self._next_s = 0.0
        self._error: str | None = None

    def rules(self, name: str) -> frozenset[Rule]:
        """Return the rules of a switch of the fabric for ports of which nothing is declared."""
        switch = self._state.observed.by_name.get(name)
        given = self._given.get(name, frozenset())
        return given if switch is None else without_ports(given, switch.needs)

    def problems(self) -> list[str]:
        """Return what is not used, one line each."""
        return [*([self._error] if self._error else []), *self._discovery.problems()]

    def packet_in(self, dpid: int, in_port: int | None, frame: bytes) -> None:
        """Take a frame that a switch has sent to the controller."""
        if in_port is not None:
            take_frame(self._discovery, self._frames, (dpid, in_port), frame)

    def tick(self, now_s: float, connections: Connections, rewrite: Callable[[str], None]) -> None:
        """Send probes, and note what they have found; ``rewrite`` renews rules of a switch."""
        if now_s < self._next_s:
            return
        self._next_s = now_s + pause_s(self._discovery, _EXPLORE_INTERVAL_S)
        self._frames.round += 1
        discovery, observed = self._discovery, self._state.observed
        undeclared = connections.undeclared()
        self._see_ports(undeclared)
        is_written = not self._busy
        for dpid in discovery.dpids:
            ports = discovery.ports(dpid)
            switch = observed.switches.get(dpid)
            hosts = discovery.host_ports(dpid)
            rules = learning_rules(ports, hosts, discovery.open_ports(dpid))
            session = (
                undeclared.get(dpid) if switch is None else connections.session_of(switch.name)
            )
            if session is None:
                continue
            if switch is None:
                if rules != session.probe_rules and dpid not in self._busy:
                    is_written = False
                    self._busy.add(dpid)
                    self._threads.spawn(self._write, dpid, session, rules)
            elif rules != self._given.get(switch.name):
                is_written = False
                self._given[switch.name] = rules
                rewrite(switch.name)
            if ports:
                session.send_probe(self._frames.packet_out(dpid, sorted(ports), reflected=False))
        discovery.look(now_s)
        if is_written and not discovery.rest_s(now_s):
            self._try_to_grow()

    def _see_ports(self, undeclared: Mapping[int, Session]) -> None:
        """Take the ports of all connected switches that the fabric does not declare."""
        observed, discovery = self._state.observed, self._discovery
        if discovery.base is not observed.fabric:
            discovery.use(observed.fabric)
        ports_by_dpid = {dpid: dict(each.connection.ports) for dpid, each in undeclared.items()}
        for switch in observed.switches.values():
            if switch.connected and switch.ports is not None:
                others = switch.ports.keys() - switch.needs.keys()
                ports_by_dpid[switch.dpid] = {port: switch.ports[port] for port in others}
        for dpid in discovery.dpids - ports_by_dpid.keys():
            discovery.disconnected(dpid)
        for dpid, ports in ports_by_dpid.items():
            discovery.see_ports(dpid, ports)

    def _write(self, dpid: int, session: Session, wanted: frozenset[Rule]) -> None:
        """Bring a switch into line that is not in the fabric."""
        try:
            with session.lock:
                held = session.probe_rules
                if held is None:
                    held = held_probe_rules(session.rules())
                if dpid in self._state.observed.switches:
                    return  # it is in the fabric now
                session.change(probe_rule_changes(held, wanted))
                session.probe_rules = wanted
        except SwitchGoneError:
            pass
        finally:
            self._busy.discard(dpid)

    def _try_to_grow(self) -> None:
        """Have what was found be used, if nothing else goes on."""
        state = self._state
        if self._grown is not None or state.update.idle_task is None:
            return
        base = state.desired.fabric
        try:
            grown = self._discovery.grown(base)
        except FabricError as error:
            self._error = f"what was found cannot be used: {error}"
            return
        self._error = None
        if grown is not base:
            self._grown = grown
            self._woken.set()

    def findings(self) -> Iterator[Fabric]:
        """Yield a larger fabric each time that one can be used; wait until then.

        There is no next one before the caller has used it, or has called :meth:`refuse`.
        """
        while True:
            self._woken.wait()
            self._woken.clear()
            if self._grown is not None:
                yield self._grown
            self._grown = None

    def refuse(self, error: KnotlessError) -> None:
        """Report why the last of :meth:`findings` is not used; look again after some time."""
        _LOG.error("what was found is not used: %s", error)
        self._next_s = runtime.now_s() + _RETRY_S
