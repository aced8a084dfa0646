"""The controller without its switches: configuration, reload, and what is served over HTTP."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from knotless.base.errors import FabricError, FaultError, KnotlessError
from knotless.base.files import read_text
from knotless.base.http_rules import HttpError, OwnNames
from knotless.base.printable import printable
from knotless.controller import config, runtime
from knotless.controller.config import Config
from knotless.controller.desired import DesiredState, Difference
from knotless.controller.emulator import EmulatorWatch
from knotless.controller.operations import Operations
from knotless.controller.overrides import Overrides, recovered_overrides
from knotless.controller.peers import HaPeers
from knotless.controller.reconcile import Changes
from knotless.controller.rest.api import Access, Api, read_token
from knotless.controller.rest.events import Events
from knotless.controller.rest.metrics import Metrics
from knotless.controller.rest.server import Server
from knotless.controller.status import Status
from knotless.controller.updates.fabric_state import FabricState
from knotless.controller.updates.journal import BegunUpdate, History, UpdateJournal
from knotless.controller.updates.planning import UpdatePlan, plan_update
from knotless.routing.multicast import addresses
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats.files import to_json, to_text

_LOG = logging.getLogger("knotless.controller")
_WATCH_S = 1.0
_CERTIFY_AFTER_S = 1.0
"""Repairs come first: certificates wait until no change has ended for this time."""
_FIXED_KEYS = (
    *("rest", "openflow_socket", "controllers", "state_file", "kept_changes"),
    *("discovery", "learn_quiet_s", "hosts", "probe_interval_ms"),
)
"""Keys of the configuration that change only when the controller restarts."""


class Service:
    """Configuration, status, events and metrics of one controller.

    It serves nothing before :meth:`start`. It is the :class:`~knotless.controller.updates.
    scheduler.Reporter` of the parts that work with switches.
    """

    def __init__(self, path: Path | None, settings: Config) -> None:
        if path is None:
            _LOG.info("no %s here: using the defaults", config.DEFAULT_FILE)
        self._path = path
        token = config.token_path(settings, path)
        self._token = read_token(token) if token else None
        fabric = config.load_fabric(settings, path)
        state_file = config.state_path(settings, path)
        recovered, damage = recovered_overrides(state_file) if state_file else (Overrides(), None)
        kept = (recovered or Overrides()).current(settings, fabric)
        is_known = recovered is not None
        try:
            desired = DesiredState.compute(kept.applied_to(settings), fabric, kept.drained)
        except KnotlessError as error:
            if kept == Overrides():
                raise
            kept, is_known, damage = Overrides(), False, damage or f"{state_file}: {error}"
            desired = DesiredState.compute(settings, fabric)
        _report(desired)
        self.state = FabricState(desired)
        self.journal = UpdateJournal.beside(state_file, shared=bool(settings.controllers))
        self.history = History(settings.kept_changes, clock=runtime.unix_time_s)
        self.operations = Operations(
            config=settings,
            overrides=kept,
            state=self.state,
            path=state_file,
            execute=runtime.in_thread,
            begin=self._begin,
        )
        self.peers = HaPeers(
            state=self.state,
            operations=self.operations,
            compute=_in_a_thread,
            journal=self.journal,
        )
        self.status = Status(self.state, last_change=self.history.last, role=self.peers.role)
        self._resume()
        if damage is not None:
            self.operations.recover(damage, is_known=is_known)
        self.events = Events(runtime.unix_time_s)
        self.metrics = Metrics(self.status, runtime.now_s)
        self._threads = runtime.Threads()
        self._server: Server | None = None
        self._reloading = runtime.Lock()
        self._certifying: Any = None
        self._read_again: Callable[[float], None] = lambda _max_age_s: None

    def start(
        self,
        rest_host: str,
        rest_port: int,
        change_to: Callable[[DesiredState], None],
        read_again: Callable[[float], None],
        withdraw: Callable[[], None],
    ) -> None:
        """Serve HTTP and the signal SIGHUP from now on.

        ``change_to`` is called with a new desired state of the same fabric, which is then to be
        installed. ``read_again`` is that of :class:`~knotless.controller.operations.Operations`,
        ``withdraw`` that of :meth:`HaPeers.watch <knotless.controller.peers.HaPeers.watch>`.
        """
        self._read_again = self.operations.read_again = read_again
        self._change_to = self.operations.change_to = change_to
        self.status.start(runtime.now_s())
        names = OwnNames(rest_host, self.state.desired.config.rest.names)
        access = Access(self._token, names)
        api = Api(self._reads(), self._writes(), access, happened=self.events.count)
        self._server = Server((rest_host, rest_port), api)
        self._threads.spawn(self._server.serve_forever)
        self._threads.spawn(self._reload_at_hangup)
        self._threads.spawn(self._watch_problems)
        self._threads.spawn(self.peers.watch, withdraw)
        emulator = config.emulator_path(self.state.desired.config, self._path)
        if emulator is not None:
            watch = EmulatorWatch(emulator, self.tell, self.status.see_links, self._declared_groups)
            self._threads.spawn(watch.run)

    def close(self) -> None:
        """Serve nothing any more."""
        self._threads.close()
        if self._server is not None:
            self._server.close()

    def _reads(self) -> dict[str, Callable[[], object]]:
        return {
            "/status": lambda: self.status.as_json(runtime.now_s()),
            "/plan": lambda: self.state.desired.summary,
            "/check": lambda: self.state.desired.verdict.as_json(),
            "/fabric": lambda: to_json(self.state.desired.fabric),
            "/changes": self.history.as_json,
            "/events": self.events.response,
            "/metrics": self.metrics.response,
        }

    def _writes(self) -> dict[str, Callable[[bytes], object]]:
        return {
            "/reload": lambda _body: _answer(self.reload),
            "/change": lambda body: self._operate(self.operations.change, body),
            "/drain": lambda body: self._operate(self.operations.drain, body),
            "/undrain": lambda body: self._operate(self.operations.undrain, body),
            "/confirm": lambda body: self._operate(self.operations.confirm, body),
        }

    def _declared_groups(self) -> list[str] | None:
        """The addresses of the groups that are desired; None if another controller is active."""
        if not self.state.leads and self.status.role is not None:
            return None
        return addresses(group.number for group in self.state.desired.plan.multicast)

    def _resume(self) -> None:
        """Go on with an update that an earlier controller has begun; its steps are proven again."""
        try:
            begun = self.journal.read()
            if begun is None:
                return
            try:
                self.state.resume(begun)
            except FabricError as error:
                foreign = error.within("it is of another fabric")
                raise foreign.within(str(self.journal.path)) from error
        except KnotlessError as error:
            note = (
                f"{error}; so the change that was interrupted is not finished as it began: steps to"
                f" {self.state.desired.fabric.name} are proven without what else there was"
            )
            self.status.note(note)
            _LOG.error("%s", note)
        else:
            _LOG.warning("a change was interrupted: it goes on when all rules have been read")

    def _begin(self, new: DesiredState) -> None:
        """Keep that an update begins, before anything of it is sent; raises KnotlessError."""
        update = self.state.update
        if self.state.leads:
            union = update.union.extended(new.fabric)
            self.journal.begin(BegunUpdate(union, update.flow_control))

    # --- what happens to switches: see updates.scheduler.Reporter -----------------------------

    def tell(self, kind: str, **fields: Any) -> None:
        """Report an event to all clients of ``/events``."""
        if kind == "installed":
            self.history.confirmed(str(fields["switch"]), self.state.update.number)
        elif kind == "dropped":
            self.metrics.dropped_pairs.inc(fields["pairs"])
            self.metrics.dropped_s.inc(fields["seconds"])
            self.history.dropped(fields["seconds"])
        self.events.tell(kind, **fields)

    def installed(self, changes: Changes, seconds: float) -> None:
        """Count the changes with which a switch got its rules."""
        for command in ("add", "modify", "delete"):
            self.metrics.changes.labels(command).inc(changes.count(command))
        self.metrics.install_s.observe(seconds)

    def changed(self, plan: UpdatePlan, seconds: float) -> None:
        """Count and report an update that all switches have confirmed."""
        stretch = self.status.stretch
        self.metrics.route_change_s.labels(str(plan.change.tier)).observe(seconds)
        self.tell(
            "routes",
            failed=list(plan.goal.failures.names),
            drained=list(plan.goal.desired.drained),
            repair=plan.kind,
            tier=plan.change.tier,
            rules_changed=plan.rules_changed,
            dropped_pairs=plan.change.count(plan.change.dropped),
            seconds=round(seconds, 3),
            stretch=stretch,
        )
        ages_s = self.state.observed.ages_of_update_s
        self.history.add(plan, self.state.update.number, seconds, stretch, ages_s)
        if self._certifying is not None:
            self._certifying.cancel()
        self._certifying = self._threads.spawn_after(_CERTIFY_AFTER_S, self._certify)

    def _certify(self) -> None:
        """Compute the certificates of the last updates."""
        self._certifying = None
        while self.history.certify(runtime.in_thread):
            pass

    # --- what operators request --------------------------------------------------------------

    def _operate(self, operation: Callable[[bytes], dict[str, Any]], body: bytes) -> dict[str, Any]:
        """Perform a request, after the one before; a refusal is answered with its reason."""
        with self._reloading:
            self.peers.require_active()
            return _answer(lambda: operation(body))

    # --- reload ------------------------------------------------------------------------------

    def reload(self) -> dict[str, Any]:
        """Read the configuration again and change to it; return what changes.

        Raises KnotlessError, after which everything is as before, if the file is invalid, its plan
        can deadlock, or there are no proven steps to it while the fabric runs.
        """
        with self._reloading:
            try:
                self._read_again(0)
            except KnotlessError as error:
                _LOG.error("%s", error)  # the new configuration may be the remedy
            try:
                with self.state.planning.timed("the reload", runtime.now_s):
                    difference, new = self._reread()
            except KnotlessError as error:
                self.status.note(f"the configuration was not reloaded: {error}")
                _LOG.error("not reloaded, nothing changes: %s", error)
                self._reloaded("refused", error=str(error))
                raise
            self.status.note(None)
            if difference.nothing:
                self.state.replace(new)
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
        if config.load_fabric(settings, path) != self.state.desired.fabric:
            raise KnotlessError(f"{file} was edited: reload it first")
        before = read_text(file, FabricError)
        runtime.keep(file, to_text(fabric))
        try:
            self.reload()
        except KnotlessError:
            runtime.keep(file, before)
            raise

    def _reread(self) -> tuple[Difference, DesiredState]:
        """Return what a new configuration changes, without changing it."""
        old, operations = self.state.desired, self.operations
        settings = config.read(self._path) if self._path else operations.config
        for key in _FIXED_KEYS:
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
                self._require_plan(new)
            except KnotlessError as error:
                raise error.within("fabric").within(str(self._path)) from error
        if not difference.nothing:
            self._begin(new)
        operations.reconfigure(settings, kept)
        return difference, new

    def _require_plan(self, new: DesiredState) -> None:
        """Raise KnotlessError if the fabric cannot become another one in proven steps."""
        update = self.state.update
        union = update.union.extended(new.fabric)
        after = {switch.dpid for switch in new.fabric.switches}
        coming_or_going = {switch.dpid for switch in union.fabric.switches} - (
            after & self.state.observed.switches.keys()
        )
        if new.config.controllers and len(coming_or_going) > 1:
            raise KnotlessError(
                "with several controllers, only one switch can come or go in a reload; change one,"
                " reload all controllers, then change the next"
            )
        if not self.state.leads and self.status.role is not None:
            return  # the active controller has proven it, or will refuse it
        task = update.task_to(new)
        if task is None:
            waiting = ", ".join(sorted(update.waiting)) or "older rules"
            raise KnotlessError(
                f"a change of routes goes on and waits for {waiting}; reload again when routes in"
                " GET /status is settled"
            )
        runtime.in_thread(plan_update, task)

    def _reloaded(self, result: str, **fields: object) -> dict[str, Any]:
        self.metrics.reloads.labels(result).inc()
        self.tell("reload", result=result, **fields)
        return {"result": result, **fields}

    def _reload_at_hangup(self) -> None:
        """Reload at each SIGHUP."""
        for _ in runtime.signals(signal.SIGHUP):
            with _logged():
                self.reload()

    def _watch_problems(self) -> None:
        """Report problems when they begin and end."""
        reported: set[str] = set()
        while True:
            now = set(self.status.problems(runtime.now_s()))
            for line in sorted(now - reported):
                _LOG.warning("%s", line)
                self.tell("problem", text=line)
            for line in sorted(reported - now):
                _LOG.info("solved: %s", line)
                self.tell("solved", text=line)
            reported = now
            runtime.sleep(_WATCH_S)


def _in_a_thread(settings: Config, fabric: Fabric, drained: tuple[str, ...]) -> DesiredState:
    """Compute the desired state in a thread of its own: switches are served in the meantime."""
    return runtime.in_thread(DesiredState.compute, settings, fabric, drained)


def _report(desired: DesiredState) -> None:
    _LOG.info("%s", desired.describe())
    for note in desired.fabric.notes:
        _LOG.warning("fabric: %s", printable(note))
    if not desired.verdict.safe:
        _LOG.warning("it is installed nevertheless: allow_deadlock is set")


def _answer(operation: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return operation()
    except FaultError as error:
        raise HttpError(HTTPStatus.INTERNAL_SERVER_ERROR, str(error)) from error
    except KnotlessError as error:
        raise HttpError(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from error


@contextmanager
def _logged() -> Iterator[None]:
    """Go on after an error that has been logged, or log it."""
    try:
        yield
    except KnotlessError:
        pass
    except Exception:  # noqa: BLE001 - the next SIGHUP may find a better file
        _LOG.exception("the reload failed")
