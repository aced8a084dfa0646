"""Plug-ins: the modules of a package are the list of what there is.

A new topology family, routing engine, traffic pattern, experiment or command is one new module;
nothing else names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, TypeVar


class Named(Protocol):
    """What has a name of its own."""

    @property
    def name(self) -> str:
        """The name that users write."""


Plugin = TypeVar("Plugin", bound=Named)


def module_names(package: str) -> list[str]:
    """Return the names of a package's modules and subpackages in alphabetical order.

    Those that begin with an underscore are helpers, and left out. Imports the package but none
    of its modules.
    """
    found = iter_modules(import_module(package).__path__)
    return sorted(module.name for module in found if not module.name.startswith("_"))


def plugins(package: str, kind: type[Plugin]) -> Mapping[str, Plugin]:
    """Return each ``kind`` that a module of ``package`` holds, by its name, in order of the names.

    Imports all modules of the package.
    """
    found: dict[str, Plugin] = {}
    for module in module_names(package):
        values = vars(import_module(f"{package}.{module}")).values()
        found.update({value.name: value for value in values if isinstance(value, kind)})
    return dict(sorted(found.items()))
