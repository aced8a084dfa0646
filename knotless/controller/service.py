"""The controller without its switches: configuration, reload, and what is served over HTTP."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any

import eventlet
from eventlet import patcher, tpool
from eventlet.green import socket
from eventlet.semaphore import Semaphore

from knotless.base.errors import FabricError, KnotlessError
from knotless.base.files import read_text, write_whole
from knotless.controller import config, overrides
from knotless.controller.config import Config
from knotless.controller.desired import Desired, Difference
from knotless.controller.history import History
from knotless.controller.northbound.access import Access, read_token
from knotless.controller.northbound.api import Api
from knotless.controller.northbound.events import Events
from knotless.controller.northbound.message import HttpError
from knotless.controller.northbound.metrics import Metrics
from knotless.controller.northbound.server import Server
from knotless.controller.operations import Operations
from knotless.controller.pause_watch import PauseWatch
from knotless.controller.planning import Planned, planned
from knotless.controller.several import Several
from knotless.controller.status import Status
from knotless.controller.steps import Changes
from knotless.controller.unfinished import Begun, Unfinished
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats.files import to_json, to_text

_LOG = logging.getLogger("knotless.controller")
_WATCH_S = 1.0
_CERTIFY_AFTER_S = 1.0
"""Repairs come first: certificates wait until no change has ended for this time."""


class Service:
    """Configuration, status, events and metrics of one controller.

    It serves nothing before :meth:`start`.
    """

    def __init__(self, path: Path | None, settings: Config) -> None:
        if path is None:
            _LOG.info("no %s here: using the defaults", config.DEFAULT_FILE)
        self._path = path
        token = config.token_path(settings, path)
        self._token = read_token(token) if token else None
        fabric = config.load_fabric(settings, path)
        state = config.state_path(settings, path)
        kept = (overrides.read(state) if state else overrides.Overrides()).current(settings, fabric)
        desired = Desired.compute(kept.applied_to(settings), fabric, kept.drained)
        _report(desired)
        self.status = Status(desired)
        self.unfinished = Unfinished.beside(state, shared=bool(settings.controllers))
        self._resume()
        self.history = History(settings.kept_changes)
        self.operations = Operations(settings, kept, self.status, state, tpool.execute, self._begin)
        self.several = Several(self.status, self.operations, _in_a_thread, self.unfinished)
        self.events = Events()
        self.metrics = Metrics(self.status, time.monotonic)
        self._reloading = Semaphore()
        self._certifying: Any = None

    def start(self, rest_host: str, rest_port: int, change_to: Callable[[Desired], None]) -> None:
        """Serve HTTP and the signal SIGHUP from now on.

        ``change_to`` is called with a new desired state of the same fabric, which is then to be
        installed.
        """
        self._change_to = self.operations.change_to = change_to
        self.status.started_s = time.monotonic()
        reads: dict[str, Callable[[], object]] = {
            "/status": lambda: self.status.as_json(time.monotonic()),
            "/plan": lambda: self.status.desired.summary,
            "/check": lambda: self.status.desired.verdict.as_json(),
            "/fabric": lambda: to_json(self.status.desired.fabric),
            "/changes": self.history.as_json,
            "/events": self.events.response,
            "/metrics": self.metrics.response,
        }
        access = Access(self._token, rest_host)
        writes: dict[str, Callable[[bytes], object]] = {
            "/reload": lambda _body: self._answer(self.reload),
            "/change": lambda body: self._operate(self.operations.change, body),
            "/drain": lambda body: self._operate(self.operations.drain, body),
            "/undrain": lambda body: self._operate(self.operations.undrain, body),
        }
        api = Api(reads, writes, access)
        eventlet.spawn(Server((rest_host, rest_port), api.answer).serve_forever)
        eventlet.spawn(self._await_hangup)
        eventlet.spawn(self._watch_problems)
        eventlet.spawn(self.several.watch)
        emulator = config.emulator_path(self.status.desired.config, self._path)
        if emulator is not None:
            eventlet.spawn(PauseWatch(emulator, self.tell, self._paced).run)

    def _resume(self) -> None:
        """Go on with a change that an earlier controller has begun; its steps are proven again."""
        try:
            begun = self.unfinished.read()
            if begun is None:
                return
            try:
                self.status.resume(begun)
            except FabricError as error:
                foreign = error.within("it is of another fabric")
                raise foreign.within(str(self.unfinished.path)) from error
        except KnotlessError as error:
            self.status.note = (
                f"{error}; so the change that was interrupted is not finished step by step: all"
                f" switches get the rules of {self.status.desired.fabric.name} at once"
            )
            _LOG.error("%s", self.status.note)
        else:
            _LOG.warning("a change was interrupted: it goes on when all rules have been read")

    def _begin(self, new: Desired) -> None:
        """Keep that a change begins, before anything of it is sent; raises KnotlessError."""
        transition = self.status.transition
        if self.status.leads:
            existing = transition.existing.extended(new.fabric)
            self.unfinished.begin(Begun(existing, transition.flow_control))

    # --- what happens to switches: see southbound.switches.Reporter ---------------------------

    def tell(self, kind: str, **fields: object) -> None:
        """Report an event to all clients of ``/events``."""
        if kind == "installed":
            self.history.confirmed(str(fields["switch"]), self.status.transition.number)
        self.events.tell(kind, **fields)

    def installed(self, changes: Changes, seconds: float) -> None:
        """Count the changes with which a switch got its rules."""
        for command in ("add", "modify", "delete"):
            self.metrics.changes.labels(command).inc(changes.count(command))
        self.metrics.install_s.observe(seconds)

    def _paced(self, stretch: float | None) -> None:
        self.status.stretch = stretch

    def changed(self, way: Planned, seconds: float) -> None:
        """Count and report a change of routes that all switches have confirmed."""
        self.metrics.route_change_s.labels(str(way.change.tier)).observe(seconds)
        self.tell(
            "routes",
            failed=list(way.goal.failures.names),
            drained=list(way.goal.desired.drained),
            repair=way.kind,
            tier=way.change.tier,
            rules_changed=way.rules_changed,
            seconds=round(seconds, 3),
            stretch=self.status.stretch,
        )
        number, stretch = self.status.transition.number, self.status.stretch
        self.history.add(way, number, seconds, stretch)
        if self._certifying is not None:
            self._certifying.cancel()
        self._certifying = eventlet.spawn_after(_CERTIFY_AFTER_S, self._certify)

    def _certify(self) -> None:
        """Compute the certificates of the last changes."""
        self._certifying = None
        while self.history.certify(tpool.execute):
            pass

    # --- what operators request --------------------------------------------------------------

    def _operate(self, operation: Callable[[bytes], dict[str, Any]], body: bytes) -> dict[str, Any]:
        """Perform a request, after the one before; a refusal is answered with its reason."""
        with self._reloading:
            self.several.require_active()
            return self._answer(lambda: operation(body))

    def _answer(self, operation: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        try:
            return operation()
        except KnotlessError as error:
            raise HttpError(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from error

    # --- reload ------------------------------------------------------------------------------

    def reload(self) -> dict[str, Any]:
        """Read the configuration again and change to it; return what changes.

        Raises KnotlessError, after which everything is as before, if the file is invalid, its plan
        can deadlock, or there are no proven steps to it while the fabric runs.
        """
        with self._reloading:
            try:
                difference, new = self._reread()
            except KnotlessError as error:
                self.status.note = f"the configuration was not reloaded: {error}"
                _LOG.error("not reloaded, nothing changes: %s", error)
                self._reloaded("refused", error=str(error))
                raise
            self.status.note = None
            if difference.nothing:
                self.status.desired = new
                _LOG.info("reloaded: nothing changes")
                return self._reloaded("unchanged", switches=[])
            _LOG.info("reloaded: the rules of %d switches change", len(difference.switches))
            _report(new)
            parts = {"added": list(difference.added), "removed": list(difference.removed)}
            for what, names in parts.items():
                if names:
                    _LOG.info("%s: %s", what, ", ".join(names))
            self._change_to(new)
            return self._reloaded("changed", switches=list(difference.switches), **parts)

    def grow(self, fabric: Fabric) -> None:
        """Write a larger fabric to the file of the fabric, and reload; raises as :meth:`reload`."""
        settings, path = self.operations.config, self._path
        file = config.fabric_path(settings, path)
        if config.load_fabric(settings, path) != self.status.desired.fabric:
            raise KnotlessError(f"{file} was edited: reload it first")
        before = read_text(file, FabricError)
        write_whole(file, to_text(fabric))
        try:
            self.reload()
        except KnotlessError:
            write_whole(file, before)
            raise

    def _reread(self) -> tuple[Difference, Desired]:
        """Return what a new configuration changes, without changing it."""
        old, operations = self.status.desired, self.operations
        settings = config.read(self._path) if self._path else operations.config
        fixed = (
            "rest",
            "controllers",
            "state_file",
            "kept_changes",
            "discovery",
            "learn_quiet_s",
            "hosts",
            "probe_interval_ms",
        )
        for key in fixed:
            if getattr(settings, key) != getattr(operations.config, key):
                raise KnotlessError(
                    f"{self._path}: {key}: it changes only when the controller restarts"
                )
        fabric = config.load_fabric(settings, self._path)
        kept = operations.overrides.current(settings, fabric)
        new = _in_a_thread(kept.applied_to(settings), fabric, kept.drained)
        difference = Difference.between(old, new)
        if difference.fabric:
            try:
                self._require_way(new)
            except KnotlessError as error:
                raise error.within("fabric").within(str(self._path)) from error
        if not difference.nothing:
            self._begin(new)
        operations.reconfigure(settings, kept)
        return difference, new

    def _require_way(self, new: Desired) -> None:
        """Raise KnotlessError if the fabric cannot become another one in proven steps."""
        transition = self.status.transition
        existing = transition.existing.extended(new.fabric)
        after = {of.dpid for of in new.fabric.switches}
        coming_or_going = {of.dpid for of in existing.fabric.switches} - (
            after & self.status.observed.switches.keys()
        )
        if new.config.controllers and len(coming_or_going) > 1:
            raise KnotlessError(
                "with several controllers, only one switch can come or go in a reload; change one,"
                " reload all controllers, then change the next"
            )
        if not self.status.leads and self.status.role() is not None:
            return  # the active controller has proven it, or will refuse it
        task = transition.task_to(new)
        if task is None:
            waiting = ", ".join(sorted(transition.waiting)) or "older rules"
            raise KnotlessError(
                f"a change of routes goes on and waits for {waiting}; reload again when routes in"
                " GET /status is settled"
            )
        tpool.execute(planned, task)

    def _reloaded(self, result: str, **fields: object) -> dict[str, Any]:
        self.metrics.reloads.labels(result).inc()
        self.tell("reload", result=result, **fields)
        return {"result": result, **fields}

    def _await_hangup(self) -> None:
        """Reload at each SIGHUP; a handler of a signal may do nothing but wake this up."""
        sleeper, waker = socket.socketpair()
        descriptor = waker.fileno()
        # Eventlet's own would switch to another green thread first.
        write = patcher.original("os").write

        def wake(_signal: int, _frame: object) -> None:
            # What is not read yet, and fills the buffer, is enough to wake it up.
            with suppress(BlockingIOError):
                write(descriptor, b"!")

        signal.signal(signal.SIGHUP, wake)
        while sleeper.recv(1024):
            with _logged():
                self.reload()

    def _watch_problems(self) -> None:
        """Report problems when they begin and end."""
        known: set[str] = set()
        while True:
            now = set(self.status.problems(time.monotonic()))
            for line in sorted(now - known):
                _LOG.warning("%s", line)
                self.tell("problem", text=line)
            for line in sorted(known - now):
                _LOG.info("solved: %s", line)
                self.tell("solved", text=line)
            known = now
            eventlet.sleep(_WATCH_S)


def _in_a_thread(settings: Config, fabric: Fabric, drained: tuple[str, ...]) -> Desired:
    """Compute the desired state in a thread of its own: switches are served in the meantime."""
    found: Desired = tpool.execute(Desired.compute, settings, fabric, drained)
    return found


def _report(desired: Desired) -> None:
    _LOG.info("%s", desired.describe())
    if not desired.verdict.acyclic:
        _LOG.warning("it is installed nevertheless: allow_deadlock is set")


@contextmanager
def _logged() -> Iterator[None]:
    """Go on after an error that has been logged, or log it."""
    try:
        yield
    except KnotlessError:
        pass
    except Exception:  # noqa: BLE001 - the next SIGHUP may find a better file
        _LOG.exception("the reload failed")
