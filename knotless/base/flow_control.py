"""The names of flow controls in options and stored runs.

:mod:`knotless.routing.flow_control` determines the channel dependencies under each of them.
"""

from __future__ import annotations

from typing import Literal, get_args

FlowControl = Literal["none", "host", "switch", "pause", "pfc"]
FlowControlChoice = Literal["auto", "none", "host", "switch", "pause", "pfc"]
FLOW_CONTROLS: tuple[str, ...] = get_args(FlowControl)
"""PAUSE on no link, on host links, on links between switches, on all links; PFC on all links."""
AUTO: Literal["auto"] = "auto"
CHOICES: tuple[str, ...] = get_args(FlowControlChoice)
NAMES = {
    "none": "no flow control",
    "host": "PAUSE on host links",
    "switch": "PAUSE between switches",
    "pause": "PAUSE",
    "pfc": "PFC",
}
"""The description of each flow control in messages."""
