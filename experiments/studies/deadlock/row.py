"""What one run of the deadlock experiment found."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

SAMPLE_TYPES = {
    "row": "int32",
    "pattern": "string",
    "tagging": "string",
    "routes": "string",
    "flow_control": "string",
    "protocol": "string",
    "repeat": "int32",
    "t_s": "double",
    "flow": "string",
    "goodput_mbps": "double",
    "delivered_frames": "int64",
    "lost_frames": "int64",
    "in_window": "bool",
}
"""Columns of samples.parquet: one line for each flow at each reading of the counters.

``row`` counts the rows of run.json from 0. ``t_s`` is the time since the counters were set
to zero; ``goodput_mbps`` is the mean since the line before;
``delivered_frames`` and ``lost_frames`` (of the whole fabric) count from zero; ``in_window``
marks the measuring window. A simulated run has none.
"""


@dataclass(frozen=True)
class Row:
    """One run; ``flows`` names the flows in the order of the lists.

    ``flows_mbps`` is goodput (payload) in the measuring window of ``window_s`` seconds;
    ``cycle`` is what the emulator's detector named, ``predicted_cycle`` what the static
    check finds in the rules; both start at their smallest member and follow the frames.
    ``as_predicted``: all of ``cycle`` are dependencies that the static check knows of.
    ``late`` says that lateness was over its limit. ``frozen_after_s`` is when the deadlock
    began, on the time axis of the samples. ``problems`` say why a row is not valid, one
    line each. ``earlier_attempts`` are the rows of the same case that the machine was too
    late for, in order; nothing else is a reason to try again. A simulated row has no
    lateness, and a ``result_sha256`` of all that was counted.
    """

    on: str
    pattern: str
    tagging: str
    routes: str
    flow_control: str
    protocol: str
    rate_mbps: float
    repeat: int
    flows: list[str]
    flows_mbps: list[float]
    theory_mbps: float
    theory_flows_mbps: list[float]
    lost_frames: int
    deadlock: bool
    cycle: list[str]
    predicted_cycle: list[str]
    as_predicted: bool
    window_s: float
    frozen_after_s: float | None = None
    drops: dict[str, int] = field(default_factory=dict)
    sent_frames: int = 0
    delivered_frames: int = 0
    iperf3_flows_mbps: list[float | None] = field(default_factory=list)
    iperf3_lost: int | None = None
    result_sha256: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)
