"""The `knotless` command, and the same functions for notebooks: ``import knotless as kn``.

``kn.load("torus,4,4")`` returns a fabric, ``kn.plan(fabric)`` its routes, and so on; see
:mod:`knotless.notebook`. Each name is imported when it is used, so that the command starts quickly.

Examples
--------
>>> import knotless as kn
>>> kn.plan("ring,4", engine="dor", vcs=1, select="low-port").cycle
['s1:2/0', 's2:2/0', 's3:2/0', 's4:2/0']
>>> kn.plan("ring,4", engine="updown").acyclic
True

"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from knotless.notebook import advise, analyse, check, compile, draw, load, plan, simulate

__all__ = ["advise", "analyse", "check", "compile", "draw", "load", "plan", "simulate"]


def __getattr__(name: str) -> Any:
    """Import a function of :mod:`knotless.notebook` on first use."""
    if name in __all__:
        return getattr(import_module("knotless.notebook"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the functions for notebooks."""
    return __all__
