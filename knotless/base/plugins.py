"""Plug-ins, found by listing the modules of a package.

To add a topology family, routing engine, traffic pattern or experiment, add one module; no other
module needs to change. CONTRIBUTING.md lists the tests and pages that go with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, TypeVar


class Named(Protocol):
    """An object with a name."""

    @property
    def name(self) -> str:
        """The name by which users select it."""


Plugin = TypeVar("Plugin", bound=Named)


def module_names(package: str) -> list[str]:
    """Return the names of a package's modules and subpackages in alphabetical order.

    Modules whose names start with an underscore are helpers and are omitted. The package is
    imported, its modules are not.
    """
    modules = iter_modules(import_module(package).__path__)
    return sorted(module.name for module in modules if not module.name.startswith("_"))


def plugins(package: str, kind: type[Plugin]) -> Mapping[str, Plugin]:
    """Return the ``kind`` objects in the modules of ``package`` by name, in alphabetical order.

    All modules of the package are imported.
    """
    by_name: dict[str, Plugin] = {}
    for module in module_names(package):
        values = vars(import_module(f"{package}.{module}")).values()
        by_name.update({value.name: value for value in values if isinstance(value, kind)})
    return dict(sorted(by_name.items()))
