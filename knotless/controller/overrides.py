"""What operators have changed while the controller ran: options of the plan, and drained parts.

It is kept in a file beside the configuration, so that a controller that starts again, or another
one with the same files, computes the same rules.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from knotless.base.errors import KnotlessError
from knotless.base.files import read_text, write_whole
from knotless.base.yaml_file import complaint
from knotless.controller.config import Config, ConfigError
from knotless.topologies.fabric import Fabric
from knotless.topologies.failures import Failures

_MAX_BYTES = 1 << 20


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    options: dict[str, Any] = {}
    configured: dict[str, Any] = {}
    drained: list[str] = []


@dataclass(frozen=True)
class Overrides:
    """What differs from the configuration.

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
        known = [name for name in self.drained if _is_part(fabric, name)]
        if self.configured == _plan_options(config):
            return replace(self, drained=tuple(known))
        return Overrides(drained=tuple(known))

    def with_options(self, config: Config, options: Mapping[str, Any]) -> Overrides:
        """Return them with other options; none: the plan is that of the configuration.

        Raises PlanError if an option is unknown or its value is invalid.
        """
        config.plan_request.but(**options)
        configured = _plan_options(config) if options else {}
        return replace(self, options=dict(options), configured=configured)

    def with_drained(self, fabric: Fabric, names: Iterable[str]) -> Overrides:
        """Return them with these parts drained as well; raises FabricError for unknown names."""
        return replace(self, drained=Failures.of(fabric, {*self.drained, *names}).names)

    def without_drained(self, fabric: Fabric, names: Iterable[str]) -> Overrides:
        """Return them without these parts.

        Raises KnotlessError if one does not exist or is not drained.
        """
        gone: set[str] = set()
        for name in names:
            parts = set(Failures.of(fabric, [name]).names)
            if not parts <= set(self.drained):
                drained = ", ".join(self.drained) or "nothing"
                raise KnotlessError(f"{name} is not drained; drained is {drained}")
            gone |= parts
        return replace(self, drained=tuple(name for name in self.drained if name not in gone))

    def save(self, path: Path) -> None:
        """Write them to a file; raises KnotlessError."""
        found = {
            "options": self.options,
            "configured": self.configured,
            "drained": list(self.drained),
        }
        write_whole(path, json.dumps(found, indent=1) + "\n")


def read(path: Path) -> Overrides:
    """Read overrides; without such a file there are none. Raises ConfigError naming the file."""
    if not path.exists():
        return Overrides()
    try:
        found = _File.model_validate_json(read_text(path, ConfigError, _MAX_BYTES))
    except ValidationError as error:
        raise ConfigError(f"{path}: {complaint(error)}; delete the file to do without") from error
    return Overrides(found.options, found.configured, tuple(found.drained))


def _plan_options(config: Config) -> dict[str, Any]:
    """Return the options of the plan as JSON holds them."""
    found: dict[str, Any] = json.loads(config.plan_request.model_dump_json())
    return found


def _is_part(fabric: Fabric, name: str) -> bool:
    try:
        return bool(Failures.of(fabric, [name]))
    except KnotlessError:
        return False
