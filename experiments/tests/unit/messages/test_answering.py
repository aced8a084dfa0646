"""Hosts that answer before they take more, with an endpoint of the test."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from knotless_experiments.messages.answering import (
    FRAME_BYTES,
    HEAD,
    AnsweringHost,
    Message,
    MessageClass,
)

XOFF_FRAMES, XON_FRAMES = 20, 10
PAUSE, RESUME = b"pause", b"resume"


class Line:
    """An endpoint that has room for so many messages, and where PAUSE frames are sent."""

    def __init__(self) -> None:
        self.room = 0
        self.sent: list[int] = []
        self.inbox = deque[bytes]()
        self.pauses: list[bytes] = []

    def receive(self, _: float) -> Any:
        return SimpleNamespace(data=self.inbox.popleft()) if self.inbox else None

    def send(self, frame: Any, data: bytes = b"", **_: float) -> None:
        if not data:
            self.pauses.append(frame)
        elif not self.room:
            raise TimeoutError
        else:
            self.room -= 1
            self.sent.append(Message(*HEAD.unpack_from(data)).kind)


def host(reserve: int, outstanding: int | None, flows: Sequence[tuple[int, int]]) -> Any:
    """Return host 0 of two, whose requests (0) require replies (1), and its line."""
    about = {
        **{"mac": "", "pause": PAUSE.hex(), "resume": RESUME.hex(), "renew_s": 1},
        **{"xoff_bytes": XOFF_FRAMES * FRAME_BYTES, "xon_bytes": XON_FRAMES * FRAME_BYTES},
    }
    ask = {"hosts": [about, about], "flows": flows, "begun": [0]}
    line = Line()
    classes = [MessageClass(1, reserve, outstanding), MessageClass(None, 0, None)]
    return AnsweringHost(0, ask, classes, cast("Any", line), cast("Any", line)), line


def requests(count: int) -> list[bytes]:
    return [HEAD.pack(*Message(0, 0, 1, 0))] * count


def test_a_host_pauses_its_switch_until_replies_have_left() -> None:
    one, line = host(0, None, [(0, 1)])
    line.inbox.extend(requests(XOFF_FRAMES + 1))
    for now in (0.0, 0.5, 1.0):
        assert one.step(now), "replies are to be sent"
    assert (line.pauses, one.taken[1, 0]) == ([PAUSE, PAUSE], 0)
    line.room = XOFF_FRAMES - XON_FRAMES
    one.step(1.1)
    assert (line.pauses[2:], one.taken[1, 0]) == ([], XOFF_FRAMES - XON_FRAMES)
    line.room = 100
    one.step(1.2)
    assert (line.pauses[2:], one.taken[1, 0]) == ([RESUME], XOFF_FRAMES + 1)
    assert line.sent == [1] * (XOFF_FRAMES + 1) + [0] * (100 - XON_FRAMES - 1), "replies are first"
    assert one.peak_bytes == (XOFF_FRAMES + 1) * FRAME_BYTES


def test_a_host_takes_as_many_as_it_has_a_reserve_for() -> None:
    one, line = host(4, None, [])
    line.inbox.extend([*requests(5), HEAD.pack(*Message(1, 0, 0, 1))])
    one.step(0.0)
    assert (one.taken[1, 0], len(one.buffer)) == (4, 2), "a reply waits behind the fifth"
    line.room = 1
    one.step(0.1)
    assert (one.taken[1, 0], len(one.buffer), line.sent) == (5, 0, [1])


def test_a_host_has_no_more_unanswered_than_its_bound() -> None:
    one, line = host(0, 2, [(0, 1)])
    line.room = 9
    assert not one.step(0.0)
    assert line.sent == [0, 0]
    line.inbox.append(HEAD.pack(*Message(1, 0, 0, 1)))
    one.step(0.1)
    assert line.sent == [0, 0, 0]
