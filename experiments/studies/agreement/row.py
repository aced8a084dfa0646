"""What one case of the agreement found, twice."""

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
"""What is counted of a channel, by each of the two."""
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
"""Columns of samples.parquet: a line for each channel that carried frames.

``kind`` is ``host`` for a channel that leaves a host, ``delivery`` for one that leads to a host,
else ``inner``.
"""


@dataclass(frozen=True)
class Row:
    """One case; ``flows`` names the flows in the order of the lists.

    ``flows_frames`` are frames that arrived in the ``window_s`` since the emulator's queues were
    emptied and its counters set to zero, which the simulator begins with; that moment is
    known to within ``start_known_us``. ``ratio`` is all of the emulator's over all of the
    simulator's, ``worst_ratio`` that of the flow that is farthest from 1, ``apart_frames`` by how
    many frames a flow differs at most. ``agrees``: ``ratio`` is within 1 %, every flow
    within 1 % or two frames, and the verdict and the knot are the same. ``peaks_apart``
    names the channels between switches or from hosts whose account had another peak.
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
        """Return it as plain values."""
        return asdict(self)
