"""Routes of a fat-tree in which frames bounce where a link has failed.

A switch that lacks the link down to the next switch of a path sends the frame to another switch
below, which sends it up to another switch that still has its link. The other switches keep their
routes, as they do until a routing protocol has converged, or where local repair is all there is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from knotless.routing.given_paths import Path, with_paths
from knotless.routing.graphs.channels import Channels, Ints, Priorities
from knotless.routing.graphs.task import Task
from knotless.routing.graphs.tree_levels import levels
from knotless.routing.plan import Plan
from knotless.routing.repair import failed_channels

REPAIRED, BOUNCED, TAGGED = "repaired", "bounced", "tagged"
ROUTES = (REPAIRED, BOUNCED, TAGGED)


@dataclass(frozen=True)
class _Tree:
    """The channels that work, and the level of each switch, 0 at the hosts."""

    channels: Channels
    level: list[int]
    failed: frozenset[int]
    between: dict[tuple[int, int], int]

    def cyclic(self, after: int) -> list[int]:
        """Return the switches of the same level, from the next one round to the one before."""
        same = [s for s, level in enumerate(self.level) if level == self.level[after]]
        place = same.index(after)
        return [*same[place + 1 :], *same[:place]]

    def detour(self, above: int, below: int, avoided: set[int], turn: int) -> list[int] | None:
        """Return the channels of a bounce from a switch to one below, to which its link failed.

        Over another switch below and another one above that still has its link. Of all that the
        path does not pass anyway, the ``turn``-th is taken, modulo their number, in the order of
        the switches from ``below`` and ``above`` on; None if there are none.
        """
        detours = []
        for other_below in self.cyclic(below):
            for other_above in self.cyclic(above):
                steps = [(above, other_below), (other_below, other_above), (other_above, below)]
                if not {other_below, other_above} & avoided and all(
                    step in self.between for step in steps
                ):
                    detours.append([self.between[step] for step in steps])
        return detours[turn % len(detours)] if detours else None


def bounced_plan(intact: Plan, repaired: Plan, *, tagged: bool) -> Plan:
    """Return the plan in which frames bounce at failed links.

    Paths whose link up has failed, and those for which there is no bounce, are those of
    ``repaired``, as are broadcasts. Sources and destinations take turns in where they bounce. A
    frame has priority 0, or with ``tagged`` the number of times that it has gone up again.
    """
    channels, failures = intact.channels, repaired.failures
    task = Task(intact.fabric, channels, vcs=None, select="spread", root=None)
    level = levels(task)
    rises = level[channels.head] > level[channels.tail]
    failed = frozenset(np.flatnonzero(failed_channels(intact, failures)).tolist())
    ends = zip(channels.tail.tolist(), channels.head.tolist(), strict=True)
    between = {end: c for c, end in reversed([*enumerate(ends)]) if c not in failed}
    tree = _Tree(channels, level.tolist(), failed, between)
    paths: dict[tuple[int, int], Path] = {}
    for row in range(len(intact.pair_vlans)):
        for to in np.flatnonzero(intact.receivers).tolist():
            own = [channel for channel, _ in intact.routes.path(row, to)]
            path = _bounced(tree, own, row + to)
            if path is None:
                path = [channel for channel, _ in repaired.routes.path(row, to)]
            paths[row, to] = _with_priorities(path, rises) if tagged else [(c, 0) for c in path]
    plan = replace(with_paths(repaired, paths), request=intact.settled_request())
    if not tagged:
        return plan
    priorities = _of_trees(channels, plan.routes.tree_channels, rises)
    return replace(plan, routes=replace(plan.routes, tree_priorities=priorities))


def _bounced(tree: _Tree, path: list[int], turn: int) -> list[int] | None:
    """Return a path with its bounces; None if it must be another one."""
    tail, head = tree.channels.tail, tree.channels.head
    passed = {int(switch) for channel in path for switch in (tail[channel], head[channel])}
    hops: list[int] = []
    for channel in path:
        if channel not in tree.failed:
            hops.append(channel)
            continue
        above, below = int(tail[channel]), int(head[channel])
        goes_down = tree.level[above] > tree.level[below]
        detour = tree.detour(above, below, passed, turn) if goes_down else None
        if detour is None:
            return None
        hops += detour
        passed |= {int(head[step]) for step in detour}
    return hops


def _with_priorities(path: list[int], rises: NDArray[np.bool_]) -> Path:
    """Return the channels of a path, each with the number of times that it has gone up again."""
    hops: list[tuple[int, int]] = []
    for place, channel in enumerate(path):
        turns = place > 0 and bool(rises[channel]) and not rises[path[place - 1]]
        hops.append((channel, hops[-1][1] + turns if hops else 0))
    return hops


def _of_trees(channels: Channels, trees: Ints, rises: NDArray[np.bool_]) -> Priorities:
    """Return the priorities of broadcast trees, by the same rule."""
    priorities = np.zeros(trees.shape, dtype=np.uint8)
    for source, entered in enumerate(trees.tolist()):
        for switch in range(len(entered)):
            path, here = list[int](), switch
            while here != source and entered[here] >= 0:
                path.insert(0, entered[here])
                here = int(channels.tail[path[0]])
            if path:
                priorities[source, switch] = _with_priorities(path, rises)[-1][1]
    return priorities
