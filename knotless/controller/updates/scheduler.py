"""Leads all switches, step by step, to what the configuration and the failures ask for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from functools import partial
from pathlib import Path
from typing import Protocol

from knotless.base.errors import KnotlessError
from knotless.controller import runtime
from knotless.controller.desired import DesiredState
from knotless.controller.observed import Counters, channels_between
from knotless.controller.reconcile import Changes
from knotless.controller.updates.caches import AfterPurge, purge_megaflows
from knotless.controller.updates.fabric_state import FabricState
from knotless.controller.updates.inherited import unused_links
from knotless.controller.updates.journal import BegunUpdate, UpdateJournal
from knotless.controller.updates.last_rules import LastRules
from knotless.controller.updates.outage import outage_now
from knotless.controller.updates.planning import UpdatePlan, UpdateTask, plan_update
from knotless.controller.updates.precomputed import plan_ahead
from knotless.controller.updates.quiescence import (
    ChannelLosses,
    CountedQuiescence,
    EmulatedQuiescence,
    ProbeCounts,
    Quiescence,
    count_losses,
    is_quiescent,
)
from knotless.controller.updates.timing import DeferredCollection, Timing
from knotless.controller.updates.worker import WorkerError
from knotless.topologies.fabric import Link
from knotless.topologies.failures import Failures

OVERDUE_S = 30.0
"""Packets of older rules that have not left after this time are reported."""
_KEEP_AGAIN_S = 5.0
"""Files that could not be written are tried again after this time."""
_LOSSES = "what links have lost"
MISSING_RULES = "what missing switches hold"
_END = "that the last change is complete"
_LOSS_READINGS = 3
"""So often the counters of links that come back are read."""
_LOG = logging.getLogger("knotless.changes")


class Reporter(Protocol):
    """Told what happens: the controller's events, metrics and history, or a test."""

    def tell(self, kind: str, **fields: object) -> None:
        """Report an event."""

    def installed(self, changes: Changes, seconds: float) -> None:
        """Report that a switch holds its rules, after these changes."""

    def changed(self, plan: UpdatePlan, seconds: float) -> None:
        """Report that all switches hold the rules of a plan, this long after it was asked for."""


class SwitchDriver(Protocol):
    """Changes the rules of switches: real ones, or models."""

    def take_step(self, names: Iterable[str]) -> None:
        """Have these switches take the rules of the current step; returns at once."""

    def withdraw(self) -> None:
        """Forget what the fabric had before it changed."""


class UpdateScheduler:
    """A green thread that plans updates and begins their steps as soon as they are due."""

    def __init__(
        self,
        *,
        state: FabricState,
        driver: SwitchDriver,
        read_counters: Callable[[], Counters],
        reporter: Reporter,
        timing: Timing,
        losses: ChannelLosses,
        journal: UpdateJournal,
        last_rules: LastRules,
        probes: ProbeCounts | None,
        threads: runtime.Threads,
    ) -> None:
        self._state, self._update = state, state.update
        self._driver, self._reporter, self._timing = driver, reporter, timing
        self._threads, self._probes, self._read_counters = threads, probes, read_counters
        self._losses, self._journal, self._last_rules = losses, journal, last_rules
        self._woken = runtime.Event()
        self._failures: frozenset[str] = frozenset()
        """Those that were reported last."""
        self._is_comparing = False
        self._asked_s: float | None = None
        """The time at which the update was asked for that is not complete."""
        self._served: UpdatePlan | None = None
        """The plan of which it was reported that all frames take the new routes."""
        self._uncounted: frozenset[str] = frozenset()
        """Links of which the losses could not be counted a moment ago."""
        self._is_waiting = self._is_purging = self._is_precomputing = self._is_keeping = False
        self._is_to_keep_again = False
        self._kept_number: int | None = None
        """The number of the step of which the rules of switches were kept."""
        self._was_precomputed = False
        self._dropping_since_s: float | None = None
        self._most_dropped = 0
        """Pairs whose frames were dropped since then, in the step that drops most."""
        self._precompute = timing.precompute
        self._last_asked: tuple[DesiredState, Failures] | None = None
        """The desired state and the failures of the last look."""
        self._collection = DeferredCollection(threads.spawn_after)
        self._update.progress.purges_megaflows = timing.open_vswitch is not None

    def start(self) -> None:
        """Begin to lead."""
        self._threads.spawn(self._run)

    def close(self) -> None:
        """Leave nothing as it is only during an update; the threads have ended."""
        self._collection.resume()

    def wake(self) -> None:
        """Look again: a link, a switch or the configuration has changed, or a switch is done."""
        self._woken.set()

    def compare_failures(self) -> None:
        """Report links and switches that have failed or returned, once for many events."""
        if not self._is_comparing:
            self._is_comparing = True
            self._threads.spawn(self._report_failures)

    def _report_failures(self) -> None:
        self._is_comparing = False
        failures = self._state.observed.failures()
        if failures != self._failures:
            self._failures = failures
            self._reporter.tell("failures", failed=sorted(failures))
        self.wake()

    def take_over(self) -> None:
        """Go on from what another controller has left."""
        try:
            self._losses.read()
        except KnotlessError as error:
            self._state.file_problems[_LOSSES] = f"what links have lost is not known: {error}"
        else:
            self._state.file_problems.pop(_LOSSES, None)
        self._count_losses(self._possibly_avoided())
        if not self._update.is_there:
            self._asked_s = runtime.now_s()
        self.wake()

    def _possibly_avoided(self) -> set[Link]:
        """Return the links to which no rule forwards, if an update was interrupted.

        An earlier controller may have avoided them: they may have lost frames, and be back.
        """
        update = self._update
        if update.progress.has_plan or not update.progress.is_inherited:
            return set()
        unused = unused_links(update.union.fabric, update.in_fabric.held.rules)
        return {link for link in update.union.fabric.links if link.name in unused}

    def _run(self) -> None:
        while True:
            self._woken.wait()
            self._woken.clear()
            try:
                self._go_on()
            except Exception:  # noqa: BLE001 - the next failure must be handled in any case
                _LOG.exception("the change of routes failed")

    def _go_on(self) -> None:
        if not self._state.leads:
            return
        self._take_due_steps()
        self._report_dropping()
        if self._update.progress.waiting:
            return
        self._purge_if_needed()
        self._report_serving()
        self._await_quiescence_if_needed()
        self._complete()
        self._precompute_if_idle()
        self._keep_if_idle()
        self._report_complete()

    # --- steps -------------------------------------------------------------------------------

    def _take_due_steps(self) -> None:
        update = self._update
        self._aim()
        while self._state.leads and update.is_due:
            task = update.task()
            if task is not None:
                self._plan(task)
                self._aim()
                continue
            self._driver.take_step(update.begin())

    def _aim(self) -> None:
        """Make what is configured and what has failed now the goal."""
        before = self._update.goal
        self._update.died(self._state.observed.switches_down())
        failures, uncounted = self._state.failures(), self._uncounted_links()
        if not uncounted <= set(failures.links):
            names = {*failures.names, *uncounted}
            failures = Failures.from_names(self._state.observed.fabric, names)
        self._note_change(failures)
        self._update.aim(self._state.desired, failures)
        self._update.carrying = self._state.observed.may_carry(self._update.union.failures)
        if self._update.goal != before and self._asked_s is None:
            self._asked_s = runtime.now_s()
            self._collection.put_off()
        self._note_outage()

    def _note_outage(self) -> None:
        """Record which pairs are down, and report when all are served again."""
        before, now_s = self._state.outage, runtime.now_s()
        self._state.outage = outage_now(self._update, before, now_s)
        if before is not None and self._state.outage is None and before.most:
            seconds = round(now_s - before.since_s, 4)
            self._reporter.tell("served", pairs=before.most, seconds=seconds)

    def _note_change(self, failures: Failures) -> None:
        """Let what has failed, returned or been drained settle; at the start there is no change."""
        asked = self._state.desired, failures
        if asked == self._last_asked:
            return
        before, self._last_asked = self._last_asked, asked
        settle_s = self._state.desired.config.settle_s
        if before is not None and settle_s:
            self._update.is_settling = True
            self._threads.spawn_after(settle_s, self._settle, self._last_asked)

    def _settle(self, asked: tuple[DesiredState, Failures]) -> None:
        if asked is self._last_asked:
            self._update.is_settling = False
            self.wake()

    def _uncounted_links(self) -> set[str]:
        """Return the avoided links that are not used again yet: nobody says what they have lost.

        Without that, the packets of older rules would never be seen to leave.
        """
        if not self._update.pauses_between_switches:
            return set()
        observed = self._state.observed
        return {
            link.name
            for link in self._update.avoided.dead_links(observed.fabric)
            if link.name in self._uncounted
            or not (observed.by_name[link.a].connected and observed.by_name[link.b].connected)
        }

    def _count_again(self) -> None:
        self._uncounted = frozenset()
        self.wake()

    def _plan(self, task: UpdateTask) -> None:
        fabric = self._update.union.fabric
        restored = self._update.avoided.dead_links(fabric) - task.failures.dead_links(fabric)
        if not self._count_losses(restored):
            return
        number = self._update.progress.number
        try:
            precomputed = self._state.precomputed.find(task)
            with self._state.planning.timed("the routes", runtime.now_s):
                plan: UpdatePlan = precomputed or self._timing.execute(plan_update, task)
        except KnotlessError as error:
            if self._update.progress.number == number and self._update.refuse(task, str(error)):
                left = " until packets of older rules have left" if task.in_flight else ""
                _LOG.error("the routes stay as they are%s: %s", left, error)
            return
        if self._update.progress.number != number:
            return  # what switches hold was read again meanwhile
        if not task.carrying and self._state.observed.may_carry(self._update.union.failures):
            return  # a link has returned meanwhile: it is planned again
        self._update.accept(plan)
        observed = self._state.observed
        observed.ages_of_update_s = observed.read_ages_s(runtime.now_s())
        self._was_precomputed = precomputed is not None
        how = "steps, planned ahead" if precomputed else "steps"
        _LOG.info("%s: %d %s", plan.summary, len(plan.change.steps), how)

    def _count_losses(self, links: Collection[Link]) -> bool:
        """Note the frames that were lost on links which come back, and return whether all could be.

        Nothing but probes is under way on them. Links of which a switch does not tell its counters
        are tried again later.
        """
        if not links:
            return True
        links = sorted(links, key=lambda link: link.name)  # what is kept depends on no hash
        readings = [self._read_counters() for _ in range(_LOSS_READINGS)]
        losses = count_losses(channels_between(links), readings)
        self._keep(_LOSSES, partial(self._losses.add, losses))
        missing = [link for link in links if not set(channels_between([link])) <= losses.keys()]
        if not missing or not self._update.pauses_between_switches:
            return True
        self._uncounted = frozenset(link.name for link in missing)
        self._threads.spawn_after(self._timing.retry_s, self._count_again)
        return False

    def _report_dropping(self) -> None:
        """Report when frames begin to be dropped for a step, and when all are admitted again."""
        pairs = self._update.progress.dropping
        if pairs:
            if self._dropping_since_s is None:
                self._dropping_since_s, self._most_dropped = runtime.now_s(), 0
                self._reporter.tell("dropping", pairs=pairs)
                _LOG.warning("frames of %d pairs of hosts are dropped during a step", pairs)
            self._most_dropped = max(self._most_dropped, pairs)
        elif self._dropping_since_s is not None:
            seconds, self._dropping_since_s = runtime.now_s() - self._dropping_since_s, None
            self._reporter.tell("dropped", pairs=self._most_dropped, seconds=round(seconds, 4))
            _LOG.info("no frame is dropped any more, after %.3f s", seconds)

    # --- between steps -----------------------------------------------------------------------

    def _purge_if_needed(self) -> None:
        if (
            self._update.progress.awaits_purge
            and self._timing.open_vswitch
            and not self._is_purging
        ):
            self._is_purging = True
            self._threads.spawn(self._purge, self._timing.open_vswitch)

    def _purge(self, open_vswitch: Path) -> None:
        """Wait until switches have forgotten their megaflows, or another step begins."""
        number = self._update.progress.number
        try:
            while late := purge_megaflows(open_vswitch):
                if self._update.progress.number != number:
                    return
                _LOG.warning("%s: no answer about cached entries", ", ".join(late))
                runtime.sleep(self._timing.retry_s)
            if self._update.progress.number == number:
                self._update.purged()
        finally:
            self._is_purging = False
            self.wake()

    def _await_quiescence_if_needed(self) -> None:
        if self._update.progress.in_flight and not self._is_waiting:
            self._is_waiting = True
            self._threads.spawn(self._await_quiescence)

    def _await_quiescence(self) -> None:
        """Wait until the packets of older rules have left.

        It ends without that if another step begins, if others turn out to have changed rules, or if
        a switch that was dead returns, which may still forward by older rules: then it begins anew.
        """
        update = self._update
        began_s = runtime.now_s()

        def state_now() -> tuple[int, int]:
            return update.progress.number, len(update.progress.in_flight)

        begun = state_now()

        def is_current() -> bool:
            return state_now() == begun and not update.progress.waiting

        try:
            if update.pauses_between_switches:
                quiescence = self._quiescence()
                while not is_quiescent(quiescence, is_current):
                    if not is_current():
                        return
                    if runtime.now_s() - began_s > OVERDUE_S:
                        update.overdue = quiescence.problem
                    runtime.sleep(quiescence.pause_s)
            if is_current():
                update.quiescent()
        finally:
            update.overdue = None
            self._is_waiting = False
            self.wake()

    def _quiescence(self) -> Quiescence:
        if self._timing.open_vswitch is None:
            return self._begin_quiescence()
        purge = partial(purge_megaflows, self._timing.open_vswitch)
        return AfterPurge(purge, self._begin_quiescence)

    def _begin_quiescence(self) -> Quiescence:
        if self._timing.emulator is not None:
            return EmulatedQuiescence(self._update, self._timing.emulator)
        return CountedQuiescence(
            self._update,
            self._probes,
            self._read_counters,
            self._losses,
            self._timing.counters_interval_s,
        )

    # --- the end of an update ----------------------------------------------------------------

    def _report_serving(self) -> None:
        """Report once that all frames take the new routes, before older rules are removed."""
        plan, asked_s = self._update.progress.plan, self._asked_s
        if plan is None or plan is self._served or asked_s is None or not self._update.is_serving:
            return
        self._served, seconds = plan, runtime.now_s() - asked_s
        failed = list(plan.goal.failures.names)
        self._reporter.tell(
            "rerouted",
            failed=failed,
            tier=plan.change.tier,
            seconds=round(seconds, 4),
            planned_ahead=self._was_precomputed,
        )
        _LOG.info(
            "all frames take the routes without %s after %.3f s", failed or "nothing", seconds
        )
        self._collection.resume()

    def _complete(self) -> None:
        """Forget what the fabric had before, and that an update goes on, if that is so."""
        update, state = self._update, self._state
        is_goal_current = update.goal.desired is state.desired
        if update.may_withdraw and is_goal_current:
            self._driver.withdraw()
        if not (update.is_there and is_goal_current) or update.progress.in_flight:
            return
        if update.union.staying is None:
            state.note_interrupted(interrupted=False)
            begun = BegunUpdate(update.union, update.flow_control)
            self._keep(_END, partial(self._journal.end, begun))

    def _report_complete(self) -> None:
        plan = self._update.progress.plan
        if not self._update.is_there or self._asked_s is None:
            return
        seconds, self._asked_s = runtime.now_s() - self._asked_s, None
        if plan is not None:  # at the start, switches may get their rules without one
            _LOG.info("%s in %.3f s", plan.summary, seconds)
            self._reporter.changed(plan, seconds)

    # --- before the next failure -------------------------------------------------------------

    def _precompute_if_idle(self) -> None:
        if not self._is_precomputing and self._update.idle_task is not None:
            self._is_precomputing = True
            self._threads.spawn(self._precompute_repairs)

    def _precompute_repairs(self) -> None:
        """Plan what may be needed next, as long as nothing changes."""
        repairs, call = self._state.precomputed, self._precompute
        try:
            while call is not None and (task := repairs.next(self._update.idle_task)):
                plan = self._timing.execute(call, repairs.packing, plan_ahead, task)
                repairs.keep(task, plan)
        except WorkerError as error:
            self._precompute = None
            _LOG.error("%s: from now on changes are planned when they are needed", error)
        finally:
            self._is_precomputing = False

    # --- before the next start ---------------------------------------------------------------

    def _keep_if_idle(self) -> None:
        update = self._update
        is_due = update.progress.number != self._kept_number and update.idle_task is not None
        if self._last_rules.is_kept and is_due and not self._is_keeping:
            self._is_keeping = True
            self._threads.spawn_after(self._timing.keep_after_s, self._keep_rules)

    def _keep_rules(self) -> None:
        """Keep the rules that switches have confirmed, unless an update goes on again."""
        update, number = self._update, self._update.progress.number
        try:
            if self._state.leads and update.idle_task is not None:
                # One that is not connected at the moment has confirmed them and keeps them.
                names = {switch.name for switch in update.union.fabric.switches}
                names -= set(update.goal.failures.switches)
                rules = {name: update.progress.wanted(name) for name in sorted(names)}
                keep = partial(self._timing.execute, self._last_rules.keep, rules)
                self._keep(MISSING_RULES, keep)
                self._kept_number = number
        finally:
            self._is_keeping = False

    def _keep(self, subject: str, write: Callable[[], object]) -> None:
        """Write a file for a successor; if that fails, it is a problem, and is tried again."""
        with self._state.keeping(subject):
            write()
        if subject in self._state.file_problems and not self._is_to_keep_again:
            self._is_to_keep_again = True
            self._threads.spawn_after(_KEEP_AGAIN_S, self._keep_again)

    def _keep_again(self) -> None:
        """Write again what could not be written; the end of an update is looked at with each."""
        self._is_to_keep_again = False
        if not self._state.leads:
            for subject in (_LOSSES, MISSING_RULES, _END):
                self._state.file_problems.pop(subject, None)  # another controller writes them
            return
        if _LOSSES in self._state.file_problems:
            self._keep(_LOSSES, self._losses.keep)
        if MISSING_RULES in self._state.file_problems:
            self._kept_number = None
        self.wake()
