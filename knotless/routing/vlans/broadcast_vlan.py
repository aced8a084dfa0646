"""VLANs for broadcasts, if hosts tag and VLANs are trees.

Ordinary switches flood a broadcast in its VLAN, so the links of that VLAN must connect all
switches with hosts. VLANs of single paths may not. A flood also occupies channels while it waits
for others, so the VLAN is chosen such that these dependencies close no cycle with those of the
paths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knotless.routing.graphs.channels import Channels, Ints
from knotless.routing.graphs.dependencies import find_cycle

Links = tuple[int, ...]
"""Links, each as the lower of its two channels, in ascending order."""


class BroadcastVlans(NamedTuple):
    """The broadcast VLAN of each row, and the links of each broadcast VLAN."""

    of_row: Ints
    links: Mapping[int, Links]


def broadcast_vlans(
    channels: Channels, paths: Ints, vlans: Ints, trees: Ints, row_switch: Ints
) -> BroadcastVlans:
    """Return the VLANs for broadcasts: one that paths use, or new ones with higher numbers.

    One VLAN serves all hosts if possible: the first that spans the fabric and adds no cycle of
    channel dependencies. VLANs of the paths are tried first, then those of ``trees``, in the
    order of their sources. If each of them would close a cycle, every tree gets its own VLAN; the
    plan has been checked with these trees. If the paths themselves have a cycle, the first VLAN
    that spans the fabric is taken.

    paths : (rows, switches, longest) channels, then -1.
    vlans : (rows, switches) the VLAN of each path.
    trees : (switches, switches) the plan's broadcast trees, see
        :mod:`knotless.routing.graphs.spanning_tree`.
    row_switch : (rows,) the switch of each row's hosts.
    """
    before, after = paths[:, :, :-1], paths[:, :, 1:]
    is_turn = after >= 0
    unicast = set(zip(before[is_turn].tolist(), after[is_turn].tolist(), strict=True))
    has_host = np.zeros(len(trees), dtype=np.bool_)
    has_host[row_switch] = True
    of_tree = {s: _links(channels, trees[s]) for s in np.flatnonzero(has_host).tolist()}
    last = int(vlans.max())
    candidates = [*_spanning(channels, paths, vlans, has_host)]
    candidates += [(last + 1, links) for links in of_tree.values()]
    if find_cycle(unicast):
        return _one_for_all(candidates[0], row_switch)
    for vlan, links in candidates:
        if not find_cycle(unicast | _turns(channels, links)):
            return _one_for_all((vlan, links), row_switch)
    distinct = enumerate(dict.fromkeys(of_tree.values()), last + 1)
    number = {links: vlan for vlan, links in distinct}
    of_row = [number[of_tree[switch]] for switch in row_switch.tolist()]
    return BroadcastVlans(np.array(of_row, dtype=np.int32), {v: ls for ls, v in number.items()})


def _one_for_all(chosen: tuple[int, Links], row_switch: Ints) -> BroadcastVlans:
    return BroadcastVlans(np.full_like(row_switch, chosen[0]), dict([chosen]))


def _links(channels: Channels, used: Ints) -> Links:
    used = used[used >= 0]
    return tuple(np.unique(np.minimum(used, channels.reverse[used])).tolist())


def _spanning(
    channels: Channels, paths: Ints, vlans: Ints, has_host: NDArray[np.bool_]
) -> Iterator[tuple[int, Links]]:
    """Yield the acyclic VLANs whose links connect all switches with hosts."""
    for vlan in range(int(vlans.min()), int(vlans.max()) + 1):
        links = _links(channels, paths[vlans == vlan])
        connected = has_host.copy()
        connected[channels.tail[list(links)]] = connected[channels.head[list(links)]] = True
        if len(links) == np.count_nonzero(connected) - 1:
            yield vlan, links


def _turns(channels: Channels, links: Links) -> set[tuple[int, int]]:
    """Return the pairs of channels that a flood holds and waits for.

    These are all turns of the tree except U-turns: behind each of its links there are hosts.
    """
    directions = [*links, *channels.reverse[list(links)].tolist()]
    leaving: dict[int, list[int]] = {}
    for c in directions:
        leaving.setdefault(int(channels.tail[c]), []).append(c)
    return {
        (c, onward)
        for c in directions
        for onward in leaving[int(channels.head[c])]
        if onward != channels.reverse[c]
    }
