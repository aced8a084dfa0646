"""Rows and samples of the deadlock experiment as a run would make them, for tests."""

from __future__ import annotations

import math
from typing import Any

from knotless_experiments.studies.deadlock.columns import COLUMNS

KNOT = ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]
IDENTITY = ("pattern", "tagging", "routes", "flow_control", "protocol", "repeat")
FLOWS = ["h1>h3", "h2>h4", "h3>h1", "h4>h2"]


def row(routes: str, flow_control: str, protocol: str = "udp", **changes: Any) -> dict[str, Any]:
    """A valid row of that kind, as the real thing gives it."""
    frozen = routes == "cyclic" and flow_control in ("pause", "switch", "pfc")
    lossy = flow_control in ("none", "host", "switch")
    values: dict[str, Any] = {
        "on": "emulation",
        "pattern": "ring-4",
        "tagging": "switch",
        "routes": routes,
        "flow_control": flow_control,
        "protocol": protocol,
        "rate_mbps": 10.0,
        "repeat": 1,
        "flows": FLOWS,
        "flows_mbps": [0.0] * 4 if frozen else [4.77, 4.78, 4.773, 4.771],
        "theory_mbps": 4.773,
        "theory_flows_mbps": [4.773] * 4,
        "lost_frames": 1234 if lossy else 0,
        "deadlock": frozen,
        "cycle": KNOT if frozen else [],
        "predicted_cycle": KNOT if routes == "cyclic" else [],
        "window_s": 2.0,
        "frozen_after_s": 0.9 if frozen else None,
        "sent_frames": 9000,
    }
    verdict: dict[str, Any] = {"stretch": 1.1, "valid": True, "problems": []}
    verdict |= {key: changes.pop(key) for key in tuple(verdict) if key in changes}
    values |= changes
    values.setdefault("as_predicted", values["cycle"] in ([], values["predicted_cycle"]))
    return {**COLUMNS.row(**values), **verdict}


def samples(rows: list[dict[str, Any]], seconds: float = 4.0) -> list[dict[str, Any]]:
    """A timeline for each row: up to its share, and down to nothing in a deadlock."""
    lines = []
    for index, each in enumerate(rows):
        for step in range(1, int(seconds * 10)):
            t_s = step / 10
            mbps = 4.773 * (1 - math.exp(-3 * t_s))
            if each["deadlock"] and t_s > each["frozen_after_s"]:
                mbps = 0.0
            lines += [
                {
                    "row": index,
                    **{k: each[k] for k in IDENTITY},
                    "t_s": t_s,
                    "flow": flow,
                    "goodput_mbps": mbps,
                    "delivered_frames": step,
                    "lost_frames": each["lost_frames"],
                    "in_window": t_s > 1.5,
                }
                for flow in each["flows"]
            ]
    return lines
