"""What operators request over HTTP: a change of the plan, to drain parts, to use them again.

Each request is answered with the proven steps to it. Unless it only asks for them, it is then kept
in the state file and performed. A request that is refused changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from knotless.base.errors import KnotlessError, PlanError
from knotless.base.yaml_file import complaint
from knotless.controller.config import Config
from knotless.controller.desired import Desired
from knotless.controller.northbound.message import HttpError
from knotless.controller.overrides import Overrides
from knotless.controller.planning import Task, planned
from knotless.controller.status import Status
from knotless.topologies.drained import avoided
from knotless.verification.changes.certificate import described, step_files

Body = TypeVar("Body", bound=BaseModel)
Execute = Callable[..., Any]
"""Calls a function with arguments while switches are served."""


class _Asked(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)

    dry_run: bool = False
    rules: bool = False

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.__pydantic_extra__ or {})


class _Parts(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    parts: list[str]
    dry_run: bool = False
    rules: bool = False


@dataclass
class Operations:
    """Performs what operators request, one request at a time.

    ``config`` is the configuration as its file says, without ``overrides``. ``begin`` keeps that a
    change to a new desired state begins, and ``change_to`` makes it the goal.
    """

    config: Config
    overrides: Overrides
    status: Status
    path: Path | None
    execute: Execute
    begin: Callable[[Desired], None] = lambda _desired: None
    change_to: Callable[[Desired], None] = field(init=False)

    def reconfigure(self, config: Config, overrides: Overrides) -> None:
        """Take another configuration, and what still applies of the overrides."""
        if self.path is not None and overrides != self.overrides:
            overrides.save(self.path)
        self.config, self.overrides = config, overrides

    def change(self, body: bytes) -> dict[str, Any]:
        """Change to other options of the plan; those that are not given are as configured."""
        asked = _parsed(_Asked, body)
        options = asked.options
        if options:
            options.setdefault("flow_control", self.status.desired.plan.flow_control)
        return self._request(self.overrides.with_options(self.config, options), asked)

    def drain(self, body: bytes) -> dict[str, Any]:
        """Have the routes leave links and switches."""
        asked, fabric = _parsed(_Parts, body), self.status.desired.fabric
        new = self.overrides.with_drained(fabric, asked.parts)
        failures = self.status.transition.goal.failures
        known = avoided(fabric, failures, self.overrides.drained).needed
        needed = [
            name for name in avoided(fabric, failures, new.drained).needed if name not in known
        ]
        if needed:
            raise KnotlessError(
                f"{', '.join(asked.parts)} cannot be drained: some hosts could not reach each other"
                f" without {', '.join(needed)}"
            )
        return self._request(new, asked)

    def undrain(self, body: bytes) -> dict[str, Any]:
        """Have the routes use links and switches again."""
        asked = _parsed(_Parts, body)
        fabric = self.status.desired.fabric
        return self._request(self.overrides.without_drained(fabric, asked.parts), asked)

    def _request(self, overrides: Overrides, asked: _Asked | _Parts) -> dict[str, Any]:
        desired = self._desired(overrides)
        task = self.status.transition.task_to(desired)
        if task is None:
            raise HttpError(
                HTTPStatus.CONFLICT, "a change of routes goes on: wait until GET /status is settled"
            )
        answer: dict[str, Any] = self.execute(_steps, task, asked.rules)
        if not asked.dry_run:
            self.begin(desired)
            if self.path is not None:
                overrides.save(self.path)
            self.overrides = overrides
            self.change_to(desired)
        return {"performed": not asked.dry_run, "drained": list(overrides.drained), **answer}

    def _desired(self, overrides: Overrides) -> Desired:
        """Compute the desired state; the links keep the flow control that they have."""
        old = self.status.desired
        in_use = old.plan.flow_control
        config = overrides.applied_to(self.config)
        if config.flow_control not in ("auto", in_use):
            raise PlanError(
                f"flow_control: the links use {in_use}, which does not change while they carry"
                " frames"
            )
        config = config.model_copy(update={"flow_control": in_use})
        found: Desired = self.execute(Desired.compute, config, old.fabric, overrides.drained)
        return found


def _steps(task: Task, with_rules: bool) -> dict[str, Any]:
    """Return the proven steps of a task, as the answer to a request has them."""
    found = planned(task)
    files = {"files": step_files(found.change)} if with_rules else {}
    return {"repair": found.kind, **described(found.change), **files}


def _parsed(model: type[Body], body: bytes) -> Body:
    """Return the body of a request; raises HttpError if it does not have this form."""
    try:
        content = json.loads(body or b"{}")
        if not isinstance(content, Mapping):
            raise HttpError(HTTPStatus.BAD_REQUEST, "the body must be a JSON object")
        return model.model_validate(content)
    except ValidationError as error:
        raise HttpError(HTTPStatus.BAD_REQUEST, complaint(error)) from error
    except (ValueError, RecursionError) as error:
        raise HttpError(HTTPStatus.BAD_REQUEST, "the body is not JSON") from error
