"""Requests of operators over HTTP: to change the plan, to drain parts, to use them again.

Each request is answered with the proven steps to it. Unless it only asks for them, it is then kept
in the state file and performed. A request that is refused changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
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
from knotless.controller.overrides import Overrides, read_overrides
from knotless.controller.updates.fabric_state import FabricState
from knotless.controller.updates.planning import UpdateTask, plan_update
from knotless.topologies.drained import avoided
from knotless.verification.changes.certificate import described, step_files

_LOG = logging.getLogger("knotless.roles")
_STATE_FILE = "what operators have requested before"
_REQUESTS = "what operators have requested"
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


class _NoFields(BaseModel):
    model_config = ConfigDict(extra="forbid")


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
    _damage: str | None = field(default=None, init=False)
    """What was wrong with the state file at the start, until somebody requests something."""

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
            self._perform(desired, overrides)
        return {"performed": not asked.dry_run, "drained": list(overrides.drained), **answer}

    def _perform(self, desired: DesiredState, overrides: Overrides) -> None:
        """Keep what was requested, then change to it; raises KnotlessError."""
        self.begin(desired)
        if self.path is not None:
            overrides.save(self.path)
        self.overrides = overrides
        self.see_state_file(None)
        self.change_to(desired)

    # --- a state file that is damaged --------------------------------------------------------

    def recover(self, damage: str, *, is_known: bool) -> None:
        """Take note that the state file was damaged at the start.

        ``is_known``: the overrides are those before the last request; else nobody knows them.
        """
        self.state.is_unconfirmed, self._damage = not is_known, damage
        self._report_damage()

    def adopt(self, desired: DesiredState) -> None:
        """Take the drained parts that the rules of switches tell."""
        self.overrides = Overrides(drained=desired.drained)
        self.state.replace(desired)
        self._report_damage()

    def confirm(self, body: bytes) -> dict[str, Any]:
        """Confirm what is in force, although the state file was damaged; it is written anew."""
        _parsed(_NoFields, body)
        self._perform(self.state.desired, self.overrides)
        return {"drained": list(self.overrides.drained), "options": dict(self.overrides.options)}

    def see_state_file(self, damage: str | None) -> None:
        """Take note that the state file is damaged now; None: it is not."""
        if damage is None:
            self._damage = None
            self.state.is_unconfirmed = False
            self.state.file_problems.pop(_STATE_FILE, None)
        elif self._damage is None:
            self.state.file_problems[_STATE_FILE] = (
                "the state file is damaged, and what other controllers accept is not known:"
                f" {damage}"
            )

    def mend_state_file(self) -> None:
        """Write the state file again if it is damaged, and what it should hold is known here."""
        if self.path is None or self._damage is not None:
            return
        with self.state.keeping(_REQUESTS):
            try:
                read_overrides(self.path)
            except ConfigError as error:
                self.overrides.save(self.path)
                _LOG.warning("the state file was damaged, and is written again: %s", error)
        if _REQUESTS not in self.state.file_problems:
            self.see_state_file(None)

    def _report_damage(self) -> None:
        drained = ", ".join(self.overrides.drained) or "nothing"
        if self.state.is_unconfirmed:
            line = (
                "the state file is damaged, and there is none before it; drained, by the rules of"
                f" the switches: {drained}; only repairs are made until 'knotless controller"
                f" confirm' (POST /confirm), or a change, drain or undrain: {self._damage}"
            )
        else:
            line = (
                "the state file is damaged, and the one before the last request is used; drained:"
                f" {drained}; request again what is missing, or confirm it by 'knotless controller"
                f" confirm' (POST /confirm): {self._damage}"
            )
        self.state.file_problems[_STATE_FILE] = line

    # --- what is to be -----------------------------------------------------------------------

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
