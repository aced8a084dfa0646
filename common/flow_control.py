"""The names of flow controls, as users write them and stored runs hold them.

What each makes of a plan is in :mod:`routing.flow_control`.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import Literal, get_args

FlowControl = Literal["none", "host", "switch", "pause", "pfc"]
FlowControlChoice = Literal["auto", "none", "host", "switch", "pause", "pfc"]
FLOW_CONTROLS: tuple[str, ...] = get_args(FlowControl)
"""No link pauses, links to hosts do, links between switches do, all do; or PFC on all links."""
AUTO: Literal["auto"] = "auto"
CHOICES: tuple[str, ...] = get_args(FlowControlChoice)
NAMES = {
    "none": "no flow control",
    "host": "PAUSE on host links",
    "switch": "PAUSE between switches",
    "pause": "PAUSE",
    "pfc": "PFC",
}
"""Each flow control in words."""
_SYNONYMS = {"all": "pause"}
_LOG = logging.getLogger("knotless")


def normalised(name: object) -> object:
    """Return today's name of a flow control in a stored run; anything else as it is."""
    return _SYNONYMS.get(name, name) if isinstance(name, str) else name


def accepted(name: object) -> object:
    """Return today's name of a flow control that a user chose; warns of a deprecated one."""
    if isinstance(name, str) and name in _SYNONYMS:
        _warn_once(name)
    return normalised(name)


@cache
def _warn_once(name: str) -> None:
    _LOG.warning("flow control %r is deprecated: write %r", name, _SYNONYMS[name])
