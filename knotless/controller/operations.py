"""Requests of operators over HTTP: to change the plan, to drain parts, to use them again.

Each request is answered with the proven steps to it. Unless it only asks for them, it is then kept
in the state file and performed. A request that is refused changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from knotless.base.complaints import complaint
from knotless.base.errors import KnotlessError, PlanError
from knotless.base.http_rules import HttpError, json_object
from knotless.controller import runtime
from knotless.controller.desired import DesiredState
from knotless.controller.overrides import Overrides, StateFile
from knotless.controller.updates.fabric_state import FabricState
from knotless.controller.updates.journal import BegunUpdate, UpdateJournal
from knotless.controller.updates.planning import UpdateTask, plan_update
from knotless.topologies.drained import avoided
from knotless.verification.changes.record import described, step_files

Body = TypeVar("Body", bound=BaseModel)


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


@dataclass(frozen=True, kw_only=True)
class Operations:
    """Performs what operators request, one request at a time.

    Attributes
    ----------
    state : what is known of the fabric.
    state_file : what operators have requested before.
    journal : where an update is kept until it is complete.
    change_to : makes a new desired state the goal.
    read_again : reads the switches that were read longer ago, in seconds, and has them repaired;
        raises KnotlessError if one does not hold its rules then.

    """

    state: FabricState
    state_file: StateFile
    journal: UpdateJournal
    change_to: Callable[[DesiredState], None]
    read_again: Callable[[float], None]

    def change(self, body: bytes) -> dict[str, Any]:
        """Change to other options of the plan; those that are not given are as configured."""
        asked = _parsed(_ChangeRequest, body)
        options = asked.options
        if options:
            options.setdefault("flow_control", self.state.desired.plan.flow_control)
        kept = self.state_file
        return self._request(kept.overrides.with_options(kept.config, options), asked)

    def drain(self, body: bytes) -> dict[str, Any]:
        """Have the routes leave links and switches."""
        asked, fabric = _parsed(_PartsRequest, body), self.state.desired.fabric
        before = self.state_file.overrides
        new = before.with_drained(fabric, asked.parts)
        failures = self.state.update.goal.failures
        needed_before = avoided(fabric, failures, before.drained).needed
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
        before, fabric = self.state_file.overrides, self.state.desired.fabric
        return self._request(before.without_drained(fabric, asked.parts), asked)

    def _request(
        self, overrides: Overrides, asked: _ChangeRequest | _PartsRequest
    ) -> dict[str, Any]:
        with self.state.planning.timed("the last request", runtime.now_s, is_request=True):
            # What is proven is proven of what is known of switches.
            self.read_again(self.state_file.config.reread_interval_s)
            desired = self._desired(overrides)
            task = self.state.update.task_to(desired)
            if task is None:
                raise HttpError(
                    HTTPStatus.CONFLICT,
                    "a change of routes goes on: wait until GET /status is settled",
                )
            ages_s = self.state.observed.read_ages_s(runtime.now_s())
            answer = runtime.in_thread(_steps, task, asked.rules)
            answer["certificate"]["read_age_s"] = ages_s
        if not asked.dry_run:
            self._perform(desired, overrides)
        return {"performed": not asked.dry_run, "drained": list(overrides.drained), **answer}

    def begin(self, desired: DesiredState) -> None:
        """Keep that an update begins, before anything of it is sent; raises KnotlessError."""
        update = self.state.update
        if self.state.leads:
            union = update.union.extended(desired.fabric)
            self.journal.begin(BegunUpdate(union, update.flow_control))

    def _perform(self, desired: DesiredState, overrides: Overrides) -> None:
        """Keep what was requested, then change to it; raises KnotlessError."""
        self.begin(desired)
        self.state_file.keep(overrides)
        self.change_to(desired)

    def confirm(self, body: bytes) -> dict[str, Any]:
        """Confirm what is in force, although the state file was damaged; it is written anew."""
        _parsed(_NoFields, body)
        overrides = self.state_file.overrides
        self._perform(self.state.desired, overrides)
        return {"drained": list(overrides.drained), "options": dict(overrides.options)}

    def _desired(self, overrides: Overrides) -> DesiredState:
        """Compute the desired state; the links keep the flow control that they have."""
        old = self.state.desired
        in_use = old.plan.flow_control
        config = overrides.applied_to(self.state_file.config)
        if config.flow_control not in ("auto", in_use):
            raise PlanError(
                f"flow_control: the links use {in_use}, which does not change while they carry"
                " frames"
            )
        config = config.model_copy(update={"flow_control": in_use})
        return runtime.in_thread(DesiredState.compute, config, old.fabric, overrides.drained)


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
