"""Flow control: which links pause, and which channels can wait for each other as a result.

``auto`` is PFC if a plan uses more than one virtual channel, otherwise PAUSE.

References
----------
IEEE 802.3x (PAUSE stops a whole channel); IEEE 802.1Qbb (PFC stops one priority of a channel).
The choices none, host and switch are from Otsuka et al., VLAN routing with switch tagging.

"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from knotless._core import simulator
from knotless.base.errors import PlanError
from knotless.base.flow_control import AUTO, CHOICES, FLOW_CONTROLS, NAMES
from knotless.routing.graphs.channels import VCS_PER_CHANNEL

Edges = NDArray[np.int64]
LinkMode = Literal["off", "pause", "pfc"]
_LINK_MODES: tuple[LinkMode, ...] = get_args(LinkMode)


def resolved(choice: str, vcs: int) -> str:
    """Resolve a choice of flow control, which may be ``auto``, for a plan.

    Parameters
    ----------
    choice : str
        One of :data:`knotless.base.flow_control.CHOICES`.
    vcs : int
        The number of virtual channels that the plan uses.

    Returns
    -------
    str
        One of :data:`knotless.base.flow_control.FLOW_CONTROLS`.

    Raises
    ------
    PlanError
        ``choice`` is not a flow control.

    Examples
    --------
    >>> [resolved("auto", vcs) for vcs in (1, 2)]
    ['pause', 'pfc']

    """
    if choice == AUTO:
        return "pfc" if vcs > 1 else "pause"
    if choice not in FLOW_CONTROLS:
        raise PlanError(f"flow control must be one of {', '.join(CHOICES)}, not {choice[:40]!r}")
    return choice


def of_link(flow_control: str, *, to_host: bool) -> LinkMode:
    """Return the flow control of one link. Raises PlanError if it is not in FLOW_CONTROLS."""
    if flow_control not in FLOW_CONTROLS:
        raise PlanError(
            f"flow control must be one of {', '.join(FLOW_CONTROLS)}, not {flow_control[:40]!r}"
        )
    return _LINK_MODES[simulator.link_flow_control(flow_control, to_host)]


def is_lossless(flow_control: str) -> bool:
    """Tell whether all links pause, so that no frame is lost because a buffer is full."""
    return flow_control in ("pause", "pfc")


def waiting(edges: Edges, flow_control: str) -> Edges:
    """Return the dependencies between virtual channels that exist under a flow control.

    ``edges`` (dependencies, 2) are the dependencies under PFC; nodes are numbered as in
    :mod:`knotless.routing.graphs.dependencies`. Only links between switches can form a cycle; if
    these do not pause, there are no dependencies. PAUSE stops all priorities of a channel together,
    so they form one node, that of priority 0.
    """
    between_switches = of_link(flow_control, to_host=False)
    if between_switches == "off":
        return edges[:0]
    return edges if between_switches == "pfc" else edges - edges % VCS_PER_CHANNEL


def verdict_text(flow_control: str, cycle: Sequence[str]) -> str:
    """Return the verdict as text; ``cycle`` is a cycle of dependencies, or empty.

    Examples
    --------
    >>> verdict_text("pfc", [])
    'cannot deadlock under PFC'
    >>> verdict_text("pause", ["s1:2/0", "s2:2/0"])
    'CAN DEADLOCK under PAUSE: s1:2/0 -> s2:2/0 -> s1:2/0'

    """
    under = "without flow control" if flow_control == "none" else f"under {NAMES[flow_control]}"
    if not cycle:
        return f"cannot deadlock {under}"
    return f"CAN DEADLOCK {under}: {' -> '.join([*cycle, cycle[0]])}"
