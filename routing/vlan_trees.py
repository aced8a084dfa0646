"""VLANs whose links form no loop, as ordinary Ethernet switches need them.

References
----------
Otsuka, Koibuchi, Kudoh, Amano: VLAN routing with switch tagging, section 3.1: one tree for the
paths from each switch; identical trees are merged. Here trees are merged when together they
still have no loop, which identical ones never have, so no more VLANs are needed.

"""

from __future__ import annotations

import numpy as np

from routing.channels import Channels, Ints
from topologies.errors import PlanError


def assign_trees(channels: Channels, paths: Ints, by_pair: bool, limit: int) -> Ints:
    """Return (rows, switches): the number from 0 on of each path's VLAN, -1 where there is none.

    ``paths`` are as in :func:`routing.vlan.assign_vlans`. A row takes the first VLAN in which
    its links close no loop, a new one if need be; ``by_pair``, a row that fits into none of
    those that there are is split, and each of its paths takes the first one.

    Raises
    ------
    PlanError
        The paths of one row close a loop, and not ``by_pair``.
    OverflowError
        More than ``limit`` VLANs would be needed.

    """
    link_of = np.minimum(np.arange(len(channels), dtype=np.int32), channels.reverse)
    forests: list[Forest] = []
    numbers = np.full(paths.shape[:2], -1, dtype=np.int32)
    known: dict[bytes, int] = {}

    def place(links: Ints, may_open: bool) -> int:
        """Return the first forest that takes the links, or a new one if it may be; else -1."""
        key = links.tobytes()
        if key not in known:
            number = next((n for n, forest in enumerate(forests) if forest.take(links)), -1)
            fresh = Forest(channels)
            if number < 0 and may_open and fresh.take(links):
                number = len(forests)
                forests.append(fresh)
                if number == limit:
                    raise OverflowError
            known[key] = number
        return known[key]

    for row in range(len(paths)):
        path: Ints = paths[row]
        to = np.flatnonzero((path >= 0).any(axis=1))
        number = place(np.unique(link_of[path[path >= 0]]), not by_pair)
        if number >= 0:
            numbers[row, to] = number
        elif by_pair:
            for d in to.tolist():
                numbers[row, d] = place(np.unique(link_of[path[d][path[d] >= 0]]), True)
        else:
            raise _loop(channels, link_of, path)
    return numbers


class Forest:
    """The links of one VLAN, among which there is no loop; a link is one of its two channels."""

    def __init__(self, channels: Channels) -> None:
        self._tail, self._head = channels.tail, channels.head
        self._has = np.zeros(len(channels), dtype=bool)
        self._part = np.arange(len(channels.names))
        """Of each switch, the part of the forest in which it is: a number equal in all of it."""

    def take(self, links: Ints) -> bool:
        """Add the links, unless they would close a loop: then change nothing."""
        fresh = links[~self._has[links]]
        ends = zip(
            self._part[self._tail[fresh]].tolist(),
            self._part[self._head[fresh]].tolist(),
            strict=True,
        )
        joined: dict[int, int] = {}
        for a, b in ends:
            a, b = _root(joined, a), _root(joined, b)
            if a == b:
                return False
            joined[b] = a
        self._has[fresh] = True
        if joined:
            renamed = np.arange(len(self._part))
            for part in joined:
                renamed[part] = _root(joined, part)
            self._part = renamed[self._part]
        return True


def _root(joined: dict[int, int], part: int) -> int:
    while part in joined:
        part = joined[part]
    return part


def _loop(channels: Channels, link_of: Ints, path: Ints) -> PlanError:
    """Return the complaint about a row whose paths close a loop, naming where they meet again."""
    names = channels.names
    entered: dict[int, tuple[int, int]] = {}
    where = ""
    for d in range(len(path)):
        for c in path[d][path[d] >= 0].tolist():
            head = int(channels.head[c])
            link, first = entered.setdefault(head, (int(link_of[c]), d))
            if link != link_of[c] and not where:
                where = f": those to {names[first]} and {names[d]} enter {names[head]} differently"
    source = names[channels.tail[path[path[:, 0] >= 0][0, 0]]]
    return PlanError(
        f"tree VLANs: the paths from {source} close a loop{where}; try --select low-port, or"
        " --tagging host, which puts each path into a VLAN by itself"
    )
