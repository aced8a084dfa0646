"""The terminal view: its lines, and the view itself without a terminal."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from textual.widgets import DataTable, Static

from knotless.topologies import load
from knotless.web.feed import Feed
from knotless.web.picture import Picture
from knotless.web.top import COLUMNS, Top, knot_lines, lines_of, ordered, state_lines
from tests.support import REPOSITORY

KNOT = {
    "since_us": 1_500_000,
    "cycle": ["s1:2/0", "s2:2/0"],
    "members": ["s1:2/0", "s2:2/0"],
    "waiting": {"s1:2/0": [{"from": "h1", "to": "h3", "bytes": 1}]},
}
FRAME: dict[str, Any] = {
    "at_us": 1,
    "rows": [(0, 0, 250, 0, 10, 0), (2, 0, 0, 1000, 40, 30), (4, 1, 900, 0, 20, 0)],
    "drops": [(7, 5, 5)],
    "down": [],
    "knot": KNOT,
}


class FakeSource:
    """A source with one frame."""

    def __init__(self) -> None:
        self.feed = Feed("live", "test")
        self.feed.set_picture(Picture(load("ring,4")))
        self.feed.add_frame(FRAME)
        self.feed.set_state({"emulator": {"reachable": False, "why": "the [link] emulator ended"}})

    async def run(self) -> None:
        await asyncio.Event().wait()


def test_lines_are_sorted_and_idle_channels_hidden() -> None:
    picture = Picture(load("ring,4")).as_json()
    lines = lines_of(picture, FRAME)
    assert [line[0] for line in lines] == ["s1:2", "s2:2", "s3:2", "s1:3"]
    assert [line[0] for line in ordered(lines, "load")][:2] == ["s3:2", "s1:2"]
    assert ordered(lines, "paused")[0][:2] == ("s2:2", "s2")
    assert ordered(lines, "queue")[0][0] == "s2:2"
    assert ordered(lines, "name") == lines
    assert lines[3][-1] == 5
    assert len(lines_of(picture, FRAME, idle=True)) == 16
    assert lines_of(picture, None) == []


def test_a_deadlock_is_explained() -> None:
    assert knot_lines({**FRAME, "knot": None}) == []
    text = "\n".join(knot_lines(FRAME))
    assert "since 1.500 s" in text
    assert "s1:2/0 waits for s2:2/0; it holds h1 to h3" in text
    assert "s2:2/0 waits for s1:2/0" in text


def test_what_is_lost_is_named() -> None:
    state = {
        "fabric": {"running": False, "why": "no fabric runs"},
        "controller": {"ready": True, "engine": "dor", "flow_control": "pfc"},
        "emulator": None,
        "problems": ["p"],
        "notes": ["drained: s4"],
        "advice": [{"do": "end it", "command": "knotless release"}],
    }
    assert state_lines(state) == [
        "fabric: no fabric runs",
        "controller: ready, dor, pfc",
        "problem: p",
        "to do: end it: knotless release",
        "drained: s4",
    ]


def test_the_view_by_its_keys() -> None:
    async def run() -> None:
        view = Top(FakeSource())
        async with view.run_test(size=(120, 40)) as pilot:
            view.show()
            table = view.query_one(DataTable)
            assert table.row_count == 4
            assert str(table.get_row_at(0)[0]) == "s1:2"  # in the knot
            assert str(table.get_row_at(2)[0]) == "s3:2"
            await pilot.press("s")
            assert str(table.get_row_at(0)[0]) == "s2:2"
            await pilot.press("i")
            assert table.row_count == 16
            assert "the [link] emulator ended" in str(view.query_one("#state", Static).render())
            await pilot.press("q")

    asyncio.run(run())


def test_terminal_and_page_have_the_same_headings() -> None:
    source = (REPOSITORY / "knotless" / "web" / "page" / "src" / "table.ts").read_text()
    titles = {title.lower() for title in re.findall(r'title: "(.*?)"', source)}
    assert "held %" in titles
    assert titles - {"from, to", "state"} == {*COLUMNS} - {"from", "to"}
