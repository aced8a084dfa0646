"""The terminal view of a running fabric: the data of its page as text."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any, ClassVar, Protocol

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Static

from knotless.base.printable import printable, rich_text
from knotless.web.feed import Feed

REFRESH_S = 0.5
ONCE_LIMIT_S = 10.0
ONCE_POLL_S = 0.05
COLUMNS = ("channel", "from", "to", "prio", "load %", "held %", "queue", "buffer", "dropped")
"""A channel is held while it is paused, or under credits while its first frame waits for credit."""
SORTS = ("load", "paused", "queue", "name")
_KEYS = {"load": 4, "paused": 5, "queue": 6}

Line = tuple[str, str, str, int, float, float, int, int, int]


class Source(Protocol):
    """The source that fills a feed."""

    @property
    def feed(self) -> Feed:
        """The feed."""

    async def run(self) -> None:
        """Fill the feed until cancelled."""


class Top(App[None]):
    """Channels, busiest first, above them the state of the fabric and a deadlock if there is one.

    ``source`` is sampled as long as the view is open.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("s", "sort", "Sort by load, paused, queue, name"),
        Binding("i", "idle", "Show or hide idle channels"),
    ]
    CSS = "#state, #knot { height: auto; padding: 0 1; } #knot { color: red; text-style: bold; }"

    def __init__(self, source: Source) -> None:
        super().__init__()
        self._source = source
        self._sort = SORTS[0]
        self._idle = False

    def compose(self) -> ComposeResult:
        """Lay out the view."""
        yield Static(id="state", markup=False)
        yield Static(id="knot", markup=False)
        yield DataTable(cursor_type="row", zebra_stripes=True)
        yield Footer()

    def on_mount(self) -> None:
        """Begin to sample."""
        self.query_one(DataTable).add_columns(*COLUMNS)
        self.run_worker(self._source.run(), exit_on_error=True)
        self.set_interval(REFRESH_S, self.show)

    def action_sort(self) -> None:
        """Sort by the next criterion."""
        self._sort = SORTS[(SORTS.index(self._sort) + 1) % len(SORTS)]
        self.show()

    def action_idle(self) -> None:
        """Show or hide channels on which nothing happens."""
        self._idle = not self._idle
        self.show()

    def show(self) -> None:
        """Show the latest frame."""
        feed = self._source.feed
        frame = last_frame(feed)
        lines = ordered(lines_of(feed.picture(), frame, idle=self._idle), self._sort)
        self.query_one("#state", Static).update("\n".join(map(printable, state_lines(feed.state))))
        self.query_one("#knot", Static).update("\n".join(map(printable, knot_lines(frame))))
        table = self.query_one(DataTable)
        row = table.cursor_row
        table.clear()
        knot = in_knot(frame)
        for line in sorted(lines, key=lambda line: not _is_held(line, knot)):
            style = "bold red" if _is_held(line, knot) else "yellow" if line[5] > 0 else ""
            table.add_row(*(rich_text(str(cell), style) for cell in line))
        table.move_cursor(row=min(row, max(0, len(lines) - 1)))


def lines_of(
    picture: dict[str, Any], frame: dict[str, Any] | None, *, idle: bool = False
) -> list[Line]:
    """Return the lines of the table, in the order of the channels."""
    dropped = {} if frame is None else {entry[0]: entry[1] for entry in frame["drops"]}
    rows: dict[int, list[Any]] = {}
    for row in () if frame is None else frame["rows"]:
        rows.setdefault(row[0], []).append(row)
    lines: list[Line] = []
    for i, channel in enumerate(picture["channels"]):
        nothing = [(i, 0, 0, 0, 0, 0)] if idle or i in dropped else []
        for _, priority, load, paused, queue, buffer in rows.get(i, nothing):
            ends = (channel["name"], channel["from"], channel["to"])
            counted = (load / 10, paused / 10, queue, buffer, dropped.get(i, 0))
            lines.append((*ends, priority, *counted))
    return lines


def ordered(lines: list[Line], by: str) -> list[Line]:
    """Return the lines sorted by one of :data:`SORTS`; ``name`` keeps the order of channels."""
    column = _KEYS.get(by)
    if column is None:
        return lines
    return sorted(lines, key=lambda line: -float(line[column]))


def state_lines(state: dict[str, Any]) -> list[str]:
    """Return one line for each part that runs, then problems, what to do, and notes.

    Problems, advice and notes are those of ``knotless status``.
    """
    lines = []
    for part in ("fabric", "controller", "emulator"):
        status = state.get(part)
        if status is None:
            continue
        if "why" in status:
            lines.append(f"{part}: {status['why']}")
        elif part == "controller":
            ready = "ready" if status["ready"] else "installing rules"
            lines.append(f"controller: {ready}, {status['engine']}, {status['flow_control']}")
        elif part == "emulator":
            lines.append(f"emulator: {'valid' if status['valid'] else 'not valid'}")
        else:
            lines.append(f"fabric: {status['name']}")
    lines += [f"problem: {text}" for text in state.get("problems") or ()]
    lines += [f"to do: {advice['do']}: {advice['command']}" for advice in state.get("advice") or ()]
    return lines + list(state.get("notes") or ())


async def once(source: Source, limit_s: float = ONCE_LIMIT_S) -> tuple[list[str], list[Line]]:
    """Return the texts and the channels of the view, when each part has answered or time is up.

    ``limit_s`` is the time. Channels of a deadlock come first, then the busiest.
    """
    sampling = asyncio.create_task(source.run())
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                while not _is_complete(source.feed):
                    await asyncio.sleep(ONCE_POLL_S)
    finally:
        sampling.cancel()
        with suppress(asyncio.CancelledError):
            await sampling
    frame = last_frame(source.feed)
    lines = ordered(lines_of(source.feed.picture(), frame), SORTS[0])
    held = in_knot(frame)
    lines.sort(key=lambda line: not _is_held(line, held))
    return [*state_lines(source.feed.state), *knot_lines(frame)], lines


def _is_complete(feed: Feed) -> bool:
    """Return whether a feed shows all parts: those that do not answer say why."""
    state = feed.state
    if not (state.get("fabric") or {}).get("running", True):
        return True
    if "controller" not in state or "fabric" not in state:
        return False
    emulator = state.get("emulator", {})
    return emulator is None or "why" in emulator or feed.history.end > feed.history.first


def last_frame(feed: Feed) -> dict[str, Any] | None:
    """Return the last frame of a feed."""
    frames = json.loads(feed.history.frames(max(0, feed.history.end - 1), 1))
    return frames[0] if frames else None


def in_knot(frame: dict[str, Any] | None) -> set[str]:
    """Return the channels of a deadlock, with their priorities."""
    return set() if frame is None or frame["knot"] is None else set(frame["knot"]["members"])


def _is_held(line: Line, knot: set[str]) -> bool:
    """Return whether a line is of a channel in a deadlock; under PAUSE all are of priority 0."""
    return any(f"{line[0]}/{priority}" in knot for priority in (line[3], 0))


def knot_lines(frame: dict[str, Any] | None) -> list[str]:
    """Return the explanation of a deadlock: who waits for whom, with which flows."""
    knot = None if frame is None else frame["knot"]
    if knot is None:
        return []
    cycle = knot["cycle"]
    lines = [f"DEADLOCK since {knot['since_us'] / 1e6:.3f} s of virtual time:"]
    for channel, wanted in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
        flows = [f"{flow['from']} to {flow['to']}" for flow in knot["waiting"].get(channel, ())]
        holds = f"; it holds {', '.join(flows[:4])}" if flows else ""
        lines.append(f"  {channel} waits for {wanted}{holds}")
    return lines
