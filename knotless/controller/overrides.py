"""The state file: what operators have changed, kept for the next controller."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from knotless.base.complaints import complaint
from knotless.base.errors import KnotlessError
from knotless.controller import runtime
from knotless.controller.config import Config, ConfigError
from knotless.controller.desired import DesiredState
from knotless.controller.updates.fabric_state import FabricState
from knotless.topologies.fabric import Fabric
from knotless.topologies.failures import Failures

_MAX_BYTES = 1 << 20
_STATE_FILE = "what operators have requested before"
_REQUESTS = "what operators have requested"
_LOG = logging.getLogger("knotless.roles")


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
        """Write them to a file; raises KnotlessError.

        What it replaces is kept as :func:`file_before`, or as :func:`damaged_file` if nobody can
        read it.
        """
        content = {
            "options": self.options,
            "configured": self.configured,
            "drained": list(self.drained),
        }
        runtime.keep(path, json.dumps(content, indent=1) + "\n", aside=_place_aside(path))


def file_before(path: Path) -> Path:
    """Return where the state file before the last request is: ``state-before.json``."""
    return path.with_stem(f"{path.stem}-before")


def damaged_file(path: Path) -> Path:
    """Return where a damaged state file is kept when it is replaced: ``state-damaged.json``."""
    return path.with_stem(f"{path.stem}-damaged")


def _place_aside(path: Path) -> Path:
    try:
        read_overrides(path)
    except ConfigError:
        return damaged_file(path)
    return file_before(path)


def recovered_overrides(path: Path) -> tuple[Overrides | None, str | None]:
    """Return the overrides in a state file, and what is wrong with it; None: nothing is.

    If it is damaged they are those before the last request; None if nobody knows those either.
    """
    try:
        return read_overrides(path), None
    except ConfigError as error:
        damage = str(error)
    before = file_before(path)
    try:
        return (read_overrides(before) if runtime.is_kept(before) else None), damage
    except ConfigError:
        return None, damage


def read_overrides(path: Path) -> Overrides:
    """Read overrides; without such a file there are none. Raises ConfigError naming the file."""
    text = runtime.read_kept(path, ConfigError, _MAX_BYTES)
    if text is None:
        return Overrides()
    try:
        content = _File.model_validate_json(text)
    except ValidationError as error:
        raise ConfigError(f"{path}: {complaint(error)}") from error
    return Overrides(content.options, content.configured, tuple(content.drained))


def _plan_options(config: Config) -> dict[str, Any]:
    """Return the options of the plan as JSON holds them."""
    options: dict[str, Any] = config.as_settings()
    return options


def _is_part(fabric: Fabric, name: str) -> bool:
    try:
        return bool(Failures.from_names(fabric, [name]))
    except KnotlessError:
        return False


@dataclass(kw_only=True)
class StateFile:
    """The requests of operators, and the file that keeps them.

    Attributes
    ----------
    config : the configuration as its file says, without ``overrides``.
    overrides : what operators have changed.
    state : what is known of the fabric.
    path : the file; None: what was changed ends with the controller.

    """

    config: Config
    overrides: Overrides
    state: FabricState
    path: Path | None
    _damage: str | None = field(default=None, init=False)
    """What was wrong with the file at the start, until somebody requests something."""

    def reconfigure(self, config: Config, overrides: Overrides) -> None:
        """Take another configuration, and what still applies of the overrides."""
        if self.path is not None and overrides != self.overrides:
            overrides.save(self.path)
        self.config, self.overrides = config, overrides

    def keep(self, overrides: Overrides) -> None:
        """Take what was requested, once it is kept; raises KnotlessError."""
        if self.path is not None:
            overrides.save(self.path)
        self.overrides = overrides
        self.see_damage(None)

    def follow(self) -> None:
        """Take what operators have changed through another controller."""
        if self.path is None:
            return
        config, fabric = self.config, self.state.desired.fabric
        try:
            kept = read_overrides(self.path).current(config, fabric)
            is_new = kept != self.overrides
            if is_new:
                new = runtime.in_thread(
                    DesiredState.compute, kept.applied_to(config), fabric, kept.drained
                )
        except KnotlessError as error:
            self.see_damage(str(error))
            return
        self.see_damage(None)
        if is_new:
            self.overrides = kept
            self.state.replace(new)

    # --- a file that is damaged --------------------------------------------------------------

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

    def see_damage(self, damage: str | None) -> None:
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

    def mend(self) -> None:
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
            self.see_damage(None)

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
