"""Sends probes from every port to another switch, and acts on the faults of paths.

One green thread sends; counters are read by others, and only of links whose probes are late.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from knotless.base.flow_control import FlowControl
from knotless.base.model_limits import PRIORITIES
from knotless.controller import runtime
from knotless.controller.emulator import EmulatorError, ask, left_port, paused_us
from knotless.controller.observed import (
    ObservedSwitch,
    Port,
    ProbeNumbers,
    ProbesGiven,
    port_text,
)
from knotless.controller.openflow.replies import read_packet_in
from knotless.controller.openflow.session import Connections, Session, SwitchGoneError
from knotless.controller.probes.cables import Wiring
from knotless.controller.probes.deaf import DEAF
from knotless.controller.probes.deaf_search import DeafSearch
from knotless.controller.probes.frames import (
    Frames,
    held_probe_rules,
    probe_rule_changes,
    probe_rules,
)
from knotless.controller.probes.learner import Explorer
from knotless.controller.probes.paths import Path as ProbedPath
from knotless.controller.probes.paths import PathMonitor, Reading
from knotless.controller.reconcile import FoundRule, RuleChange
from knotless.controller.updates.fabric_state import FabricState
from knotless.topologies.fabric import Fabric

_FLIGHT_US = 20_000
"""Time for a frame to be counted by the next switch, besides the delay of the link."""
SETTLING_S = 1.0
"""Time for which the first rules of a switch wait until its cables are known."""
_COUNTERS_S = 0.3
"""A switch that takes longer to report its counters is left out."""
_READ_AT_ONCE = 32
"""Switches whose counters are read at once."""
_LOG = logging.getLogger("knotless.probes")


class FaultsChanged(Protocol):
    """Compares failures after probes have found some."""

    def __call__(self, *, returned: bool) -> None:
        """Compare failures; ``returned``: some links work again."""


class Prober:
    """The probes of one controller.

    Parameters
    ----------
    state : what is known of the fabric.
    tell : reports an event.
    emulator : control socket of the link emulator; None: there is none.
    explorer : finds what the fabric does not declare; None: nothing is searched for.
    connections : the sessions of switches.
    faults_changed : compares failures after probes have found some.
    holds_rules : reads the tables of a switch, has them repaired, and returns whether that was not
        necessary.
    threads : those of the controller.

    """

    def __init__(
        self,
        *,
        state: FabricState,
        tell: Callable[..., None],
        emulator: Path | None,
        explorer: Explorer | None,
        connections: Connections,
        faults_changed: FaultsChanged,
        holds_rules: Callable[[str], bool],
        threads: runtime.Threads,
    ) -> None:
        config, plan = state.desired.config, state.desired.plan
        priority, pauses = priority_of(plan.flow_control, plan.vcs)
        self._state, self._tell, self._emulator = state, tell, emulator
        self._connections, self._faults_changed = connections, faults_changed
        self._threads = threads
        self._sends = config.discovery != "none"
        self._wiring = Wiring(state.observed.fabric)
        self._paths = PathMonitor(
            self._wiring,
            config.probe_interval_ms / 1000,
            pauses,
            flight_us=_flight_us(state.observed.fabric),
        )
        self._deaf_search = DeafSearch(
            state=state,
            paths=self._paths,
            priority=priority or 0,
            pauses=pauses,
            emulator=emulator,
            counters=self._counters,
            connections=connections,
            holds_rules=holds_rules,
            threads=threads,
        )
        self._frames, self._explorer = Frames(priority), explorer
        self._keeps_order = priority is None
        self._woken = runtime.Event()
        self._ports = self._declared_ports()
        self._blocked: frozenset[Port] = frozenset()
        self._dead: frozenset[str] = frozenset()
        self._is_reading = False
        self._will_publish = False

    def start(self) -> None:
        """Begin to send."""
        if self._sends:
            self._threads.spawn(self._run)

    def probes_given(self) -> ProbesGiven:
        """See :class:`~knotless.controller.updates.quiescence.ProbeCounts`."""
        return {} if self._keeps_order else self._paths.probes_given()

    def probes_crossed(self) -> tuple[int, ProbeNumbers]:
        """See :class:`~knotless.controller.updates.quiescence.ProbeCounts`."""
        return (self._frames.round, self._paths.crossed()) if self._keeps_order else (0, {})

    def proves(self, name: str, session: Session) -> bool | None:
        """Return whether probes show that a switch has one of its cables, None if that is open.

        See :meth:`~knotless.controller.probes.paths.PathMonitor.proves`.
        """
        return self._paths.proves(name, session.first_probe) if self._sends else None

    def wake(self) -> None:
        """Look at the ports again."""
        self._woken.set()

    def fit(self, fabric: Fabric, sessions: Mapping[str, Session]) -> None:
        """Go on with the links of another fabric; ``sessions`` are those of the switches before.

        Links that are new are not used until probes have crossed them.
        """
        before = self._ports
        self._wiring.fit(fabric)
        self._paths.fit("unproven" if self._state.leads else "new")
        self._paths.flight_us = _flight_us(fabric)
        self._deaf_search.switches.fit()
        self._ports = self._declared_ports()
        for name, session in sessions.items():
            if before[name] != self._ports[name]:
                self._threads.spawn(self._rewrite_rules, name, session)
        if self._sends and self._state.leads:
            self._paths.observe(self._state.observed, runtime.now_s())
            self._publish()

    def _ends(self, name: str) -> Iterator[Port]:
        """Yield the ports of a switch to other switches."""
        return ((name, port) for port in self._ports[name])

    def _declared_ports(self) -> defaultdict[str, list[int]]:
        """Return the ports of each switch to other switches."""
        ports = defaultdict[str, list[int]](list)
        for name, port in self._wiring.declared:
            ports[name].append(port)
        return ports

    def packet_in(self, dpid: int, message: bytes) -> None:
        """Take a packet-in of a rule of probes from a switch; the guard has checked its lengths."""
        switches = self._state.observed.switches
        if not self._sends:
            return
        in_port, frame = read_packet_in(message)
        probe, receiver = self._frames.read(frame), switches.get(dpid)
        if probe is None and self._explorer is not None and self._state.leads:
            self._explorer.packet_in(dpid, in_port, frame)
        if probe is None or receiver is None or in_port is None or probe.dpid not in switches:
            return
        sender, arrival = (switches[probe.dpid].name, probe.port), (receiver.name, in_port)
        now_s = runtime.now_s()
        self._paths.arrived(sender, arrival, probe.number, reflected=probe.reflected, now_s=now_s)
        if self._paths.changed and not self._will_publish:
            # Together with what the next probes change: a thousand may come at once.
            self._will_publish = True
            self._threads.spawn_after(self._paths.tick_s / 4, self._publish)

    # --- rules -------------------------------------------------------------------------------

    def prepare(self, session: Session, switch: ObservedSwitch, rules: list[FoundRule]) -> None:
        """Give a switch that holds the rules ``rules`` those of probes.

        Returns when its cables are known, and wrong ones are blocked; its lock is held. Raises
        SwitchGoneError.
        """
        session.probe_rules = held_probe_rules(rules)
        self._write_rules(session, switch.name)
        if not self._sends:
            return
        self.wake()
        until_s = runtime.now_s() + SETTLING_S
        runtime.sleep(2 * self._paths.tick_s)

        def is_settled() -> bool:
            ends = self._ends(switch.name)
            is_shown = not switch.is_known or self.proves(switch.name, session) is not False
            return is_shown and self._paths.settled(ends)

        while runtime.now_s() < until_s and not is_settled():
            runtime.sleep(self._paths.tick_s)
        if self._paths.changed:
            self._publish()
        self._write_rules(session, switch.name)

    def restore(self, session: Session, switch: ObservedSwitch, rules: list[FoundRule]) -> None:
        """Give a switch that holds the rules ``rules`` what it lacks of those of probes.

        Its lock is held. Raises SwitchGoneError.
        """
        if session.probe_rules is not None:
            held = held_probe_rules(rules)
            switch.probe_rules_lost = len(session.probe_rules - held)
            if switch.probe_rules_lost:
                _LOG.warning("%s", switch.probes_lost_text)
            session.probe_rules = held
            self._write_rules(session, switch.name)

    def _write_rules(self, session: Session, name: str) -> None:
        blocked = [port for switch, port in self._blocked if switch == name]
        ports = self._ports[name] if self._sends else []
        wanted = frozenset(probe_rules(ports, blocked))
        if self._explorer is not None:
            wanted |= self._explorer.rules(name)
        held = session.probe_rules or frozenset()
        refused = session.change(probe_rule_changes(held, wanted)) if held != wanted else []
        reasons = tuple(f"to {change or 'answer'}: {reason}" for change, reason in refused)
        without = {change.rule for change, _ in refused if isinstance(change, RuleChange)}
        # What was refused is what it was: it is tried again when the switch is read again.
        session.probe_rules = frozenset({*(wanted - without), *(held & without)})
        switch = self._state.observed.by_name.get(name)
        if switch is not None:
            if reasons and reasons != switch.refused_probes:
                _LOG.error("%s refused %d rules of probes", switch, len(reasons))
            switch.refused_probes = reasons

    def _rewrite_rules(self, name: str, session: Session | None) -> None:
        if session is None or session.probe_rules is None or not self._state.leads:
            return  # it will be prepared when it is served
        with suppress(SwitchGoneError), session.lock:
            self._write_rules(session, name)

    def _renew_rules(self, name: str) -> None:
        self._threads.spawn(self._rewrite_rules, name, self._connections.session_of(name))

    # --- probes ------------------------------------------------------------------------------

    def _run(self) -> None:
        ticked_s = 0.0
        while True:
            self._woken.wait(timeout=self._paths.tick_s)
            # Hundreds of switches may come at once: one look at all paths is for many of them.
            runtime.sleep(max(0.0, ticked_s + self._paths.tick_s / 4 - runtime.now_s()))
            self._woken.clear()
            ticked_s = runtime.now_s()
            try:
                self._tick(ticked_s)
            except Exception:  # noqa: BLE001 - probes must go on in any case
                _LOG.exception("probing failed")

    def _tick(self, now_s: float) -> None:
        if not self._state.leads:
            self._deaf_search.switches.stand_by()
            self._publish_deaf()
            return  # the active controller sends probes
        self._paths.observe(self._state.observed, now_s)
        self._frames.round += 1
        due: dict[tuple[str, bool], list[int]] = defaultdict(list)
        for path in self._paths.due(now_s, self._frames.round):
            name, port = path.sender
            due[name, path.mode == "reflected"].append(port)
        for (name, reflected), ports in due.items():
            session = self._connections.session_of(name)
            if session is not None:
                dpid = self._state.observed.by_name[name].dpid
                session.first_probe = session.first_probe or self._frames.round
                session.send_probe(self._frames.packet_out(dpid, ports, reflected=reflected))
        if self._explorer is not None:
            self._explorer.tick(now_s, self._connections, self._renew_rules)
        if not self._is_reading and (suspects := self._paths.suspects(now_s)):
            self._is_reading = True
            self._threads.spawn(self._read, suspects)
        self._deaf_search.tick(now_s)
        self._publish()

    # --- counters ----------------------------------------------------------------------------

    def _read(self, suspects: list[ProbedPath]) -> None:
        """Read the counters of suspected paths; those that are received first."""
        try:
            chosen: dict[str, None] = {}
            for path in suspects:
                if len(chosen) < _READ_AT_ONCE:
                    chosen[_counting_port(path)[0]] = None
            paths = [path for path in suspects if _counting_port(path)[0] in chosen]
            received = self._counters(chosen)
            sent = self._sent(paths)
            readings = {
                path.sender: Reading(received[_counting_port(path)][0], *sent[path.sender])
                for path in paths
                if _counting_port(path) in received and path.sender in sent
            }
            self._paths.read(paths, readings, runtime.now_s())
            self._publish()
        finally:
            self._is_reading = False

    def _sent(self, paths: list[ProbedPath]) -> Mapping[Port, tuple[int, int, int | None]]:
        """Return how many frames have left the sending port of each path.

        Open vSwitch counts frames before they wait in the emulator, so there the emulator is asked.
        With each number come the time, in us, and how long the channel back has been paused, in us,
        if that is known.
        """
        if self._emulator is None:
            counters = self._counters({path.sender[0] for path in paths})
            time_us = int(runtime.now_s() * 1e6)
            return {port: (sent, time_us, None) for port, (_, sent) in counters.items()}
        try:
            answer = ask(self._emulator, "counters")
            channels = {channel["channel"]: channel for channel in answer["channels"]}
            return {
                path.sender: (
                    left_port(channels[port_text(path.sender)]),
                    int(answer["now_us"]),
                    paused_us(channels[port_text(path.receiver)]),
                )
                for path in paths
            }
        except (EmulatorError, KeyError, TypeError):
            return {}

    def _counters(
        self, names: Iterable[str], *, in_order: bool = False
    ) -> Mapping[Port, tuple[int, int]]:
        """Return frames received and sent by the ports of switches that answer in time.

        ``in_order``: when they have dealt with all that they were sent before.
        """
        counters: dict[Port, tuple[int, int]] = {}
        # Neither of both searches leaves out the switches that the other one reads now.
        purpose = "deaf" if in_order else "silent"

        def read(name: str, session: Session) -> None:
            try:
                if in_order:
                    session.barrier(_COUNTERS_S)
                for port, counts in session.port_counters().items():
                    counters[name, port] = counts
            except SwitchGoneError:
                pass
            finally:
                session.awaited.discard(purpose)

        threads = []
        for name in sorted(set(names)):
            session = self._connections.session_of(name)
            if session is not None and purpose not in session.awaited:
                session.awaited.add(purpose)
                threads.append(self._threads.spawn(read, name, session))
        with suppress(runtime.TimeLimitError), runtime.time_limit(_COUNTERS_S):
            runtime.join(threads)
        return dict(counters)

    # --- faults ----------------------------------------------------------------------

    def _publish(self) -> None:
        """Report what has changed."""
        self._paths.changed = self._will_publish = False
        observed, before = self._state.observed, self._state.observed.link_faults
        faults = self._paths.faults()
        observed.reflecting = self._paths.reflecting()
        wrong = self._wiring.wrong_ports
        if wrong != self._blocked:
            changed = {name for name, _ in wrong ^ self._blocked}
            self._blocked = wrong
            for name in sorted(changed):
                self._renew_rules(name)
        lines = tuple(self._paths.lines())
        if (faults, lines) != (before, observed.fault_lines):
            for line in sorted(set(lines) - set(observed.fault_lines)):
                _LOG.warning("%s", line)
            observed.link_faults, observed.fault_lines = faults, lines
            for name in sorted(faults.keys() | before.keys()):
                if faults.get(name) != before.get(name):
                    self._tell("fault", link=name, fault=faults.get(name))
            self._faults_changed(returned=bool(before.keys() - faults.keys()))
        dead = frozenset(observed.switches_down())
        for name in sorted(dead ^ self._dead):
            fault = "dead switch" if name in dead else None
            self._tell("fault", switch=name, fault=fault)
        self._dead = dead
        self._publish_deaf()

    def _publish_deaf(self) -> None:
        """Report which switches are deaf, or are no longer."""
        observed, before = self._state.observed, self._state.observed.deaf
        observed.too_many_deaf = self._deaf_search.too_many()
        observed.deaf = deaf = self._deaf_search.switches.declared
        for name in sorted(deaf ^ before):
            _LOG.warning("%s is %s", name, "deaf" if name in deaf else "deaf no longer")
            self._tell("fault", switch=name, fault=DEAF if name in deaf else None)
        if deaf != before:
            self._faults_changed(returned=bool(before - deaf))


def priority_of(flow_control: FlowControl, vcs: int) -> tuple[int | None, bool]:
    """Return the priority of probes (None: no tag), and whether links may pause it.

    Under PFC it is one that no virtual channel uses, not even while routes change, when they may
    use twice as many.
    """
    links = flow_control.switch_links
    if links.by_priority:
        return PRIORITIES - 1, links.classes[-1] in links.classes[: 2 * vcs]
    return None, links.pauses


def _flight_us(fabric: Fabric) -> float:
    """Return a time that is longer than any frame needs from port to port."""
    return _FLIGHT_US + max((link.delay_us for link in fabric.links), default=0)


def _counting_port(path: ProbedPath) -> Port:
    """Return the port that counts what arrives by a path."""
    return path.sender if path.mode == "reflected" else path.receiver
