"""The rule that judges a row by its own figures: when it is measured, and whenever it is read.

Stored rows are judged as well, so a rule that is newer than a run holds for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LEAST_BYTES = 1000
"""Fewer bytes in the window of a row say nothing about a flow."""


def silent_flows(row: Mapping[str, Any]) -> list[str]:
    """Return why a row says nothing about some of its flows: hardly anything of them arrived.

    Of a flow of less than :data:`LEAST_BYTES`, only the sender's call has arrived. In a deadlock
    that is what the row is to show. Rows without ``flows_mbps`` have no such problem.

    Examples
    --------
    >>> silent_flows({"flows": ["a", "b"], "flows_mbps": [0.0, 1.5], "window_s": 2.0})
    ['a: nothing arrived in 2 s, and no deadlock has stopped it']
    >>> silent_flows({"flows": ["a"], "flows_mbps": [0.0], "window_s": 2.0, "deadlock": True})
    []

    """
    flows, flows_mbps = row.get("flows"), row.get("flows_mbps")
    if row.get("deadlock") or not isinstance(flows, list) or not isinstance(flows_mbps, list):
        return []
    window_s = row.get("window_s")
    window = f"{window_s:g} s" if isinstance(window_s, int | float) else "the window"
    return [
        f"{flow}: {f'{mbps:g} Mbit/s' if mbps else 'nothing'} arrived in {window}, "
        "and no deadlock has stopped it"
        for flow, mbps in zip(flows, flows_mbps, strict=False)
        if mbps == 0 or (isinstance(window_s, int | float) and mbps * window_s < LEAST_BYTES * 8e-6)
    ]


def judge(row: dict[str, Any]) -> None:
    """Add what :func:`silent_flows` finds to a row that was read, which is then not valid."""
    problems = row.get("problems")
    if not isinstance(problems, list):
        return
    new = [problem for problem in silent_flows(row) if problem not in problems]
    if new:
        row["problems"] = [*problems, *new]
        row["valid"] = False
