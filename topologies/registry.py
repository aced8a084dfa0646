"""Finds every family: each :class:`Family` that a module of ``topologies.families`` holds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

import topologies.families
from topologies.family import Family


@cache
def families() -> Mapping[str, Family]:
    """Return the families by name, in the order of their names."""
    found: dict[str, Family] = {}
    for module in iter_modules(topologies.families.__path__):
        values = vars(import_module(f"topologies.families.{module.name}")).values()
        found.update({value.name: value for value in values if isinstance(value, Family)})
    return dict(sorted(found.items()))
