"""Plug-ins, found by listing the modules of a package.

To add a topology family, routing engine, traffic pattern or experiment, add one module; no other
module needs to change. CONTRIBUTING.md lists the tests and pages that go with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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


class Plugins(Mapping[str, Plugin]):
    """The ``kind`` objects in the modules of a package by name, in alphabetical order.

    One that is asked for by name is searched in the module of this name first, so that a command
    imports the family and the engine that it uses, and not all of them.
    """

    def __init__(self, package: str, kind: type[Plugin]) -> None:
        self._package, self._kind = package, kind
        self._modules = module_names(package)
        self._all: dict[str, Plugin] | None = None

    def __getitem__(self, name: str) -> Plugin:
        if self._all is None and name in self._modules:
            plugin = self._of_module(name).get(name)
            if plugin is not None:
                return plugin
        return self._by_name()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name())

    def __len__(self) -> int:
        return len(self._by_name())

    def _by_name(self) -> dict[str, Plugin]:
        if self._all is None:
            by_name: dict[str, Plugin] = {}
            for module in self._modules:
                by_name.update(self._of_module(module))
            self._all = dict(sorted(by_name.items()))
        return self._all

    def _of_module(self, name: str) -> dict[str, Plugin]:
        values = vars(import_module(f"{self._package}.{name}")).values()
        return {value.name: value for value in values if isinstance(value, self._kind)}
