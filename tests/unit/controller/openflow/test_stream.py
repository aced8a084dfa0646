"""The stream of one connection: whole messages of a switch, and the lines of the log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from knotless.controller.openflow import constants as ofp
from knotless.controller.openflow.guard import Limits
from knotless.controller.openflow.stream import GuardedStream, LimitedLog
from tests.support.openflow_messages import VALID, message
from tests.support.switch_socket import SwitchSocket


class Count:
    """A counter."""

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1) -> None:
        self.value += amount


class Counters:
    """The counters of a stream."""

    def __init__(self) -> None:
        self.dropped, self.closed = Count(), Count()


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.WARNING, logger="knotless.openflow"):
        yield caplog


def stream_of(socket: Any, counters: Counters | None = None) -> GuardedStream:
    return GuardedStream(socket, "here", LimitedLog(), counters or Counters())


def test_messages_are_whole_however_they_arrive() -> None:
    text = VALID["hello"] + VALID["echo request"]
    stream = stream_of(SwitchSocket(text[:5], text[5:20], text[20:]))
    received = [stream.receive() for _ in range(4)]
    assert received == [[], [VALID["hello"]], [VALID["echo request"]], None]


def test_a_malformed_message_is_the_end(log: pytest.LogCaptureFixture) -> None:
    counters = Counters()
    stream = stream_of(SwitchSocket(VALID["hello"], message(77), VALID["echo request"]), counters)
    assert stream.receive() == [VALID["hello"]]
    assert stream.receive() is None
    assert counters.closed.value == 1
    assert log.messages == [
        "the connection from here is closed: "
        "message of type 77, which switches do not send to controllers"
    ]


def test_dropped_packets_are_reported_at_the_end(log: pytest.LogCaptureFixture) -> None:
    burst, counters = int(Limits().unasked_burst), Counters()
    # So many that a slow machine, which lets more through, drops some as well.
    socket = SwitchSocket(VALID["packet-in"] * (10 * burst))
    stream = stream_of(socket, counters)
    while stream.receive() is not None:
        pass
    stream.close()
    assert socket.closed
    assert counters.dropped.value == stream.dropped > 0
    (line,) = log.messages
    assert line.startswith("the connection from here sent ")
    assert line.endswith(" packets or echo requests above its rate: dropped")


def test_many_lines_become_one(log: pytest.LogCaptureFixture) -> None:
    limited = LimitedLog()
    for number in range(100):
        limited.warn(number, "is closed")
    assert log.messages == ["the connection from 0 is closed"]


@pytest.mark.parametrize("error", [TimeoutError(), ConnectionResetError(), ValueError("closed")])
def test_what_the_system_reports_ends_nothing_or_all(error: Exception) -> None:
    stream = stream_of(SwitchSocket(error))
    assert stream.receive() == ([] if isinstance(error, TimeoutError) else None)


def test_who_says_nothing_has_no_greeting() -> None:
    assert stream_of(SwitchSocket()).greeting() is None
    assert stream_of(SwitchSocket(message(ofp.OFPT_HELLO, version=9))).greeting() is None
    hello = VALID["hello"]
    assert stream_of(SwitchSocket(hello[:3], TimeoutError(), hello[3:])).greeting() == [hello]
