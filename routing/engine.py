"""What a routing engine is given, what it returns, and where the engines are found.

A new engine is one new module of ``routing.engines`` that holds an :class:`Engine`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, cached_property
from importlib import import_module
from pkgutil import iter_modules
from typing import Literal, get_args

import numpy as np

import routing.engines
from common.errors import PlanError
from routing.graphs.channels import Channels, Ints
from routing.routes import Routes
from topologies.fabric import Fabric

Selection = Literal["spread", "low-port"]
SELECTIONS: tuple[Selection, ...] = get_args(Selection)
MAX_VCS = 8


@dataclass(frozen=True)
class Task:
    """What an engine is to route.

    ``vcs`` is how many virtual channels it may use (None: as many as it likes), ``select``
    one of :data:`SELECTIONS`, ``root`` the index of the root switch where one was told.
    """

    fabric: Fabric
    channels: Channels
    vcs: int | None
    select: str
    root: int | None

    @property
    def tree_root(self) -> int:
        """The root switch of engines that need one: the first unless told."""
        return self.root or 0

    @cached_property
    def host_switches(self) -> Ints:
        """The switch index of each host, in the order of the hosts."""
        index = self.fabric.switch_index
        return np.array([index[host.switch] for host in self.fabric.hosts], dtype=np.int32)

    @cached_property
    def host_ranks(self) -> Ints:
        """Each host's place (from 0) among the hosts of its switch, by port."""
        at = self.host_switches
        ports = np.array([host.port for host in self.fabric.hosts])
        order = np.lexsort((ports, at))
        first = np.searchsorted(at[order], at)
        place = np.zeros(len(at), dtype=np.int32)
        place[order] = np.arange(len(at), dtype=np.int32)
        return (place - first).astype(np.int32)

    @cached_property
    def ranks(self) -> int:
        """The most hosts that a switch has."""
        return int(self.receivers.max())

    @cached_property
    def receivers(self) -> Ints:
        """How many hosts each switch has."""
        counts = np.bincount(self.host_switches, minlength=len(self.channels.names))
        return counts.astype(np.int32)


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
    found: dict[str, Engine] = {}
    for module in iter_modules(routing.engines.__path__):
        values = vars(import_module(f"routing.engines.{module.name}")).values()
        found.update({value.name: value for value in values if isinstance(value, Engine)})
    return dict(sorted(found.items()))


def engine_named(name: str) -> Engine:
    """Return the engine called ``name``; PlanError when there is none."""
    known = engines()
    if name in known:
        return known[name]
    close = get_close_matches(name.lower()[:50], known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
    raise PlanError(f"no routing engine is called {name[:50]!r}; {hint}")
