"""The row of one run of the deadlock experiment."""

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
"""Columns of samples.parquet: one sample per flow at each reading of the counters.

``row`` counts the rows of run.json from 0. ``t_s`` is the time since the counters were reset;
``goodput_mbps`` is the mean since the previous sample; ``delivered_frames`` and ``lost_frames``
(of the whole fabric) are totals; ``in_window`` marks the measuring window. A simulated run has no
samples.
"""


@dataclass(frozen=True)
class Row:
    """The results of one run; lists are in the order of ``flows``.

    ``flows_mbps`` is goodput (payload) in the measuring window of ``window_s`` seconds.
    ``cycle`` is the one reported by the emulator's detector, ``predicted_cycle`` the one that the
    static check finds in the rules; both start at their smallest member and follow the frames.
    ``as_predicted``: all of ``cycle`` are dependencies found by the static check.
    ``frozen_after_s`` is when the deadlock began, on the time axis of the samples. ``problems`` say
    why a row is not valid, one line each. A simulated row has no ``stretch``, and a
    ``result_sha256`` of all counters.
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
        """Return it as a value for :func:`json.dumps`."""
        return asdict(self)
