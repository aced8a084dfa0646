"""Reads switches again, in turn, and has put back what others have deleted or changed.

OpenFlow does not report changes that another controller, or a person with ``ovs-ofctl``, makes. So
each switch is read again within ``reread_interval_s``. What differs from the rules that it has
confirmed is put back in steps that are proven, as after a takeover. Rules of others stay; they are
reported, with the verdict on all rules together, until they are gone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from knotless.base.errors import KnotlessError
from knotless.base.printable import listed
from knotless.controller import runtime
from knotless.controller.foreign_changes import ForeignRules, Mixture
from knotless.controller.observed import ObservedSwitch
from knotless.controller.openflow.session import (
    Connections,
    Session,
    SwitchContents,
    SwitchGoneError,
)
from knotless.controller.reconcile import FoundRule, own_rules, reconcile
from knotless.controller.updates.fabric_state import FabricState
from knotless.controller.updates.scheduler import Reporter
from knotless.forwarding.openflow.rules import SwitchRules

RULES_PER_S = 5000
"""Rules that are read again in a second, at most: about 2 % of a processor core."""
_HINT_S = 1.0
"""A switch that reports removed rules is read again at most so often."""
_IDLE_S = 1.0
"""So often a controller without switches, or on standby, looks whether that is still so."""
_LOOK_AGAIN_S = 0.01
_READ_ALL_S = 5.0
"""Time for all switches to be read before an operator's change."""
_SHOWN = 3
_LOG = logging.getLogger("knotless.switches")


class RuleWatch:
    """Reads the switches of one controller again, while it changes rules.

    Parameters
    ----------
    state : what is known of the fabric.
    connections : the sessions of switches.
    reporter : told what happens.
    execute : calls a function that can take long, while green threads go on.
    watch_of : returns a function: whether a switch is still to be served on its connection.
    repair : gives a switch, whose lock is held, the rules that are wanted, in one bundle.
    restore_probes : gives it what it has lost of the rules of probes.
    start_over : reads all switches, and goes on from what they hold in proven steps.
    threads : those of the controller.

    """

    def __init__(
        self,
        *,
        state: FabricState,
        connections: Connections,
        reporter: Reporter,
        execute: Callable[..., Any],
        watch_of: Callable[[Session, ObservedSwitch], Callable[[], bool]],
        repair: Callable[[Session, ObservedSwitch, SwitchContents], None],
        restore_probes: Callable[[Session, ObservedSwitch, list[FoundRule]], None],
        start_over: Callable[[ObservedSwitch], None],
        threads: runtime.Threads,
    ) -> None:
        self._state, self._update = state, state.update
        self._connections, self._reporter, self._execute = connections, reporter, execute
        self._watch_of, self._repair, self._start_over = watch_of, repair, start_over
        self._restore_probes, self._threads = restore_probes, threads
        self._counted_step = 0
        """The step in which the frames were counted that were not admitted."""
        self._judged: tuple[int, Mapping[str, tuple[FoundRule, ...]]] | None = None
        """The step, and the rules of others, of the last verdict."""
        self._is_judging = False

    def start(self) -> None:
        """Begin to read."""
        self._threads.spawn(self._run)

    def hint(self, session: Session) -> None:
        """Read a switch soon, unless that has just been done: others may be changing its rules."""
        switch = self._state.observed.switches.get(session.connection.dpid)
        if switch is not None and self._state.leads and switch.age_s(runtime.now_s()) > _HINT_S:
            self._threads.spawn(self._read, session, switch)

    def holds_rules(self, name: str) -> bool:
        """Read a switch now, and have it repaired; return whether it held all that it should."""
        switch, session = self._state.observed.by_name.get(name), self._connections.session_of(name)
        if switch is None or session is None:
            return False
        while session.is_being_read:
            runtime.sleep(_LOOK_AGAIN_S)
        return self._read(session, switch)

    def read_all(self, max_age_s: float = 0.0) -> None:
        """Read the connected switches that were read longer ago, and have them repaired.

        Raises KnotlessError if one does not answer, or does not hold its rules then.
        """
        if not self._state.leads:
            return
        began_s, by_name = runtime.now_s(), self._state.observed.by_name
        due = [
            (session, by_name[name])
            for name, session in self._connections.by_name().items()
            if by_name[name].age_s(began_s) > max_age_s
        ]
        with suppress(runtime.TimeLimitError), runtime.time_limit(_READ_ALL_S):
            runtime.join([self._threads.spawn(self._read_now, *each, began_s) for each in due])
        wrong = [switch.name for switch in by_name.values() if switch.is_wrong]
        if wrong:
            raise KnotlessError(
                f"{listed(wrong, _SHOWN)}: rules are missing that could not be put back; see"
                " problems in GET /status, and try again when they are solved"
            )
        late = [each.name for _, each in due if each.connected and each.age_s(began_s) > max_age_s]
        if late:
            raise KnotlessError(
                f"{listed(late, _SHOWN)}: no answer within {_READ_ALL_S:g} s about the rules that"
                " are held; try again when the switch answers"
            )

    def _run(self) -> None:
        while True:
            interval_s = self._state.desired.config.reread_interval_s
            names = list(self._connections.by_name()) if self._state.leads else []
            for name in names:
                switch = self._state.observed.by_name.get(name)
                session = self._connections.session_of(name)
                if session is not None and switch is not None:
                    # In a thread of its own: one that is slow holds up no other.
                    self._threads.spawn(self._read, session, switch)
                rules = len(self._update.progress.wanted(name).rules)
                runtime.sleep(max(interval_s / len(names), rules / RULES_PER_S))
                self._begin_to_judge()
            if not names:
                runtime.sleep(min(interval_s, _IDLE_S))

    def _read_now(self, session: Session, switch: ObservedSwitch, began_s: float) -> None:
        """Read a switch, after a reading that goes on: that may have begun earlier."""
        while session.is_being_read:
            runtime.sleep(_LOOK_AGAIN_S)
        if switch.age_s(began_s) > 0:
            self._read(session, switch)

    def _read(self, session: Session, switch: ObservedSwitch) -> bool:
        """Read a switch, and have it repaired; return whether it held all that it should."""
        if session.is_being_read:
            return False
        session.is_being_read = True
        try:
            with session.lock:
                return self._compare(session, switch)
        except SwitchGoneError as gone:
            _LOG.warning("%s: %s", switch, gone)
            session.connection.close()
            return False
        finally:
            session.is_being_read = False

    def _compare(self, session: Session, switch: ObservedSwitch) -> bool:
        is_current = self._watch_of(session, switch)
        if not is_current():
            return False
        began_s = runtime.now_s()
        counters = self._connections.counters_of(session, switch)
        received = {port: frames for port, (frames, _) in counters.items()}
        contents = session.read()
        if not is_current():
            return False
        self._count_frames(switch.name, received, contents)
        if session.held is None:  # it has refused changes
            self._repair(session, switch, contents)
            return False
        changes = reconcile(session.held, contents.rules, contents.groups, unread=contents.unread)
        if (changes.foreign, contents.unread) != (switch.foreign, switch.foreign_unread):
            switch.foreign, switch.foreign_unread = changes.foreign, contents.unread
            self._begin_to_judge()
        if not changes.steps:
            switch.read_s = began_s
            self._restore_probes(session, switch, contents.rules)
            return not (switch.probe_rules_lost or switch.refused_probes)
        switch.changed_by_others, switch.installed = sum(map(len, changes.steps)), False
        _LOG.warning("%s", switch.changed_text)
        count = switch.changed_by_others
        self._reporter.tell("changed-by-others", switch=switch.name, rules=count)
        held = own_rules(contents.rules, contents.groups)
        may_repair = self._may_repair(switch.name, held)
        if is_current() and may_repair:
            self._repair(session, switch, contents)
        elif is_current():
            self._start_over(switch)
        return False

    def _may_repair(self, name: str, held: SwitchRules) -> bool:
        """Return whether a switch that holds other rules can get the wanted ones in one bundle."""
        if not held.rules:
            return True  # it has dropped all that came
        while True:
            number = self._update.progress.number
            is_acyclic: bool = self._execute(
                Mixture.is_acyclic, self._update.in_fabric.mixture(name, held)
            )
            if number == self._update.progress.number:
                break
        if is_acyclic:
            self._update.progress.changed_by_others(name, held)
        return is_acyclic

    def _count_frames(
        self, name: str, received: Mapping[int, int], contents: SwitchContents
    ) -> None:
        """Take the counters of a switch.

        A change of routes may stop frames of hosts, and its rules count from zero.
        """
        update, unadmitted = self._update, self._state.unadmitted
        is_settled = update.is_there and not update.progress.in_flight
        if update.progress.number != self._counted_step or not is_settled:
            self._counted_step = update.progress.number
            unadmitted.forget()
        else:
            counters = replace(contents.counters, received=received)
            unadmitted.see(name, counters, runtime.now_s())

    def _begin_to_judge(self) -> None:
        if not self._is_judging:
            self._is_judging = True
            self._threads.spawn(self._judge)

    def _judge(self) -> None:
        """Judge what switches hold if that, or the rules of others, have changed."""
        try:
            self._judge_if_changed()
        finally:
            self._is_judging = False

    def _judge_if_changed(self) -> None:
        observed = self._state.observed
        switches = observed.switches.values()
        foreign = {switch.name: switch.foreign for switch in switches if switch.foreign}
        if not foreign or any(switch.foreign_unread for switch in switches):
            observed.foreign_verdict, self._judged = "", None
        elif self._judged != (self._update.progress.number, foreign):
            self._judged = self._update.progress.number, foreign
            observed.foreign_verdict = ""
            task = self._update.in_fabric.with_foreign(foreign)
            observed.foreign_verdict = self._execute(ForeignRules.verdict, task)
