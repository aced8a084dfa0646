"""Values of options that were renamed: still accepted, with a warning."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

_LOG = logging.getLogger("knotless")


@dataclass(frozen=True)
class DeprecatedValues:
    """The deprecated values of one option.

    Attributes
    ----------
    option : the option's name in messages, such as ``flow control``.
    current : the current value for each deprecated one.

    """

    option: str
    current: Mapping[str, str]

    def normalised(self, value: object) -> object:
        """Return the current value for a stored one; any other value unchanged."""
        return self.current.get(value, value) if isinstance(value, str) else value

    def accepted(self, value: object) -> object:
        """Return the current value for one given by a user; log a warning if it is deprecated."""
        if isinstance(value, str) and value in self.current:
            _warn_once(self.option, value, self.current[value])
        return self.normalised(value)


@cache
def _warn_once(option: str, value: str, current: str) -> None:
    _LOG.warning("%s %r is deprecated: write %r", option, value, current)
