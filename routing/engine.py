"""What a routing engine is given, what it returns, and where the engines are found.

A new engine is one new module of ``routing.engines`` that holds an :class:`Engine`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TypeVar

import numpy as np

import routing.engines
from routing.channels import Channels, Ints, Priorities
from topologies.errors import PlanError
from topologies.fabric import Fabric

SELECTIONS = ("spread", "low-port")
MAX_VCS = 8


@dataclass(frozen=True)
class Task:
    """What an engine is to route.

    ``vcs`` is how many virtual channels it may use (None: as many as it likes), ``select``
    one of :data:`SELECTIONS`, ``root`` the index of the root switch where it has one.
    """

    fabric: Fabric
    channels: Channels
    vcs: int | None
    select: str
    root: int

    @property
    def host_switches(self) -> list[int]:
        """The switch index of each host, in the order of the hosts."""
        index = self.fabric.switch_index
        return [index[host.switch] for host in self.fabric.hosts]

    @property
    def host_ranks(self) -> list[int]:
        """Each host's place (from 0) among the hosts of its switch, by port."""
        ranks = {
            host.name: rank
            for at in self.fabric.hosts_at.values()
            for rank, host in enumerate(at.values())
        }
        return [ranks[host.name] for host in self.fabric.hosts]


@dataclass(frozen=True)
class Routes:
    """One path for each source host and destination switch, and a broadcast tree a switch.

    Hosts with the same paths share a row. A path never depends on which host of its
    destination switch it goes to, so rules can be aggregated by switch.

    rows : (hosts,) the row of each source host.
    channels : (rows, switches, longest) the channels of the path to each switch, then -1.
    priorities : same shape, the priority (virtual channel) of each of those channels.
    tree_channels : (switches, switches) entry [u, v] is the channel by which a broadcast
        of a host on switch u enters switch v; -1 where it does not.
    tree_priorities : same shape, the priority of that channel.
    """

    rows: Ints
    channels: Ints
    priorities: Priorities
    tree_channels: Ints
    tree_priorities: Priorities


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


Key = TypeVar("Key", bound=Hashable)


def rows_of(keys: Sequence[Key]) -> tuple[Ints, list[Key]]:
    """Give each distinct key a row, in order of first use: (row of each key, key of each row)."""
    rows = {key: row for row, key in enumerate(dict.fromkeys(keys))}
    return np.array([rows[key] for key in keys], dtype=np.int32), list(rows)
