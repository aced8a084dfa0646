"""An import hook that gives ``eventlet.wsgi`` the name that Ryu 4.34 wants of it.

eventlet 0.30.3 took ``ALREADY_HANDLED`` away; earlier ones do not run on Python 3.11. Ryu's
``ryu.app.wsgi`` imports it and returns it as the body of a response whose socket a web
socket has already used. A body is iterated, so an empty tuple says 'nothing more to send'.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder

TYPE_CHECKING = False  # typing would make every start of Python slower
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

MODULE = "eventlet.wsgi"


class AlreadyHandledFinder:
    """Finds ``eventlet.wsgi`` where it is, and completes it after it has been executed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of ``eventlet.wsgi``, and nothing for any other module."""
        if fullname != MODULE:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            if not hasattr(module, "ALREADY_HANDLED"):
                module.ALREADY_HANDLED = ()  # type: ignore[attr-defined]

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def install() -> None:
    """Put the hook first in line, once."""
    if not any(isinstance(finder, AlreadyHandledFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, AlreadyHandledFinder())
