"""The row of one run of the traffic experiment."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

SAMPLE_TYPES = {
    "row": "int32",
    "part": "string",
    "fabric": "string",
    "routes": "string",
    "pattern": "string",
    "protocol": "string",
    "message_bytes": "int32",
    "repeat": "int32",
    "flow": "string",
    "goodput_mbps": "double",
    "theory_mbps": "double",
    "messages": "int64",
    "mean_us": "double",
    "p50_us": "double",
    "max_us": "double",
}
"""Columns of samples.parquet: one sample per flow of each row; ``row`` counts from 0.

``messages`` and times are those from message to acknowledgement, if messages are acknowledged.
"""


@dataclass(frozen=True)
class Row:
    """The results of one run; lists are in the order of ``flows``.

    ``flows_mbps`` is goodput in ``window_s``: message bytes over the time until acknowledgement,
    or bytes that arrived. ``theory_flows_mbps`` is a flow's rate in an empty store-and-forward
    fabric for acknowledged messages, else its max-min fair share. ``mean_switches`` is over the
    flows, ``max_channel_load`` the largest number of them on one channel between switches.
    """

    part: str
    on: str
    fabric: str
    engine: str
    vcs: int
    select: str
    routes: str
    pattern: str
    protocol: str
    message_bytes: int | None
    rate_mbps: float
    delay_us: float
    repeat: int
    flows: list[str]
    flows_mbps: list[float]
    theory_flows_mbps: list[float]
    mean_mbps: float
    theory_mbps: float
    of_theory: float
    mean_switches: float
    max_channel_load: int
    lost_frames: int
    deadlock: bool
    window_s: float
    result_sha256: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as a value for :func:`json.dumps`."""
        return asdict(self)
