"""A change that has begun and is not complete, kept in a file beside the ``state_file``.

A controller that starts again in the middle of a change finds the rules in the switches, but not
what exists besides its own fabric: switches and links of the former fabric may still hold rules
and packets. So this is written before the first rule of a change is sent, and removed when all of
its steps are complete and the packets of older rules have left. Of several controllers, which share
the file, those on standby learn from it what exists; at the end it stays, marked as complete.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from knotless.base.errors import FabricError
from knotless.base.files import MAX_BYTES, read_text, reason, write_whole
from knotless.base.flow_control import FlowControl
from knotless.base.yaml_file import complaint
from knotless.controller.config import ConfigError
from knotless.controller.existing import Existing
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats.files import from_json, to_json


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    fabric: dict[str, Any]
    staying: list[str] | None
    flow_control: FlowControl
    complete: bool = False


@dataclass(frozen=True)
class Begun:
    """What exists since a change has begun, and the flow control that its links use."""

    existing: Existing
    flow_control: FlowControl


class Unfinished:
    """The file ``path``; None: nothing is kept. ``shared``: other controllers read it as well."""

    def __init__(self, path: Path | None = None, *, shared: bool = False) -> None:
        self.path, self._shared = path, shared
        self._is_kept = path is not None and path.exists()

    @staticmethod
    def beside(state_file: Path | None, *, shared: bool = False) -> Unfinished:
        """Return the one beside a state file: ``state.json``, ``state-change.json``."""
        if state_file is None:
            return Unfinished()
        return Unfinished(state_file.with_stem(f"{state_file.stem}-change"), shared=shared)

    def read(self) -> Begun | None:
        """Return the change that was not completed, if there is one.

        Raises
        ------
        ConfigError
            The file is damaged; the message names it.

        """
        found = self._read()
        if found is None or found[1]:
            return None
        self._is_kept = True
        return found[0]

    def completed(self) -> Fabric | None:
        """Return the fabric of the last change, if it is complete; raises as :meth:`read`."""
        found = self._read()
        return found[0].existing.fabric if found is not None and found[1] else None

    def _read(self) -> tuple[Begun, bool] | None:
        """Return what the file says, and whether the change is complete."""
        if self.path is None or not self.path.exists():
            return None
        try:
            found = _File.model_validate_json(read_text(self.path, ConfigError, MAX_BYTES))
            fabric = from_json(found.fabric, united=True)
        except ValidationError as error:
            raise ConfigError(f"{self.path}: {complaint(error)}") from error
        except FabricError as error:
            raise ConfigError(f"{self.path}: {error}") from error
        unknown = set(found.staying or ()) - fabric.host_index.keys()
        if unknown:
            raise ConfigError(f"{self.path}: staying: there is no host {min(unknown)!r}")
        staying = None if found.staying is None else frozenset(found.staying)
        return Begun(Existing(fabric, staying=staying), found.flow_control), found.complete

    def begin(self, begun: Begun) -> None:
        """Keep a change, before anything of it is sent; raises ConfigError."""
        self._write(begun, complete=False)
        self._is_kept = True

    def _write(self, begun: Begun, *, complete: bool) -> None:
        if self.path is None:
            return
        existing = begun.existing
        found = {
            "fabric": to_json(existing.fabric),
            "staying": None if existing.staying is None else sorted(existing.staying),
            "flow_control": begun.flow_control,
            "complete": complete,
        }
        write_whole(self.path, json.dumps(found) + "\n", ConfigError)

    def end(self, begun: Begun) -> None:
        """Remove the file: the change is complete, and this is left; raises ConfigError."""
        if self.path is None or not self._is_kept:
            return
        self._is_kept = False
        if self._shared:
            self._write(begun, complete=True)
            return
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise ConfigError(f"{self.path}: cannot be removed: {reason(error)}") from error
