"""Leads all switches, step by step, to what the configuration and the failures ask for."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from eventlet import tpool
from ryu.lib import hub

from knotless.base.errors import KnotlessError
from knotless.controller.ahead import plan_ahead
from knotless.controller.background import BackgroundError
from knotless.controller.draining import Counters, channels_between
from knotless.controller.garbage import Garbage
from knotless.controller.losses import Losses, counted
from knotless.controller.observed import Observed
from knotless.controller.planning import Planned, Task, planned
from knotless.controller.southbound.caches import AfterCaches, unchecked
from knotless.controller.southbound.drains import CountedDrain, Drain, EmulatedDrain, has_drained
from knotless.controller.status import Status
from knotless.controller.unfinished import Begun, Unfinished
from knotless.topologies.failures import Failures

DRAIN_REPORT_S = 30.0
"""When packets of older rules that have not left are reported."""
_LOST_READINGS = 3
"""How often the counters of links that come back are read."""
_LOG = logging.getLogger("knotless.changes")


@dataclass(frozen=True)
class Pace:
    """How the controller waits.

    ``execute`` calls a function that can take long, while green threads go on. Counters are read
    every ``drain_interval_s`` while packets of older rules leave; of a fabric of ours, the control
    socket ``emulator`` is asked instead. The Open vSwitch processes with control sockets in the
    directory ``open_vswitch`` are asked before that. ``ahead`` calls functions that plan ahead, as
    :meth:`knotless.controller.background.Background.call` does; None: nothing is planned ahead. A
    takeover that lacks switches tries again after ``retry_s``.
    """

    execute: Callable[..., Any] = tpool.execute
    drain_interval_s: float = 0.05
    ahead: Callable[..., bytes] | None = None
    emulator: Path | None = None
    open_vswitch: Path | None = None
    retry_s: float = 0.5


DEFAULT_PACE = Pace()


class Hands(Protocol):
    """Who changes the rules of switches and reads their counters."""

    def take_step(self, names: Iterable[str]) -> None:
        """Have these switches take the rules of the current step; returns at once."""

    def port_counters(self) -> Counters:
        """Return the frames received and sent by each port of all connected switches."""

    def withdraw(self) -> None:
        """Forget what the fabric had before it changed."""


class Listener(Protocol):
    """Who is told what happens."""

    def tell(self, kind: str, **fields: object) -> None:
        """Report an event."""

    def changed(self, way: Planned, seconds: float) -> None:
        """Report that all switches hold the rules of a plan, this long after it was asked for."""


class Conductor:
    """A green thread that plans steps and begins them as soon as they are due."""

    def __init__(
        self,
        status: Status,
        hands: Hands,
        listener: Listener,
        pace: Pace,
        losses: Losses,
        unfinished: Unfinished,
    ) -> None:
        self._status, self._transition = status, status.transition
        self._hands, self._listener, self._pace = hands, listener, pace
        self._woken = hub.Event()
        self._asked_s: float | None = None
        self._served: Planned | None = None
        """The way of which it was reported that all frames take the new routes."""
        self._losses, self._unfinished = losses, unfinished
        self._is_draining = self._is_looking_ahead = False
        self._found_ahead = False
        self._plan_ahead = pace.ahead
        self._garbage = Garbage(hub.spawn_after)
        self._transition.has_caches = pace.open_vswitch is not None
        self._is_checking = False

    def start(self) -> None:
        """Begin to lead."""
        hub.spawn(self._run)

    def wake(self) -> None:
        """Look again: a link, a switch or the configuration has changed, or a switch is done."""
        self._woken.set()

    def take_over(self) -> None:
        """Go on from what another controller has left."""
        try:
            self._losses.read()
        except KnotlessError as error:
            _LOG.error("what links have lost is not known: %s", error)
        if not self._transition.is_there:
            self._asked_s = time.monotonic()
        self.wake()

    def _run(self) -> None:
        while True:
            self._woken.wait()
            self._woken.clear()
            try:
                self._go_on()
            except Exception:  # noqa: BLE001 - the next failure must be handled in any case
                _LOG.exception("the change of routes failed")

    def _go_on(self) -> None:
        transition = self._transition
        if not self._status.leads:
            return
        self._aim()
        while self._status.leads and transition.is_due:
            task = transition.task()
            if task is not None:
                self._plan(task)
                self._aim()
                continue
            self._hands.take_step(transition.begin())
        if transition.waiting:
            return
        if transition.is_checking and self._pace.open_vswitch and not self._is_checking:
            self._is_checking = True
            hub.spawn(self._check, self._pace.open_vswitch)
        self._report_serving()
        if transition.undrained and not self._is_draining:
            self._is_draining = True
            hub.spawn(self._drain)
        if transition.may_withdraw and transition.goal.desired is self._status.desired:
            self._hands.withdraw()
        self._complete()
        if not self._is_looking_ahead and transition.idle_task is not None:
            self._is_looking_ahead = True
            hub.spawn(self._look_ahead)
        way = transition.planned
        if way is not None and transition.is_there and self._asked_s is not None:
            seconds, self._asked_s = time.monotonic() - self._asked_s, None
            _LOG.info("%s in %.3f s", _summary(way), seconds)
            self._listener.changed(way, seconds)

    def _complete(self) -> None:
        """Note that no change goes on any more, if that is so."""
        transition, status = self._transition, self._status
        settled = transition.is_there and not transition.undrained
        if not settled or transition.goal.desired is not status.desired:
            return
        if transition.existing.staying is None:
            status.unfinished = False
            try:
                self._unfinished.end(Begun(transition.existing, transition.flow_control))
            except KnotlessError as error:
                _LOG.error("%s", error)

    def _report_serving(self) -> None:
        """Report once that all frames take the new routes, before older rules are removed."""
        way, asked_s = self._transition.planned, self._asked_s
        if way is None or way is self._served or asked_s is None or not self._transition.is_serving:
            return
        self._served, seconds = way, time.monotonic() - asked_s
        failed = list(way.goal.failures.names)
        tier = way.change.tier
        self._listener.tell(
            "rerouted",
            failed=failed,
            tier=tier,
            seconds=round(seconds, 4),
            planned_ahead=self._found_ahead,
        )
        _LOG.info(
            "all frames take the routes without %s after %.3f s", failed or "nothing", seconds
        )
        self._garbage.collect()

    def _aim(self) -> None:
        """Make what is configured and what has failed now the goal."""
        desired, observed = self._status.desired, self._status.observed
        before = self._transition.goal
        self._transition.aim(desired, failures_of(observed))
        if self._transition.goal != before and self._asked_s is None:
            self._asked_s = time.monotonic()
            self._garbage.put_off()

    def _plan(self, task: Task) -> None:
        if mended := self._transition.mended(task):
            self._count_lost(mended)
        number = self._transition.number
        try:
            known = self._status.ahead.find(task)
            way: Planned = known or self._pace.execute(planned, task)
        except KnotlessError as error:
            if self._transition.number == number and self._transition.refuse(task, str(error)):
                left = " until packets of older rules have left" if task.undrained else ""
                _LOG.error("the routes stay as they are%s: %s", left, error)
            return
        if self._transition.number != number:
            return  # what switches hold was read again meanwhile
        self._transition.accept(way)
        self._found_ahead = known is not None
        how = "steps, planned ahead" if known else "steps"
        _LOG.info("%s: %d %s", _summary(way), len(way.change.steps), how)

    def _look_ahead(self) -> None:
        """Plan what may be needed next, as long as nothing changes."""
        ahead, call = self._status.ahead, self._plan_ahead
        try:
            while call is not None and (task := ahead.next(self._transition.idle_task)):
                ahead.keep(task, self._pace.execute(call, ahead.packing, plan_ahead, task))
        except BackgroundError as error:
            self._plan_ahead = None
            _LOG.error("%s: from now on changes are planned when they are needed", error)
        finally:
            self._is_looking_ahead = False

    def _count_lost(self, mended: Failures) -> None:
        """Note the frames that were lost on links which come back.

        Nothing but probes is under way on them.
        """
        channels = channels_between(list(mended.dead_links(self._transition.existing.fabric)))
        readings = [self._hands.port_counters() for _ in range(_LOST_READINGS)]
        try:
            self._losses.add(counted(channels, readings))
        except KnotlessError as error:
            _LOG.error("a successor will not know what links have lost: %s", error)

    def _check(self, open_vswitch: Path) -> None:
        """Wait until switches have checked their cached entries, or another step begins."""
        transition = self._transition
        number = transition.number
        try:
            while late := unchecked(open_vswitch):
                if transition.number != number:
                    return
                _LOG.warning("%s: no answer about cached entries", ", ".join(late))
                hub.sleep(self._pace.retry_s)
            if transition.number == number:
                transition.checked()
        finally:
            self._is_checking = False
            self.wake()

    def _drain(self) -> None:
        """Wait until the packets of older rules have left, or another step begins."""
        transition = self._transition
        number, began_s = transition.number, time.monotonic()
        try:
            if not transition.pauses_between_switches:
                transition.drained()
                return
            drain = self._drain_of_step()
            while not has_drained(drain, lambda: transition.number == number):
                if transition.number != number:
                    return
                if time.monotonic() - began_s > DRAIN_REPORT_S:
                    transition.not_drained = drain.problem
                hub.sleep(drain.pause_s)
            transition.drained()
        finally:
            transition.not_drained = None
            self._is_draining = False
            self.wake()

    def _drain_of_step(self) -> Drain:
        if self._pace.open_vswitch is None:
            return self._begin_drain()
        return AfterCaches(partial(unchecked, self._pace.open_vswitch), self._begin_drain)

    def _begin_drain(self) -> Drain:
        if self._pace.emulator is not None:
            return EmulatedDrain(self._status, self._pace.emulator)
        read, interval_s = self._hands.port_counters, self._pace.drain_interval_s
        return CountedDrain(self._status, read, self._losses, interval_s)


def failures_of(observed: Observed) -> Failures:
    """Return the links and switches that must not carry frames now."""
    return Failures.of(observed.fabric, observed.failures())


def _summary(way: Planned) -> str:
    """Describe a change of routes in one line."""
    what = ", ".join((*way.goal.failures.names, *way.goal.desired.drained)) or "nothing"
    moved = f", {way.repair.moved} pairs of hosts moved" if way.repair else ""
    return (
        f"routes without {what}: {way.kind}{moved}; tier {way.change.tier},"
        f" {way.rules_changed} rules changed"
    )
