"""The rules that switches were last known to hold, kept beside the state file.

A controller that starts again may miss a switch that goes on forwarding. It cannot read its rules,
but steps of the others must close no cycle together with them. So the rules that each switch has
confirmed are kept in a file, written when no update goes on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from knotless.base.complaints import complaint
from knotless.base.errors import RuleError
from knotless.controller import runtime
from knotless.controller.config import ConfigError
from knotless.forwarding.openflow.ofctl_parser import parse
from knotless.forwarding.openflow.ofctl_writer import write
from knotless.forwarding.openflow.rules import SwitchRules

_MAX_BYTES = 1 << 28
"""A hundred thousand rules have 20 MB."""
_FILE = TypeAdapter(dict[str, tuple[str, str]])
"""By name of a switch: its rules and its groups, as ``ovs-ofctl`` writes them."""


class LastRules:
    """The file ``path``; None: nothing is kept."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._kept: dict[str, SwitchRules] | None = None

    @staticmethod
    def beside(state_file: Path | None) -> LastRules:
        """Return those that are kept beside a state file: ``state.json``, ``state-rules.json``."""
        if state_file is None:
            return LastRules()
        return LastRules(state_file.with_stem(f"{state_file.stem}-rules"))

    @property
    def is_kept(self) -> bool:
        """Whether there is a file."""
        return self._path is not None

    def read(self) -> Mapping[str, SwitchRules]:
        """Return the rules by name of the switch; raises ConfigError naming the file."""
        text = (
            None if self._path is None else runtime.read_kept(self._path, ConfigError, _MAX_BYTES)
        )
        if text is None:
            return {}
        try:
            content = _FILE.validate_json(text)
            return {name: parse(*texts) for name, texts in content.items()}
        except ValidationError as error:
            what = f"{complaint(error)}; delete the file to do without"
            raise ConfigError(f"{self._path}: {what}") from error
        except RuleError as error:
            raise ConfigError(f"{self._path}: {error}; delete the file to do without") from error

    def keep(self, rules: Mapping[str, SwitchRules]) -> None:
        """Keep what these switches hold; others keep what they had. Raises ConfigError.

        It takes seconds for many rules, and is for a thread of its own.
        """
        if self._path is None:
            return
        if self._kept is None:
            try:
                self._kept = dict(self.read())
            except ConfigError:
                self._kept = {}  # it is replaced
        after = {**self._kept, **rules}
        if after == self._kept:
            return
        # Each part alone: others wait while a text is encoded.
        parts = (f"{json.dumps(name)}: {json.dumps(write(held))}" for name, held in after.items())
        runtime.keep(self._path, "{" + ",\n".join(parts) + "}\n", ConfigError)
        self._kept = after
