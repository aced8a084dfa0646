"""Frames in bounded memory, and their distribution to pages that read slowly."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from knotless.web.feed import MAX_WAITING, Feed
from knotless.web.history import MOST_AT_ONCE, History


def frame(at_us: int = 0, knot: Any = None) -> dict[str, Any]:
    return {"at_us": at_us, "rows": [], "drops": [], "down": [], "knot": knot}


def test_frames_of_the_last_minutes_are_kept() -> None:
    history = History(kept_s=10)
    for second in range(30):
        history.add(float(second), frame(second, knot={} if second == 25 else None))
    timeline = history.timeline()
    assert timeline["times"] == [float(second) for second in range(19, 30)]
    assert (timeline["first"], timeline["knots"]) == (19, [25])
    kept = json.loads(history.frames(0, 100))
    assert [one["n"] for one in kept] == list(range(19, 30))


def test_memory_is_bounded_whatever_the_size_of_frames() -> None:
    history = History(kept_s=1e9, kept_bytes=10_000)
    big = {**frame(), "rows": [(1, 0, 1000, 1000, 1, 1)] * 100}
    for second in range(50):
        history.add(float(second), big)
    kept = history.end - history.first
    assert history.end == 50
    assert 1 <= kept <= 10_000 // 1500
    history.clear()
    assert (history.first, history.end) == (50, 50)
    assert history.add(0.0, frame()).startswith(b'{"n":50,')


def test_an_answer_has_a_bounded_number_of_frames() -> None:
    history = History()
    for second in range(MOST_AT_ONCE + 10):
        history.add(float(second), frame())
    assert len(json.loads(history.frames(0, 10**9))) == MOST_AT_ONCE


def test_a_page_that_does_not_read_misses_the_oldest_frames_only() -> None:
    feed = Feed("live", "test")

    async def run() -> list[tuple[str, Any]]:
        client = feed.connect()
        feed.add_event("disconnected", {"switch": "s1"})
        for _ in range(10 * MAX_WAITING):
            feed.add_frame(frame())
            feed.set_state({"frames": feed.history.end})
        messages = client.messages()
        events = []
        for _ in range(MAX_WAITING):
            kind, _, data = (await anext(messages)).decode().partition("\n")
            events.append((kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
        return events

    received = asyncio.run(run())
    kinds = [kind for kind, _ in received]
    assert kinds.count("event") == kinds.count("picture") == kinds.count("state") == 1
    assert [data["n"] for kind, data in received if kind == "frame"][-1] == 10 * MAX_WAITING - 1
    assert next(data for kind, data in received if kind == "state") == {"frames": 10 * MAX_WAITING}


def test_an_unchanged_state_is_not_sent_again() -> None:
    feed = Feed("live", "test")

    async def run() -> int:
        client = feed.connect()
        messages = client.messages()
        for _ in range(2):
            await anext(messages)
        for _ in range(3):
            feed.set_state({"emulator": None})
        feed.add_event("end", {})
        kinds = [(await anext(messages)).decode().split("\n")[0] for _ in range(2)]
        return kinds.index("event: event")

    assert asyncio.run(run()) == 1
