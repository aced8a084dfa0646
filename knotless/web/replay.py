"""Recorded runs and verdicts as sources of a page: nothing changes, and nothing can be done."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from knotless.results.recording import Frame, Recording, RecordingError
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats import files
from knotless.web.app import Action
from knotless.web.feed import Feed
from knotless.web.history import History
from knotless.web.picture import Picture
from knotless.web.verdicts import shown_verdict

MAX_BYTES = 1 << 30
"""Frames of a recording in memory, as JSON."""


class Still:
    """A picture that stays as it is; ``verdict`` is what ``knotless check --json`` prints."""

    def __init__(self, feed: Feed, fabric: Fabric, verdict: Mapping[str, Any] | None) -> None:
        self.feed = feed
        self.actions: Mapping[str, Action] = {}
        self.feed.set_picture(Picture(fabric))
        if verdict is not None:
            self.feed.set_state({"verdict": shown_verdict(verdict)})

    def token(self) -> str | None:
        """Nobody may act on what is stored."""
        return None

    async def run(self) -> None:
        """Wait until cancelled."""
        await asyncio.Event().wait()


def replay(recording: Recording) -> Still:
    """Return a recording as a source; raises KnotlessError if its fabric is invalid."""
    picture = picture_of(recording)
    feed = Feed("replay", recording.title)
    feed.history = History(float("inf"), MAX_BYTES)
    still = Still(feed, picture.fabric, None)
    for frame in frames_of(recording, picture):
        feed.history.add(frame["at_us"] / 1e6, frame)
    return still


def picture_of(recording: Recording) -> Picture:
    """Return the picture of a recording's fabric; raises KnotlessError if that is invalid."""
    return Picture(files.from_json(recording.fabric))


def frames_of(recording: Recording, picture: Picture) -> Iterator[dict[str, Any]]:
    """Yield the frames of a recording, with the channels numbered as in the picture."""
    numbers = _numbers(recording.channels, picture)
    for frame in recording.frames:
        yield _renumbered(frame, numbers)


def verdict(fabric: Fabric, values: Mapping[str, Any]) -> Still:
    """Return a checker's verdict on a fabric as a source."""
    return Still(Feed("verdict", "checked"), fabric, values)


def _numbers(channels: Sequence[str], picture: Picture) -> list[int]:
    """Return the number in the picture of each channel of a recording."""
    unknown = [name for name in channels if name not in picture.index]
    if unknown:
        raise RecordingError(f"the recording's fabric has no channel {unknown[0][:80]!r}")
    return [picture.index[name] for name in channels]


def _renumbered(frame: Frame, numbers: Sequence[int]) -> dict[str, Any]:
    return {
        "at_us": frame["at_us"],
        "rows": [(numbers[channel], *rest) for channel, *rest in frame["rows"]],
        "drops": [(numbers[channel], *rest) for channel, *rest in frame["drops"]],
        "down": [numbers[channel] for channel in frame["down"]],
        "knot": frame["knot"],
    }
