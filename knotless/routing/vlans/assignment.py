"""The assignment of VLANs to paths.

If switches tag, all paths from one host are in one VLAN, the PVID of its port. If hosts tag, the
host chooses the VLAN by destination.

By default two paths share a VLAN if, at every switch, paths to the same destination use the same
next hop. Switches that forward by (VLAN, destination) need nothing more. Ordinary Ethernet
switches flood within a VLAN, so its links must not form a loop: ``tree``.

References
----------
Otsuka, Koibuchi, Kudoh, Amano: VLAN routing with switch tagging, sections 2 and 3. In section 3.1
each switch has a tree for its paths, and identical trees are merged. Here trees are merged if
their union has no loop, which includes identical trees, so no more VLANs are needed.

"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from knotless._core import graph as core
from knotless.base.errors import PlanError
from knotless.base.model_limits import LAST_VLAN
from knotless.routing.graphs.channels import Channels, Ints
from knotless.routing.routes import TableRoutes

FIRST_VLAN = 2
"""VLAN 1 is not used: it is the default VLAN of most switches."""
MAX_VLANS = LAST_VLAN - FIRST_VLAN + 1
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
    limit: int = MAX_VLANS,
) -> Ints:
    """Return (rows, switches): the VLAN, from 2 on, of each path of ``paths``.

    ``paths`` (rows, switches, longest) are channels, then -1. If switches tag, the VLAN is the
    same for the whole row. Each row (if hosts tag, each path) takes the first VLAN into which it
    fits, in the order of the rows; if hosts tag, a row that fits into a tree as a whole is not
    split. Where there is no path, the entry is the most frequent VLAN of the row, which carries
    its broadcasts.

    Raises
    ------
    PlanError
        More than ``limit`` VLANs are needed, or a row does not fit into one VLAN.

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
    limit: int = MAX_VLANS,
) -> Ints:
    """Return the ``default`` assignment for next-hop tables, without computing explicit paths.

    ``receives`` marks the destination switches that count. If switches tag, the result is a
    read-only view of one column.
    """
    try:
        if tagging == "host":
            return _completed(routes.core.pair_vlans(receives, limit))
        column = FIRST_VLAN + routes.core.row_vlans(receives, limit)
    except OverflowError:
        raise _too_many(limit) from None
    return np.broadcast_to(column[:, None], (len(column), len(receives)))


def _completed(numbers: Ints) -> Ints:
    """Return VLANs for numbers from 0; each -1 becomes the most frequent number of its row."""
    for row in numbers:
        assigned = row[row >= 0]
        row[row < 0] = np.bincount(assigned).argmax() if len(assigned) else 0
    return FIRST_VLAN + numbers


def refuse_vlans_above(needed: int, limit: int) -> None:
    """Raise PlanError if ``needed`` VLANs are more than ``limit``."""
    if needed > limit:
        raise _too_many(limit)


def _too_many(limit: int) -> PlanError:
    reason = ", the limit of 802.1Q" if limit == MAX_VLANS else ""
    return PlanError(
        f"this plan needs more than {limit} VLANs{reason}; --select low-port may need fewer"
    )


def _loop(channels: Channels, path: Ints) -> PlanError:
    """Return the error for a row whose paths form a loop; it names where the paths meet again."""
    names = channels.names
    link_of = np.minimum(np.arange(len(channels), dtype=np.int32), channels.reverse)
    entered: dict[int, tuple[int, int]] = {}
    detail = ""
    for d in range(len(path)):
        for c in path[d][path[d] >= 0].tolist():
            head = int(channels.head[c])
            link, first = entered.setdefault(head, (int(link_of[c]), d))
            if link != link_of[c] and not detail:
                detail = f": those to {names[first]} and {names[d]} enter {names[head]} differently"
    source = names[channels.tail[path[path[:, 0] >= 0][0, 0]]]
    return PlanError(
        f"tree VLANs: the paths from {source} form a loop{detail}; try --select low-port, or"
        " --tagging host, which puts each path into a VLAN of its own"
    )
