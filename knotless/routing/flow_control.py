"""Flow control: which links pause, and which channels can wait for each other as a result.

``auto`` is PFC if a plan uses more than one virtual channel, otherwise PAUSE.

References
----------
IEEE 802.3x (PAUSE stops a whole channel); IEEE 802.1Qbb (PFC stops one priority of a channel).
The choices none, host and switch are from Otsuka et al., VLAN routing with switch tagging.

"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from knotless._core import simulator
from knotless.base.errors import PlanError
from knotless.base.flow_control import AUTO, CHOICES, FLOW_CONTROLS, normalised
from knotless.routing.graphs.channels import VCS_PER_CHANNEL

Edges = NDArray[np.int64]
LinkMode = Literal["off", "pause", "pfc"]
_LINK_MODES: tuple[LinkMode, ...] = get_args(LinkMode)


def resolved(choice: str, vcs: int) -> str:
    """Resolve ``choice``, which may be ``auto``, for a plan with ``vcs`` virtual channels.

    Raises
    ------
    PlanError
        ``choice`` is not a flow control.

    """
    if choice == AUTO:
        return "pfc" if vcs > 1 else "pause"
    name = str(normalised(choice))
    if name not in FLOW_CONTROLS:
        raise PlanError(f"flow control must be one of {', '.join(CHOICES)}, not {choice[:40]!r}")
    return name


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
