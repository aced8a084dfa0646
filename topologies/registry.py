"""Finds every family: each :class:`Family` that a module of ``topologies.families`` holds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from common.plugins import plugins
from topologies.family import Family


@cache
def families() -> Mapping[str, Family]:
    """Return the families by name, in the order of their names."""
    return plugins("topologies.families", Family)
