"""Flow control: which links stop their senders, and which channels wait for each other then.

``auto`` means PFC where a plan uses more than one virtual channel, otherwise PAUSE.

References
----------
IEEE 802.3x (PAUSE stops a whole channel), IEEE 802.1Qbb (PFC stops one priority of it). The
choices none, host and switch are those of Otsuka et al., VLAN routing with switch tagging.

"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from common.errors import PlanError
from common.flow_control import AUTO, CHOICES, FLOW_CONTROLS, NAMES, normalised
from routing.graphs.channels import PRIORITIES

Edges = NDArray[np.int64]


def resolved(choice: str, vcs: int) -> str:
    """Return the flow control that ``choice`` means for a plan with ``vcs`` virtual channels.

    Raises
    ------
    PlanError
        There is no such flow control.

    """
    if choice == AUTO:
        return "pfc" if vcs > 1 else "pause"
    name = str(normalised(choice))
    if name not in FLOW_CONTROLS:
        raise PlanError(f"flow control must be one of {', '.join(CHOICES)}, not {choice[:40]!r}")
    return name


def of_link(flow_control: str, *, to_host: bool) -> Literal["off", "pause", "pfc"]:
    """Return what one link does under one of FLOW_CONTROLS. Raises PlanError for anything else."""
    if flow_control == "pfc":
        return "pfc"
    pausing = {"none": False, "host": to_host, "switch": not to_host, "pause": True}
    if flow_control not in pausing:
        raise PlanError(
            f"flow control must be one of {', '.join(FLOW_CONTROLS)}, not {flow_control[:40]!r}"
        )
    return "pause" if pausing[flow_control] else "off"


def is_lossless(flow_control: str) -> bool:
    """Return whether every link pauses, so that no frame is lost for lack of room."""
    return flow_control in ("pause", "pfc")


def pauses_between_switches(flow_control: str) -> bool:
    """Return whether links between switches stop their senders, so that a cycle can deadlock."""
    return of_link(flow_control, to_host=False) != "off"


def waiting(edges: Edges, flow_control: str) -> Edges:
    """Return the dependencies between virtual channels that remain under a flow control.

    ``edges`` (dependencies, 2) are those under PFC, between nodes of
    :mod:`routing.graphs.dependencies`. Only links between switches can close a cycle; where they do
    not pause, no channel waits for another. PAUSE stops all priorities of a channel together: they
    form one node, that of priority 0.
    """
    between_switches = of_link(flow_control, to_host=False)
    if between_switches == "off":
        return edges[:0]
    return edges if between_switches == "pfc" else edges - edges % PRIORITIES


def verdict_text(flow_control: str, cycle: Sequence[str]) -> str:
    """Return the verdict in words: whether channels can wait for each other in a cycle."""
    under = "without flow control" if flow_control == "none" else f"under {NAMES[flow_control]}"
    if not cycle:
        return f"cannot deadlock {under}"
    return f"CAN DEADLOCK {under}: {' -> '.join([*cycle, cycle[0]])}"
