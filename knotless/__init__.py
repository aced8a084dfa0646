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
    from knotless.fabric import fabric, running
    from knotless.frames import frame
    from knotless.notebook import advise, analyse, check, compile, draw, load, plan, simulate
    from knotless.topologies.formats.graphs import from_networkx, to_networkx

__all__ = ["advise", "analyse", "check", "compile", "draw", "fabric", "frame", "from_networkx"]
__all__ += ["load", "plan", "running", "simulate", "to_networkx"]
_ELSEWHERE = {
    "fabric": "knotless.fabric",
    "running": "knotless.fabric",
    "frame": "knotless.frames",
    "from_networkx": "knotless.topologies.formats.graphs",
    "to_networkx": "knotless.topologies.formats.graphs",
}


def __getattr__(name: str) -> Any:
    """Import a function on first use, by default from :mod:`knotless.notebook`."""
    if name in __all__:
        return getattr(import_module(_ELSEWHERE.get(name, "knotless.notebook")), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the functions for notebooks."""
    return __all__
