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

from knotless.base.suggestions import suggestion

if TYPE_CHECKING:
    from knotless.base.errors import KnotlessError
    from knotless.fabric import fabric, running
    from knotless.frames import frame
    from knotless.notebook import (
        Plan,
        Verdict,
        advise,
        analyse,
        check,
        compile,
        draw,
        load,
        plan,
        simulate,
    )
    from knotless.sessions import session
    from knotless.snapshots import snapshot
    from knotless.topologies.formats.graphs import from_networkx, to_networkx

    __version__: str

__all__ = ["KnotlessError", "Plan", "Verdict", "advise", "analyse", "check", "compile", "draw"]
__all__ += ["fabric", "frame", "from_networkx", "load", "plan", "running", "simulate"]
__all__ += ["session", "snapshot", "to_networkx"]
_ELSEWHERE = {
    "KnotlessError": "knotless.base.errors",
    "fabric": "knotless.fabric",
    "running": "knotless.fabric",
    "session": "knotless.sessions",
    "snapshot": "knotless.snapshots",
    "frame": "knotless.frames",
    "from_networkx": "knotless.topologies.formats.graphs",
    "to_networkx": "knotless.topologies.formats.graphs",
}


def __getattr__(name: str) -> Any:
    """Import a function on first use, by default from :mod:`knotless.notebook`."""
    if name in __all__:
        return getattr(import_module(_ELSEWHERE.get(name, "knotless.notebook")), name)
    if name == "__version__":
        from knotless.base.package import version

        return version()
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"knotless has no {name!r}; {suggestion(name, __all__)}")


def __dir__() -> list[str]:
    """Return the functions for notebooks."""
    return __all__
