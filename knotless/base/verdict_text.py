"""The sentence of a verdict: whether routes can deadlock, and under which flow control."""

from __future__ import annotations

from collections.abc import Sequence

from knotless.base.flow_control import FlowControl

SHOWN_MISSING = 3
"""Missing facts in the sentence."""
SHOWN_BLOCKED = 8
"""Channels in the sentence that block each other without a cycle of single waits."""


def verdict_words(
    flow_control: FlowControl, *, safe: bool | None, assumed_routes: bool = False
) -> tuple[str, str]:
    """Return the words of an answer, and what they apply to; ``safe`` None is unknown."""
    under = flow_control.condition + (", with assumed routes" if assumed_routes else "")
    if safe is None:
        return "UNKNOWN", f"whether it can deadlock {under}"
    return "cannot deadlock" if safe else "CAN DEADLOCK", under


def verdict_text(
    flow_control: FlowControl,
    cycle: Sequence[str],
    missing: Sequence[str] = (),
    blocked: Sequence[str] = (),
    *,
    assumed_routes: bool = False,
) -> str:
    """Return the verdict as text.

    ``cycle`` is a cycle of dependencies, or empty. ``missing`` are facts without which the verdict
    is unknown; the cycle is only possible then. ``blocked``, if there is no cycle, are channels
    whose frames wait for the first free of several, all of which can be blocked. With
    ``assumed_routes`` the routes are computed from configurations, not read.
    """
    safe = None if missing else not (cycle or blocked)
    words = " ".join(verdict_words(flow_control, safe=safe, assumed_routes=assumed_routes))
    ring = " -> ".join([*cycle, *cycle[:1]])
    if missing:
        more = len(missing) - SHOWN_MISSING
        shown = "; ".join(missing[:SHOWN_MISSING]) + (f"; {more} more" * (more > 0))
        possible = f"; possible: {ring}" if cycle else ""
        return f"{words}: missing {shown}{possible}"
    if blocked and not cycle:
        more = len(blocked) - SHOWN_BLOCKED
        shown = ", ".join(blocked[:SHOWN_BLOCKED]) + (f" and {more} more" * (more > 0))
        return f"{words}: frames on {shown} can all wait for each other"
    return f"{words}: {ring}" if cycle else words


def assumptions(flow_control: FlowControl) -> list[str]:
    """Return what a verdict under this flow control takes for granted.

    Without the reserve, a shared pool of buffers can freeze although dependencies are acyclic: a
    priority of an input that holds nothing waits for room that others hold, which is no dependency
    between channels.
    """
    if not flow_control.switch_links.pauses:
        return []
    return [
        "each lossless priority of each input has room for a longest frame that nobody else can"
        " take",
        "hosts take what arrives",
    ]
