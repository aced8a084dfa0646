"""The row of one case of the agreement."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

_TWICE = {
    "frames": "int64",
    "pauses": "int64",
    "paused_us": "double",
    "account_peak_bytes": "int64",
    "queue_peak_bytes": "int64",
}
"""The counters of a channel."""
CLOCKS = ("emulated", "simulated")

SAMPLE_TYPES = {
    "row": "int32",
    "fabric": "string",
    "routes": "string",
    "pattern": "string",
    "flow_control": "string",
    "seed": "int64",
    "repeat": "int32",
    "channel": "string",
    "kind": "string",
    **{f"{clock}_{key}": kind for key, kind in _TWICE.items() for clock in CLOCKS},
}
"""Columns of samples.parquet: one sample per channel that carried frames.

``kind`` is ``host`` for a channel that leaves a host, ``delivery`` for one that leads to a host,
else ``inner``.
"""


@dataclass(frozen=True)
class Row:
    """The results of one case; lists are in the order of ``flows``.

    ``flows_frames`` are the frames that arrived in ``window_s`` after the emulator's queues were
    emptied and its counters reset; the simulator starts in this state. The time of the reset is
    known to ``start_known_us``. ``ratio`` is the emulator's total divided by the simulator's,
    ``worst_ratio`` that of the flow farthest from 1, ``apart_frames`` the largest difference of a
    flow. ``agrees``: ``ratio`` is within 1 %, every flow within 1 % or two frames, and the verdict
    and the knot are equal. ``peaks_apart`` are the channels between switches or from hosts whose
    peak ingress buffer occupancy differs.
    """

    fabric: str
    routes: str
    pattern: str
    flow_control: str
    seed: int
    rate_mbps: float
    delay_us: float
    repeat: int
    window_s: float
    start_known_us: float
    flows: list[str]
    emulated_flows_frames: list[int]
    simulated_flows_frames: list[int]
    emulated_mbps: float
    simulated_mbps: float
    ratio: float
    worst_ratio: float
    apart_frames: int
    emulated_deadlock: bool
    simulated_deadlock: bool
    emulated_knot: list[str]
    simulated_knot: list[str]
    emulated_frozen_ms: float | None
    simulated_frozen_ms: float | None
    emulated_lost: int
    simulated_lost: int
    emulated_pauses: int
    simulated_pauses: int
    pauses_apart: int
    emulated_paused_s: float
    simulated_paused_s: float
    emulated_account_peak_bytes: int
    simulated_account_peak_bytes: int
    channels: int
    peaks_apart: list[str]
    agrees: bool
    result_sha256: str

    def as_json(self) -> dict[str, Any]:
        """Return the row as a value for :func:`json.dumps`."""
        return asdict(self)
