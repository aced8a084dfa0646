"""Another name of :mod:`knotless_experiments`, for programs written before it had its own root.

It goes with the release after next.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_OLD, _NEW = __name__, "knotless_experiments"


class _Alias(MetaPathFinder, Loader):
    """Has ``knotless.experiments.x`` be the module ``knotless_experiments.x``, not a second one."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return that this class loads a module whose name begins with the old one."""
        del path, target
        return ModuleSpec(name, self) if name.startswith(f"{_OLD}.") else None

    def exec_module(self, module: ModuleType) -> None:
        """Have the name stand for the module that has it now."""
        name = module.__name__
        sys.modules[name] = import_module(name.replace(_OLD, _NEW, 1))


sys.meta_path.insert(0, _Alias())
sys.modules[_OLD] = import_module(_NEW)
