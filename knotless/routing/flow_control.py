"""Flow control of plans: what ``auto`` means, and which channels can wait for each other."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from knotless.base.errors import PlanError
from knotless.base.flow_control import AUTO, CHOICES, FLOW_CONTROLS, FlowControl, LinkFlowControl
from knotless.routing.graphs.channels import VCS_PER_CHANNEL, Ints

Edges = NDArray[np.int64]
Nodes = TypeVar("Nodes", Ints, NDArray[np.int64])


def resolved(choice: str, vcs: int) -> FlowControl:
    """Resolve a choice of flow control, which may be ``auto``, for a plan.

    Parameters
    ----------
    choice : str
        One of :data:`knotless.base.flow_control.CHOICES`.
    vcs : int
        The number of virtual channels that the plan uses.

    Returns
    -------
    FlowControl
        The flow control of all links.

    Raises
    ------
    PlanError
        ``choice`` is not a flow control.

    Examples
    --------
    >>> [resolved("auto", vcs).value for vcs in (1, 2)]
    ['pause', 'pfc']

    """
    if choice == AUTO:
        return FlowControl.PFC if vcs > 1 else FlowControl.PAUSE
    if choice not in FLOW_CONTROLS:
        raise PlanError(f"flow control must be one of {', '.join(CHOICES)}, not {choice[:40]!r}")
    return FlowControl(choice)


def waiting(edges: Edges, flow_control: FlowControl) -> Edges:
    """Return the dependencies between virtual channels that exist under a flow control.

    ``edges`` (dependencies, 2) are the dependencies under PFC; nodes are numbered as in
    :mod:`knotless.routing.graphs.dependencies`. Only links between switches can form a cycle; if
    these do not pause, there are no dependencies. Priorities that are paused together form one
    node, see :func:`merged`.
    """
    links = flow_control.switch_links
    return merged(edges, links) if links.pauses else edges[:0]


def merged(nodes: Nodes, links: LinkFlowControl) -> Nodes:
    """Return the node of each virtual channel on links that pause, in an array of the same shape.

    The priorities of a class form one node: that of the priority with the number of the class.
    """
    if links.classes == tuple(range(len(links.classes))):
        return nodes
    classes = [links.classes[vc % len(links.classes)] for vc in range(VCS_PER_CHANNEL)]
    above = np.array([vc - number for vc, number in enumerate(classes)], dtype=nodes.dtype)
    return nodes - above[nodes % VCS_PER_CHANNEL]
