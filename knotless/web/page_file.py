"""A recording as one HTML file that needs no server and nothing else: picture, slider, deadlock."""

from __future__ import annotations

import html
import json
import re
from typing import Any

from knotless.base.errors import KnotlessError
from knotless.emulation.summary import deadlock_reason
from knotless.results.recording import Recording
from knotless.web.app import STATIC
from knotless.web.replay import frames_of, picture_of

MAX_CHANNELS = 400
"""Larger fabrics are drawn with WebGL, by the page of ``knotless replay``."""
MAX_FRAMES = 2000
STILL_FRAMES = 20
"""Frames of a deadlock that lasts to the end that are shown."""
_LEGEND = re.compile(r'<ul class="legend".*?</ul>', re.DOTALL)
_PLACE = re.compile(r"\{\{(\w+)\}\}")


def page_file(recording: Recording) -> str:
    """Return a recording as the text of an HTML file.

    Raises
    ------
    KnotlessError
        The fabric is too large for a picture with buffers, or there are no or too many frames.

    """
    picture = picture_of(recording)
    count, frames = len(picture.channels), len(recording.frames)
    if count > MAX_CHANNELS:
        raise KnotlessError(
            f"a file shows at most {MAX_CHANNELS} channels, this fabric has {count}: replay it"
            " without --html"
        )
    if not 0 < frames <= MAX_FRAMES:
        raise KnotlessError(f"a file shows 1 to {MAX_FRAMES} frames, this recording has {frames}")
    shown = _without_still_end(list(frames_of(recording, picture)))
    content = {"picture": picture.as_json(), "frames": shown}
    legend = _LEGEND.search(_static("index.html"))
    if legend is None:  # pragma: no cover - a test reads the file
        raise ValueError("index.html has no legend")
    # In a script of HTML, '<' could end it; names of fabrics are from outside.
    text = json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
    parts = {
        "title": html.escape(recording.title),
        "fabric": html.escape(picture.fabric.name),
        "css": _static("app.css"),
        "js": _static("replay.js"),
        "legend": legend[0],
        "reason": html.escape(deadlock_reason(None)),
        "recording": text,
    }
    return _PLACE.sub(lambda place: parts[place[1]], _static("replay.html"))


def _without_still_end(frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the frames without most of those at the end in which the same ring is frozen."""
    last = _ring(frames[-1])
    moving = [i for i, frame in enumerate(frames) if last is None or _ring(frame) != last]
    return frames[: (moving[-1] if moving else -1) + 1 + STILL_FRAMES]


def _ring(frame: dict[str, Any]) -> Any:
    return None if frame["knot"] is None else frame["knot"]["cycle"]


def _static(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")
