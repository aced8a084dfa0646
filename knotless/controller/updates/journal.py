"""Records of updates: in a file the one that is not complete, in memory the last ones.

A controller that starts again in the middle of an update finds the rules in the switches, but not
what exists besides its own fabric: switches and links of the former fabric may still hold rules and
packets. So a file beside the ``state_file`` is written before the first rule of an update is sent,
and removed when all of its steps are complete and the packets of older rules have left. Of several
controllers, which share the file, those on standby learn from it what exists; at the end it stays,
marked as complete.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from knotless.base.complaints import complaint
from knotless.base.errors import FabricError
from knotless.base.files import MAX_BYTES
from knotless.base.flow_control import FlowControl
from knotless.controller import runtime
from knotless.controller.config import ConfigError
from knotless.controller.updates.planning import FabricUnion, UpdatePlan
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats.files import from_json, to_json
from knotless.verification.changes.record import change_record


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    fabric: dict[str, Any]
    staying: list[str] | None
    flow_control: FlowControl
    complete: bool = False


@dataclass(frozen=True)
class BegunUpdate:
    """Everything that exists since an update has begun, and the flow control of the links."""

    union: FabricUnion
    flow_control: FlowControl


class UpdateJournal:
    """The file ``path``; None: nothing is kept. ``shared``: other controllers read it as well."""

    def __init__(self, path: Path | None = None, *, shared: bool = False) -> None:
        self.path, self._shared = path, shared
        self._is_kept = path is not None and runtime.is_kept(path)

    @staticmethod
    def beside(state_file: Path | None, *, shared: bool = False) -> UpdateJournal:
        """Return the one beside a state file: ``state.json``, ``state-change.json``."""
        if state_file is None:
            return UpdateJournal()
        return UpdateJournal(state_file.with_stem(f"{state_file.stem}-change"), shared=shared)

    def read(self) -> BegunUpdate | None:
        """Return the change that was not completed, if there is one.

        Raises
        ------
        ConfigError
            The file is damaged; the message names it.

        """
        kept = self._read()
        if kept is None or kept[1]:
            return None
        self._is_kept = True
        return kept[0]

    def completed(self) -> Fabric | None:
        """Return the fabric of the last change, if it is complete; raises as :meth:`read`."""
        kept = self._read()
        return kept[0].union.fabric if kept is not None and kept[1] else None

    def _read(self) -> tuple[BegunUpdate, bool] | None:
        """Return what the file says, and whether the change is complete."""
        text = None if self.path is None else runtime.read_kept(self.path, ConfigError, MAX_BYTES)
        if text is None:
            return None
        try:
            content = _File.model_validate_json(text)
            fabric = from_json(content.fabric, united=True)
        except ValidationError as error:
            raise ConfigError(f"{self.path}: {complaint(error)}") from error
        except FabricError as error:
            raise ConfigError(f"{self.path}: {error}") from error
        unknown = set(content.staying or ()) - fabric.host_index.keys()
        if unknown:
            raise ConfigError(f"{self.path}: staying: there is no host {min(unknown)!r}")
        staying = None if content.staying is None else frozenset(content.staying)
        return BegunUpdate(
            FabricUnion(fabric, staying=staying), content.flow_control
        ), content.complete

    def begin(self, begun: BegunUpdate) -> None:
        """Keep a change, before anything of it is sent; raises ConfigError."""
        self._write(begun, complete=False)
        self._is_kept = True

    def _write(self, begun: BegunUpdate, *, complete: bool) -> None:
        if self.path is None:
            return
        union = begun.union
        content = {
            "fabric": to_json(union.fabric),
            "staying": None if union.staying is None else sorted(union.staying),
            "flow_control": begun.flow_control,
            "complete": complete,
        }
        runtime.keep(self.path, json.dumps(content) + "\n", ConfigError)

    def end(self, begun: BegunUpdate) -> None:
        """Remove the file: the change is complete, and this is left; raises ConfigError."""
        if self.path is None or not self._is_kept:
            return
        if self._shared:
            self._write(begun, complete=True)
        else:
            runtime.remove_kept(self.path, ConfigError)
        self._is_kept = False


# --- history ----------------------------------------------------------------------------------

Execute = Callable[[Callable[[Any], dict[str, object]], Any], dict[str, object]]

_OF_LAST = ("time", "failed", "drained", "repair", "tier", "rules_changed", "seconds")
_MAX_WAITING = 16
"""Changes that may wait for their records: each of them holds all rules of its steps."""


class History:
    """The last ``size`` updates, oldest first; ``clock`` is the time of day in seconds.

    ``dropped_s`` of an entry is the time in which frames of some pairs were dropped at admission:
    by its steps, or by those of updates that were given up for it. ``down_s`` is the time until all
    of ``down_pairs`` were served again, since their failure was noticed.

    An entry says when each switch confirmed each step, and has the record of the proofs. That
    takes time to compute: :meth:`complete_record` does it.
    """

    def __init__(self, size: int, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._entries: deque[dict[str, Any]] = deque(maxlen=size)
        self._waiting: deque[tuple[dict[str, Any], UpdatePlan, dict[str, Any]]] = deque()
        self._confirmed: dict[int, dict[str, float]] = {}
        self._dropped_s = self._down_s = 0.0
        self._count = 0

    def confirmed(self, switch: str, step: int) -> None:
        """Record that a switch holds the rules of a step, by the number of all steps so far."""
        self._confirmed.setdefault(step, {})[switch] = round(self._clock(), 6)

    def dropped(self, seconds: float) -> None:
        """Record for how long frames of some pairs were dropped for the update that goes on."""
        self._dropped_s += seconds

    def served(self, seconds: float) -> None:
        """Record for how long some pairs of hosts were down until the update that goes on."""
        self._down_s += seconds

    def add(
        self,
        plan: UpdatePlan,
        last_step: int,
        seconds: float,
        stretch: float | None = None,
        read_ages_s: Mapping[str, float | None] | None = None,
    ) -> None:
        """Add a change that all switches have confirmed; ``last_step`` is that of its last step.

        ``seconds`` are real; ``stretch`` is real over virtual time of emulated links meanwhile.
        ``read_ages_s`` say how long before the change each switch had been read.
        """
        self._count += 1
        change = plan.change
        first = last_step - len(change.steps) + 1
        entry: dict[str, Any] = {
            "number": self._count,
            "time": round(self._clock(), 6),
            "engine": plan.goal.desired.plan.engine,
            "failed": list(plan.goal.failures.names),
            "drained": list(plan.goal.desired.drained),
            "repair": plan.kind,
            "tier": change.tier,
            "rules_changed": plan.rules_changed,
            "dropped_pairs": change.count(change.dropped),
            "dropped_s": round(self._dropped_s, 6),
            "down_pairs": change.down[0] if change.down else 0,
            "down_until_step": change.served_by_step,
            "down_s": round(self._down_s, 6),
            "seconds": round(seconds, 6),
            "stretch": stretch,
            "confirmed": [self._confirmed.get(step, {}) for step in range(first, last_step + 1)],
            "certificate": None,
        }
        self._confirmed, self._dropped_s, self._down_s = {}, 0.0, 0.0
        self._entries.append(entry)
        self._waiting.append((entry, plan, dict(read_ages_s or {})))
        if len(self._waiting) > _MAX_WAITING:
            self._waiting.popleft()

    def complete_record(self, execute: Execute) -> bool:
        """Compute the oldest record that is missing; return whether there was one."""
        if not self._waiting:
            return False
        entry, plan, ages_s = self._waiting.popleft()
        entry["certificate"] = {**execute(change_record, plan.change), "read_age_s": ages_s}
        return True

    def last(self) -> dict[str, object] | None:
        """Return what ``GET /status`` shows of the last change; None: there was none."""
        return {key: self._entries[-1][key] for key in _OF_LAST} if self._entries else None

    def as_json(self) -> dict[str, object]:
        """Return the answer to ``GET /changes``."""
        return {"count": self._count, "changes": list(self._entries)}
