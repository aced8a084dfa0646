"""The registry of families: every :class:`Family` in the modules of ``topologies.families``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from knotless.base.plugins import plugins
from knotless.topologies.family import Family


@cache
def families() -> Mapping[str, Family]:
    """Return the families by name, in alphabetical order."""
    return plugins("knotless.topologies.families", Family)
