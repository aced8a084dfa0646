"""What a routing engine is given, what it returns, and where the engines are found.

A new engine is one new module of ``routing.engines`` that holds an :class:`Engine`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

from common.errors import PlanError
from common.plugins import plugins
from routing.graphs.task import Task
from routing.routes import Routes


@dataclass(frozen=True)
class Engine:
    """A routing engine: ``route`` must be deterministic, its ties broken by a stated rule."""

    name: str
    summary: str
    route: Callable[[Task], Routes]
    has_root: bool = False


@cache
def engines() -> Mapping[str, Engine]:
    """Return the engines by name, in the order of their names."""
    return plugins("routing.engines", Engine)


def engine_named(name: str) -> Engine:
    """Return the engine called ``name``; PlanError when there is none."""
    known = engines()
    if name in known:
        return known[name]
    close = get_close_matches(name.lower()[:50], known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
    raise PlanError(f"no routing engine is called {name[:50]!r}; {hint}")
