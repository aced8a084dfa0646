"""In which VLAN each path lies.

Switch-tagged, all paths from one host lie in one VLAN: the PVID of its port. Host-tagged, the host
chooses the VLAN by the destination.

By default, paths may share a VLAN when they never want different next hops at one switch
towards one destination: that is all that switches need which forward by (VLAN, destination).
Ordinary Ethernet switches flood within a VLAN, whose links must form no loop: trees.

References
----------
Otsuka, Koibuchi, Kudoh, Amano: VLAN routing with switch tagging, sections 2 and 3. There, 3.1, each
switch has a tree for its paths, and identical trees are merged. Here trees are merged when
together they still have no loop, which identical ones never have, so no more VLANs are needed.

"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from common.errors import PlanError
from knotless_core import graph as core
from routing.graphs.channels import Channels, Ints
from routing.routes import TableRoutes

FIRST_VLAN = 2
"""VLAN 1 is the default VLAN of most switches: keep out of its way."""
LAST_VLAN = 4094
MOST_VLANS = LAST_VLAN - FIRST_VLAN + 1
Tagging = Literal["switch", "host"]
TAGGINGS: tuple[Tagging, ...] = get_args(Tagging)
Assignment = Literal["default", "tree"]
ASSIGNMENTS: tuple[Assignment, ...] = get_args(Assignment)


def assign_vlans(
    channels: Channels,
    paths: Ints,
    *,
    assignment: str = "default",
    tagging: str = "switch",
    limit: int = MOST_VLANS,
) -> Ints:
    """Return (rows, switches): the VLAN, from 2 on, of each path of ``paths``.

    ``paths`` (rows, switches, longest) are channels, then -1. With ``tagging`` by switches the
    VLAN depends on the row alone. Each row (with tagging by hosts, each path) takes the first VLAN
    into which it fits, in the order of the rows; with tagging by hosts a row that as a whole fits
    into a tree is not split. Where there is no path, the
    entry is the VLAN that most paths of the row have: its broadcasts go there.

    Raises
    ------
    PlanError
        More than ``limit`` VLANs would be needed, or a row cannot be in one VLAN.

    """
    try:
        numbers = core.assign_vlans(
            channels.core, paths, assignment == "tree", tagging == "host", limit
        )
    except LookupError as error:
        raise _loop(channels, paths[error.args[0]]) from None
    except OverflowError:
        raise _too_many(limit) from None
    return _completed(numbers)


def assign_table_vlans(
    routes: TableRoutes,
    receives: NDArray[np.bool_],
    *,
    tagging: str = "switch",
    limit: int = MOST_VLANS,
) -> Ints:
    """Return the same for next-hop tables and the ``default`` assignment, without their paths.

    ``receives`` marks the switches to which paths count. With ``tagging`` by switches the result
    is a view of one column, which cannot be written to.
    """
    try:
        if tagging == "host":
            return _completed(routes.core.pair_vlans(receives, limit))
        column = FIRST_VLAN + routes.core.row_vlans(receives, limit)
    except OverflowError:
        raise _too_many(limit) from None
    return np.broadcast_to(column[:, None], (len(column), len(receives)))


def _completed(numbers: Ints) -> Ints:
    """Return the VLANs of VLAN numbers from 0, each -1 replaced by its row's commonest number."""
    for row in numbers:
        known = row[row >= 0]
        row[row < 0] = np.bincount(known).argmax() if len(known) else 0
    return FIRST_VLAN + numbers


def refuse_vlans_above(needed: int, limit: int) -> None:
    """Raise PlanError where more VLANs are needed than there may be."""
    if needed > limit:
        raise _too_many(limit)


def _too_many(limit: int) -> PlanError:
    most = ", all that 802.1Q has" if limit == MOST_VLANS else ""
    return PlanError(
        f"this plan needs more than {limit} VLANs{most}; --select low-port may need fewer"
    )


def _loop(channels: Channels, path: Ints) -> PlanError:
    """Return the complaint about a row whose paths close a loop, naming where they meet again."""
    names = channels.names
    link_of = np.minimum(np.arange(len(channels), dtype=np.int32), channels.reverse)
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
