"""The last frames, in bounded memory."""

from __future__ import annotations

import json
from collections import deque
from typing import Any

KEPT_S = 600.0
KEPT_BYTES = 64 << 20
MOST_AT_ONCE = 200
"""Frames in one answer."""


class History:
    """A ring buffer of frames as JSON; frame numbers increase by one and are never reused."""

    def __init__(self, kept_s: float = KEPT_S, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept_s, self._kept_bytes = kept_s, kept_bytes
        self._frames: deque[tuple[float, bool, bytes]] = deque()
        self._first = 0
        self._bytes = 0

    @property
    def first(self) -> int:
        """The number of the oldest frame that is kept."""
        return self._first

    @property
    def end(self) -> int:
        """The number of the next frame."""
        return self._first + len(self._frames)

    def add(self, time_s: float, frame: dict[str, Any]) -> bytes:
        """Add a frame, forget those that are too old or too many, and return its JSON."""
        text = json.dumps(
            {"n": self.end, "time": round(time_s, 3), **frame}, separators=(",", ":")
        ).encode()
        self._frames.append((time_s, frame["knot"] is not None, text))
        self._bytes += len(text)
        while len(self._frames) > 1 and (
            self._frames[0][0] < time_s - self._kept_s or self._bytes > self._kept_bytes
        ):
            self._bytes -= len(self._frames.popleft()[2])
            self._first += 1
        return text

    def clear(self) -> None:
        """Forget all frames: another fabric begins."""
        self._first = self.end
        self._frames.clear()
        self._bytes = 0

    def timeline(self) -> dict[str, Any]:
        """Return the times of all frames, and the numbers of those with a knot."""
        return {
            "first": self._first,
            "times": [round(time_s, 3) for time_s, _, _ in self._frames],
            "knots": [self._first + i for i, (_, knot, _) in enumerate(self._frames) if knot],
        }

    def frames(self, first: int, count: int) -> bytes:
        """Return frames as a JSON list; those that are no longer kept are left out."""
        start = max(0, first - self._first)
        stop = min(len(self._frames), first - self._first + min(count, MOST_AT_ONCE))
        return b"[" + b",".join(self._frames[i][2] for i in range(start, stop)) + b"]"
