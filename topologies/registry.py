"""The registry of families: every :class:`Family` in the modules of ``topologies.families``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from common.plugins import plugins
from topologies.family import Family


@cache
def families() -> Mapping[str, Family]:
    """Return the families by name, in alphabetical order."""
    return plugins("topologies.families", Family)
