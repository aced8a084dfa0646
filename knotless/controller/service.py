"""The controller without its switches: reloads, and what is served over HTTP."""

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
from knotless.controller.desired import DesiredState, Difference
from knotless.controller.emulator import EmulatorWatch
from knotless.controller.operations import Operations
from knotless.controller.peers import HaPeers
from knotless.controller.probes.learner import Explorer
from knotless.controller.reporter import EventReporter
from knotless.controller.rest.api import Access, Api
from knotless.controller.rest.server import Server
from knotless.controller.status import Status
from knotless.controller.updates.planning import plan_update
from knotless.routing.multicast import addresses
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats.files import to_json, to_text

_LOG = logging.getLogger("knotless.controller")
_WATCH_S = 1.0
_FIXED_KEYS = (
    *("rest", "openflow_socket", "controllers", "state_file", "kept_changes"),
    *("discovery", "learn_quiet_s", "hosts", "probe_interval_ms"),
)
"""Keys of the configuration that change only when the controller restarts."""


class Service:
    """Reloads, and what is served over HTTP; nothing before :meth:`start`.

    Parameters
    ----------
    path : the file of the configuration; None: there is none.
    token : that of requests that change something; None: they need none.
    status : reports of the state of the controller, ``status.state``.
    operations : performs what operators request.
    peers : the other controllers.
    reporter : told what happens.
    explorer : finds what the fabric does not declare; None: nothing is searched for.
    withdraw : that of :meth:`HaPeers.watch <knotless.controller.peers.HaPeers.watch>`.
    threads : those of the controller.

    """

    def __init__(
        self,
        *,
        path: Path | None,
        token: str | None,
        status: Status,
        operations: Operations,
        peers: HaPeers,
        reporter: EventReporter,
        explorer: Explorer | None,
        withdraw: Callable[[], None],
        threads: runtime.Threads,
    ) -> None:
        self.state, self.status, self.reporter, self.peers = status.state, status, reporter, peers
        self._path, self._token, self._explorer = path, token, explorer
        self._operations, self._state_file = operations, operations.state_file
        self._withdraw, self._threads = withdraw, threads
        self._server: Server | None = None
        self._reloading = runtime.Lock()

    def start(self, rest_host: str, rest_port: int) -> None:
        """Serve HTTP and the signal SIGHUP from now on."""
        self.status.start(runtime.now_s())
        names = OwnNames(rest_host, self.state.desired.config.rest.names)
        access = Access(self._token, names)
        api = Api(self._reads(), self._writes(), access, happened=self.reporter.events.count)
        self._server = Server((rest_host, rest_port), api)
        self._threads.spawn(self._server.serve_forever)
        self._threads.spawn(self._reload_at_hangup)
        self._threads.spawn(self._watch_problems)
        self._threads.spawn(self.peers.watch, self._withdraw)
        if self._explorer is not None:
            self._threads.spawn(self._grow_by, self._explorer)
        emulator = config.emulator_path(self.state.desired.config, self._path)
        if emulator is not None:
            see, tell = self.status.see_links, self.reporter.tell
            watch = EmulatorWatch(emulator, tell, see, self._declared_groups)
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
            "/changes": self.reporter.history.as_json,
            "/events": self.reporter.events.response,
            "/metrics": self.reporter.metrics.response,
        }

    def _writes(self) -> dict[str, Callable[[bytes], object]]:
        return {
            "/reload": lambda _body: _answer(self.reload),
            "/change": lambda body: self._operate(self._operations.change, body),
            "/drain": lambda body: self._operate(self._operations.drain, body),
            "/undrain": lambda body: self._operate(self._operations.undrain, body),
            "/confirm": lambda body: self._operate(self._operations.confirm, body),
        }

    def _declared_groups(self) -> list[str] | None:
        """The addresses of the groups that are desired; None if another controller is active."""
        if not self.state.leads and self.status.role is not None:
            return None
        return addresses(group.number for group in self.state.desired.plan.multicast)

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
                self._operations.read_again(0)
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
            log_desired(new)
            parts = {"added": list(difference.added), "removed": list(difference.removed)}
            for what, names in parts.items():
                if names:
                    _LOG.info("%s: %s", what, ", ".join(names))
            self._operations.change_to(new)
            return self._reloaded("changed", switches=list(difference.switches), **parts)

    def grow(self, fabric: Fabric) -> None:
        """Write a larger fabric to the file of the fabric, and reload; raises as :meth:`reload`."""
        settings, path = self._state_file.config, self._path
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

    def _grow_by(self, explorer: Explorer) -> None:
        """Reload with what is found besides the fabric."""
        for fabric in explorer.findings():
            try:
                self.grow(fabric)
            except KnotlessError as error:
                explorer.refuse(error)
            except Exception:  # noqa: BLE001 - what is found later may do
                _LOG.exception("what was found is not used")

    def _reread(self) -> tuple[Difference, DesiredState]:
        """Return what a new configuration changes, without changing it."""
        old, before = self.state.desired, self._state_file
        settings = config.read(self._path) if self._path else before.config
        for key in _FIXED_KEYS:
            if getattr(settings, key) != getattr(before.config, key):
                raise KnotlessError(
                    f"{self._path}: {key}: it changes only when the controller restarts"
                )
        fabric = config.load_fabric(settings, self._path)
        kept = before.overrides.current(settings, fabric)
        new = runtime.in_thread(
            DesiredState.compute, kept.applied_to(settings), fabric, kept.drained
        )
        difference = Difference.between(old, new)
        if difference.fabric:
            try:
                self._require_plan(new)
            except KnotlessError as error:
                raise error.within("fabric").within(str(self._path)) from error
        if not difference.nothing:
            self._operations.begin(new)
        before.reconfigure(settings, kept)
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
            waiting = ", ".join(sorted(update.progress.waiting)) or "older rules"
            raise KnotlessError(
                f"a change of routes goes on and waits for {waiting}; reload again when routes in"
                " GET /status is settled"
            )
        runtime.in_thread(plan_update, task)

    def _reloaded(self, result: str, **fields: object) -> dict[str, Any]:
        self.reporter.metrics.reloads.labels(result).inc()
        self.reporter.tell("reload", result=result, **fields)
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
                self.reporter.tell("problem", text=line)
            for line in sorted(reported - now):
                _LOG.info("solved: %s", line)
                self.reporter.tell("solved", text=line)
            reported = now
            runtime.sleep(_WATCH_S)


def log_desired(desired: DesiredState) -> None:
    """Log what is to be installed."""
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
