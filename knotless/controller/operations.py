"""Requests of operators over HTTP: to change the plan, to drain parts, to use them again.

Each request is answered with the proven steps to it. Unless it only asks for them, it is then kept
in the state file and performed. A request that is refused changes nothing.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from knotless.base.errors import KnotlessError, PlanError
from knotless.base.http_rules import HttpError, json_object
from knotless.base.yaml_file import complaint
from knotless.controller import runtime
from knotless.controller.config import Config, ConfigError
from knotless.controller.desired import DesiredState
from knotless.controller.election.election import Election, Times
from knotless.controller.updates.fabric_state import FabricState
from knotless.controller.updates.journal import UpdateJournal
from knotless.controller.updates.planning import UpdateTask, plan_update
from knotless.topologies.drained import avoided
from knotless.topologies.fabric import Fabric
from knotless.topologies.failures import Failures
from knotless.topologies.union import removed
from knotless.verification.changes.certificate import described, step_files

_LOG = logging.getLogger("knotless.roles")
_WATCH_S = 1.0
_MAX_BYTES = 1 << 20
Body = TypeVar("Body", bound=BaseModel)
Execute = Callable[..., Any]
"""Calls a function with arguments while switches are served."""


class _ChangeRequest(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)

    dry_run: bool = False
    rules: bool = False

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.__pydantic_extra__ or {})


class _PartsRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    parts: list[str]
    dry_run: bool = False
    rules: bool = False


@dataclass(kw_only=True)
class Operations:
    """Performs what operators request, one request at a time.

    Attributes
    ----------
    config : the configuration as its file says, without ``overrides``.
    overrides : what operators have changed.
    state : what is known of the fabric.
    path : the state file, in which changes are kept; None: they end with the controller.
    execute : calls a function that can take long, while switches are served.
    begin : keeps that an update to a new desired state begins.
    change_to : makes a new desired state the goal.
    read_again : reads the switches that were read longer ago, in seconds, and has them repaired;
        raises KnotlessError if one does not hold its rules then.

    """

    config: Config
    overrides: Overrides
    state: FabricState
    path: Path | None
    execute: Execute
    begin: Callable[[DesiredState], None] = lambda _desired: None
    change_to: Callable[[DesiredState], None] = field(init=False)
    read_again: Callable[[float], None] = lambda _max_age_s: None

    def reconfigure(self, config: Config, overrides: Overrides) -> None:
        """Take another configuration, and what still applies of the overrides."""
        if self.path is not None and overrides != self.overrides:
            overrides.save(self.path)
        self.config, self.overrides = config, overrides

    def change(self, body: bytes) -> dict[str, Any]:
        """Change to other options of the plan; those that are not given are as configured."""
        asked = _parsed(_ChangeRequest, body)
        options = asked.options
        if options:
            options.setdefault("flow_control", self.state.desired.plan.flow_control)
        return self._request(self.overrides.with_options(self.config, options), asked)

    def drain(self, body: bytes) -> dict[str, Any]:
        """Have the routes leave links and switches."""
        asked, fabric = _parsed(_PartsRequest, body), self.state.desired.fabric
        new = self.overrides.with_drained(fabric, asked.parts)
        failures = self.state.update.goal.failures
        needed_before = avoided(fabric, failures, self.overrides.drained).needed
        needed = [
            name
            for name in avoided(fabric, failures, new.drained).needed
            if name not in needed_before
        ]
        if needed:
            raise KnotlessError(
                f"{', '.join(asked.parts)} cannot be drained: some hosts could not reach each other"
                f" without {', '.join(needed)}"
            )
        return self._request(new, asked)

    def undrain(self, body: bytes) -> dict[str, Any]:
        """Have the routes use links and switches again."""
        asked = _parsed(_PartsRequest, body)
        fabric = self.state.desired.fabric
        return self._request(self.overrides.without_drained(fabric, asked.parts), asked)

    def _request(
        self, overrides: Overrides, asked: _ChangeRequest | _PartsRequest
    ) -> dict[str, Any]:
        with self.state.planning.timed("the last request", runtime.now_s, is_request=True):
            # What is proven is proven of what is known of switches.
            self.read_again(self.config.reread_interval_s)
            desired = self._desired(overrides)
            task = self.state.update.task_to(desired)
            if task is None:
                raise HttpError(
                    HTTPStatus.CONFLICT,
                    "a change of routes goes on: wait until GET /status is settled",
                )
            ages_s = self.state.observed.read_ages_s(runtime.now_s())
            answer: dict[str, Any] = self.execute(_steps, task, asked.rules)
            answer["certificate"]["read_age_s"] = ages_s
        if not asked.dry_run:
            self.begin(desired)
            if self.path is not None:
                overrides.save(self.path)
            self.overrides = overrides
            self.change_to(desired)
        return {"performed": not asked.dry_run, "drained": list(overrides.drained), **answer}

    def _desired(self, overrides: Overrides) -> DesiredState:
        """Compute the desired state; the links keep the flow control that they have."""
        old = self.state.desired
        in_use = old.plan.flow_control
        config = overrides.applied_to(self.config)
        if config.flow_control not in ("auto", in_use):
            raise PlanError(
                f"flow_control: the links use {in_use}, which does not change while they carry"
                " frames"
            )
        config = config.model_copy(update={"flow_control": in_use})
        desired: DesiredState = self.execute(
            DesiredState.compute, config, old.fabric, overrides.drained
        )
        return desired


def _steps(task: UpdateTask, with_rules: bool) -> dict[str, Any]:
    """Return the proven steps of a task, as the answer to a request has them."""
    plan = plan_update(task)
    files = {"files": step_files(plan.change)} if with_rules else {}
    return {"repair": plan.kind, **described(plan.change), **files}


def _parsed(model: type[Body], body: bytes) -> Body:
    """Return the body of a request; raises HttpError if it does not have this form."""
    try:
        return model.model_validate(json_object(body))
    except ValidationError as error:
        raise HttpError(HTTPStatus.BAD_REQUEST, complaint(error)) from error


# --- what is kept -----------------------------------------------------------------------------


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    options: dict[str, Any] = {}
    configured: dict[str, Any] = {}
    drained: list[str] = []


@dataclass(frozen=True)
class Overrides:
    """Differences from the configuration, made by operators.

    ``options`` replace those of the plan in the configuration as long as these are what they were
    when the options were changed, ``configured``: the edited file wins. ``drained`` are the links
    and switches that routes avoid, by name.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    configured: Mapping[str, Any] = field(default_factory=dict)
    drained: tuple[str, ...] = ()

    def applied_to(self, config: Config) -> Config:
        """Return the configuration with these options; raises KnotlessError if one is invalid."""
        if not self.options or self.configured != _plan_options(config):
            return config
        request = config.plan_request.but(**self.options)
        return config.model_copy(update={key: getattr(request, key) for key in self.options})

    def current(self, config: Config, fabric: Fabric) -> Overrides:
        """Return these overrides without what no longer applies to the configuration."""
        drained = tuple(name for name in self.drained if _is_part(fabric, name))
        if self.configured == _plan_options(config):
            return replace(self, drained=drained)
        return Overrides(drained=drained)

    def with_options(self, config: Config, options: Mapping[str, Any]) -> Overrides:
        """Return them with other options; none: the plan is that of the configuration.

        Raises PlanError if an option is unknown or its value is invalid.
        """
        config.plan_request.but(**options)
        configured = _plan_options(config) if options else {}
        return replace(self, options=dict(options), configured=configured)

    def with_drained(self, fabric: Fabric, names: Iterable[str]) -> Overrides:
        """Return them with these parts drained as well; raises FabricError for unknown names."""
        return replace(self, drained=Failures.from_names(fabric, {*self.drained, *names}).names)

    def without_drained(self, fabric: Fabric, names: Iterable[str]) -> Overrides:
        """Return them without these parts.

        Raises KnotlessError if one does not exist or is not drained.
        """
        gone: set[str] = set()
        for name in names:
            parts = set(Failures.from_names(fabric, [name]).names)
            if not parts <= set(self.drained):
                drained = ", ".join(self.drained) or "nothing"
                raise KnotlessError(f"{name} is not drained; drained is {drained}")
            gone |= parts
        return replace(self, drained=tuple(name for name in self.drained if name not in gone))

    def save(self, path: Path) -> None:
        """Write them to a file; raises KnotlessError."""
        content = {
            "options": self.options,
            "configured": self.configured,
            "drained": list(self.drained),
        }
        runtime.keep(path, json.dumps(content, indent=1) + "\n")


def read_overrides(path: Path) -> Overrides:
    """Read overrides; without such a file there are none. Raises ConfigError naming the file."""
    text = runtime.read_kept(path, ConfigError, _MAX_BYTES)
    if text is None:
        return Overrides()
    try:
        content = _File.model_validate_json(text)
    except ValidationError as error:
        raise ConfigError(f"{path}: {complaint(error)}; delete the file to do without") from error
    return Overrides(content.options, content.configured, tuple(content.drained))


def _plan_options(config: Config) -> dict[str, Any]:
    """Return the options of the plan as JSON holds them."""
    options: dict[str, Any] = json.loads(config.plan_request.model_dump_json())
    return options


def _is_part(fabric: Fabric, name: str) -> bool:
    try:
        return bool(Failures.from_names(fabric, [name]))
    except KnotlessError:
        return False


# --- several controllers ----------------------------------------------------------------------


class HaPeers:
    """One of the ``controllers`` of a configuration, or the only one.

    Parameters
    ----------
    state : what is known of the fabric.
    operations : what operators have requested here.
    compute : computes a desired state while switches are served.
    journal : where the active controller keeps what exists during an update.
    show_role : shows the role of this controller.

    """

    withdraw: Callable[[], None]
    """Forgets what a fabric had before it changed; to be set before :meth:`watch`."""

    def __init__(
        self,
        *,
        state: FabricState,
        operations: Operations,
        compute: Callable[[Config, Fabric, tuple[str, ...]], DesiredState],
        journal: UpdateJournal,
        show_role: Callable[[Callable[[], dict[str, object] | None]], None],
    ) -> None:
        self._state, self._operations, self._compute = state, operations, compute
        self._journal, self._show_role = journal, show_role

    def election(self, number: int) -> Election:
        """Return the election in which this controller takes part."""
        addresses = self._operations.config.controllers
        dpids = frozenset(self._state.observed.switches)
        election = Election(number, len(addresses), dpids, Times.for_switches(len(dpids)))

        def role() -> dict[str, object]:
            """Return what ``GET /status`` shows; ``active`` may be another one, or unknown."""
            state, active = election.state, election.active
            is_peer = active is not None and active < len(addresses)
            return {
                "state": "reading" if state == "active" and not self._state.leads else state,
                "controller": addresses[number],
                "active": addresses[active] if active is not None and is_peer else None,
                "term": election.term,
                "controllers": list(addresses),
            }

        self._show_role(role)
        return election

    def require_active(self, role: Mapping[str, object] | None) -> None:
        """Raise HttpError if another controller is to be asked for changes."""
        if self._state.leads:
            return
        if role is None:
            interrupted = "a change that was interrupted goes on: wait until GET /status is settled"
            reading = "the rules of all switches are read first: wait until GET /status is ready"
            raise HttpError(
                HTTPStatus.CONFLICT, interrupted if self._state.is_interrupted else reading
            )
        active = role.get("active")
        where = f"the active one is {active}" if active else "none is active yet"
        raise HttpError(
            HTTPStatus.SERVICE_UNAVAILABLE,
            f"this controller is on standby and changes nothing; {where}",
        )

    def follow_operators(self) -> None:
        """Take what operators have changed through another controller, from the state file."""
        path, operations = self._operations.path, self._operations
        if path is None:
            return
        fabric = self._state.desired.fabric
        try:
            kept = read_overrides(path).current(operations.config, fabric)
            if kept == operations.overrides:
                return
            new = self._compute(kept.applied_to(operations.config), fabric, kept.drained)
        except KnotlessError as error:
            _LOG.error("changes made through another controller are not followed: %s", error)
            return
        operations.overrides = kept
        self._state.replace(new)

    def follow_fabric(self) -> None:
        """Forget what the fabric had before an update that the active controller has completed."""
        if self._state.update.union.staying is None:
            return
        fabric = self._state.desired.fabric
        try:
            reached = self._journal.completed()
        except KnotlessError as error:
            _LOG.error("changes of the fabric are not followed: %s", error)
            return
        if reached is not None and not (removed(reached, fabric) or removed(fabric, reached)):
            self.withdraw()

    def watch(self) -> None:
        """Stay up to date while another controller is active, so that a takeover is quick."""
        while True:
            if not self._state.leads:
                self.follow_operators()
                self.follow_fabric()
            runtime.sleep(_WATCH_S)
