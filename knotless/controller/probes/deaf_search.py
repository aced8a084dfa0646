"""Searches for deaf switches: reads counters, sends echoes, and has tables read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol

from knotless.controller import runtime
from knotless.controller.emulator import EmulatorError, ask, waiting_at_port
from knotless.controller.observed import Counters, Port, port_text
from knotless.controller.openflow.session import Connections, Session, SwitchGoneError
from knotless.controller.probes.deaf import DeafSwitches, Look
from knotless.controller.probes.frames import may_take_probes
from knotless.controller.probes.paths import Path as ProbedPath
from knotless.controller.probes.paths import PathMonitor
from knotless.controller.updates.fabric_state import FabricState

_LOOK_S = 0.25
"""So often counters are read of switches that may be deaf."""
_ECHO_S = 2.0
QUEUE_FRAMES = 64
"""So many frames are taken to wait in front of a probe at a port that links may pause, where no
emulator says how many do."""


class ReadCounters(Protocol):
    """Reads the counters of switches."""

    def __call__(self, names: Iterable[str], *, in_order: bool = False) -> Counters:
        """Return the counters of those that answer; ``in_order``: after all that came before."""


class DeafSearch:
    """The search of one controller.

    Parameters
    ----------
    state : what is known of the fabric.
    paths : the probes.
    priority, pauses : of probes, and whether links may pause it.
    emulator : control socket of the link emulator; None: there is none.
    counters : reads counters.
    connections : the sessions of switches.
    holds_rules : reads the tables of a switch and repairs them; returns whether that was not
        necessary.
    threads : those of the controller.

    """

    def __init__(
        self,
        *,
        state: FabricState,
        paths: PathMonitor,
        priority: int,
        pauses: bool,
        emulator: Path | None,
        counters: ReadCounters,
        connections: Connections,
        holds_rules: Callable[[str], bool],
        threads: runtime.Threads,
    ) -> None:
        self._state, self._paths, self._priority = state, paths, priority
        self._emulator, self._counters = emulator, counters
        self._connections, self._holds_rules = connections, holds_rules
        self._threads = threads
        self._waiting = QUEUE_FRAMES if pauses else 0
        self.switches = DeafSwitches(paths)
        self._is_looking = False
        self._looked_s = 0.0
        self._being_read = set[str]()

    def tick(self, now_s: float) -> None:
        """Look at the switches that may be deaf, at times."""
        names = self.switches.observe(now_s)
        if names and not self._is_looking and now_s - self._looked_s >= _LOOK_S:
            self._is_looking, self._looked_s = True, now_s
            self._threads.spawn(self._look, names)

    def too_many(self) -> frozenset[str]:
        """Return the switches that are deaf or would be, if they are too many."""
        if not self.switches.are_too_many(len(self._state.observed.switches)):
            return frozenset()
        return self.switches.declared | self.switches.suspected

    def _look(self, names: list[str]) -> None:
        try:
            paths = [path for name in names for path in self.switches.incoming(name)]
            self.switches.see(self._looks(paths))
            for name in filter(self.switches.is_evident, names):
                self._ask(name)
            if not self._state.leads:
                return
            for name in self.switches.unread():
                if name not in self._being_read:
                    self._being_read.add(name)
                    self._threads.spawn(self._read, name)
            self._declare()
        finally:
            self._is_looking = False

    def _looks(self, paths: list[ProbedPath]) -> dict[Port, Look]:
        before = {path.sender: (path.given, path.crossed) for path in paths}
        sessions = {path.sender: self._sessions(path) for path in paths}
        at_s = runtime.now_s()
        received = self._counters({path.receiver[0] for path in paths}, in_order=True)
        # Its answer shows that a switch has dealt with all probes that it was given before.
        senders = self._counters({path.sender[0] for path in paths}, in_order=True)
        left = self._left(senders)
        looks = {}
        for path in paths:
            port, ends = path.sender, sessions[path.sender]
            if ends is None or port not in left or path.receiver not in received:
                continue
            given, crossed = before[port]
            sent, waiting, time_us = left[port]
            looks[port] = Look(
                at_s=at_s,
                given=given,
                crossed=crossed,
                received=received[path.receiver][0],
                sent=sent,
                waiting=waiting,
                time_us=time_us,
                dropped=ends[1].dropped,
                connections=ends,
            )
        return looks

    def _sessions(self, path: ProbedPath) -> tuple[Session, Session] | None:
        sender, receiver = map(self._connections.session_of, (path.sender[0], path.receiver[0]))
        return None if sender is None or receiver is None else (sender, receiver)

    def _left(self, counters: Counters) -> Mapping[Port, tuple[int, int, int]]:
        """Return for each port what has left, what may wait there, and when that was so, in us."""
        if self._emulator is None:
            time_us = int(runtime.now_s() * 1e6)
            return {port: (sent, self._waiting, time_us) for port, (_, sent) in counters.items()}
        try:
            answer = ask(self._emulator, "counters")
            channels = {channel["channel"]: channel for channel in answer["channels"]}
            return {
                port: (
                    *waiting_at_port(channels[port_text(port)], self._priority),
                    int(answer["now_us"]),
                )
                for port in counters
                if port_text(port) in channels
            }
        except (EmulatorError, KeyError, TypeError, IndexError):
            return {}

    def _ask(self, name: str) -> None:
        """Ask a switch whether it answers."""
        session = self._connections.session_of(name)
        try:
            if session is not None:
                session.echo(_ECHO_S)
                self.switches.answered(name, session.dropped)
        except SwitchGoneError:
            self.switches.forget(name)

    def _read(self, name: str) -> None:
        """Have the tables of a switch read."""
        try:
            held = self._holds_rules(name)
            switch = self._state.observed.by_name.get(name)
            session = self._connections.session_of(name)
            is_told = switch is None or session is None or session.probe_rules is None
            is_taken = switch is not None and (
                bool(switch.foreign_unread) or may_take_probes(switch.foreign)
            )
            self.switches.rules_read(name, held=held and not is_told and not is_taken)
        finally:
            self._being_read.discard(name)

    def _declare(self) -> None:
        observed = self._state.observed
        if not self.switches.ready(len(observed.switches), runtime.now_s()):
            return
        is_deadlocked = self._is_deadlocked()
        if is_deadlocked:
            self.switches.forget_all()
        if is_deadlocked is not False:
            return
        now_s = runtime.now_s()
        for name in self.switches.ready(len(observed.switches), now_s):
            self.switches.declare(name, now_s)

    def _is_deadlocked(self) -> bool | None:
        """Return whether channels wait for each other; None: nobody can tell now."""
        if self._emulator is None:
            return False
        try:
            return ask(self._emulator, "deadlock")["deadlock"] is not None
        except (EmulatorError, KeyError):
            return None
