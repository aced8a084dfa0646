"""Hosts that tag, VLANs that are trees: in which VLAN broadcasts go.

Ordinary switches flood a broadcast in its VLAN, so the links of that VLAN must join all switches
with hosts. The VLANs of single paths need not: none of them may reach everybody. Floods also hold
links while they wait for others; the VLAN is chosen such that this closes no cycle with what the
paths hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from routing.graphs.channels import Channels, Ints
from routing.graphs.dependencies import find_cycle

Links = tuple[int, ...]
"""Links, each as the lower of its two channels, in ascending order."""


class BroadcastVlans(NamedTuple):
    """The VLAN in which the hosts of each row broadcast, and the links of each such VLAN."""

    of_row: Ints
    links: Mapping[int, Links]


def broadcast_vlans(
    channels: Channels, paths: Ints, vlans: Ints, trees: Ints, row_switch: Ints
) -> BroadcastVlans:
    """Return the VLANs for broadcasts: one of the paths' own, or new ones from the next number on.

    One VLAN serves all hosts if possible: the first that spans the fabric and adds no cycle of
    channel dependencies, of the paths' VLANs in their order, then of the ``trees`` in the order
    of their sources. If all of these would close a cycle, each tree has a VLAN; the plan that
    the trees are from has been checked with them. Where the paths alone have a cycle, it
    is the first VLAN that spans.

    paths : (rows, switches, longest) channels, then -1 vlans : (rows, switches) the VLAN of each
    path trees : (switches, switches) the plan's broadcast trees; see
    :mod:`routing.graphs.broadcast_trees` row_switch : (rows,) the switch of the hosts of each row
    """
    before, after = paths[:, :, :-1], paths[:, :, 1:]
    held = after >= 0
    unicast = set(zip(before[held].tolist(), after[held].tolist(), strict=True))
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


def _links(channels: Channels, taken: Ints) -> Links:
    taken = taken[taken >= 0]
    return tuple(np.unique(np.minimum(taken, channels.reverse[taken])).tolist())


def _spanning(
    channels: Channels, paths: Ints, vlans: Ints, has_host: NDArray[np.bool_]
) -> Iterator[tuple[int, Links]]:
    """Yield the VLANs whose links join all switches with hosts: without loops, enough do."""
    for vlan in range(int(vlans.min()), int(vlans.max()) + 1):
        links = _links(channels, paths[vlans == vlan])
        joined = has_host.copy()
        joined[channels.tail[list(links)]] = joined[channels.head[list(links)]] = True
        if len(links) == np.count_nonzero(joined) - 1:
            yield vlan, links


def _turns(channels: Channels, links: Links) -> set[tuple[int, int]]:
    """Return the pairs of channels that floods hold and wait for.

    All turns of the tree but those straight back: beyond each of its links there are hosts.
    """
    both = [*links, *channels.reverse[list(links)].tolist()]
    leaving: dict[int, list[int]] = {}
    for c in both:
        leaving.setdefault(int(channels.tail[c]), []).append(c)
    return {
        (c, onward)
        for c in both
        for onward in leaving[int(channels.head[c])]
        if onward != channels.reverse[c]
    }
