"""Calls of the hub: when they come, in which order, and what fails in them."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys

import pytest

from knotless.controller import runtime
from knotless.controller.green.hub import Hub, SelectorHub
from tests.support import REPOSITORY
from tests.support.panics import PANIC, PanicException


def test_calls_come_when_they_are_due_and_equal_times_in_their_order(each_hub: Hub) -> None:
    calls: list[str] = []
    each_hub.call_later(0.02, calls.append, "last")
    for name in "abc":
        each_hub.call_later(0, calls.append, name)
    each_hub.call_later(0.01, calls.append, "later")
    each_hub.call_later(0, calls.append, "canceled").cancel()
    runtime.sleep(0.03)
    assert calls == ["a", "b", "c", "later", "last"]


def test_calls_without_end_keep_no_descriptor_waiting(each_hub: Hub) -> None:
    one, other = socket.socketpair()
    with one, other:
        event, calls = runtime.Event(), []

        def again() -> None:
            calls.append(each_hub.call_later(0, again))

        again()
        watch = each_hub.watch(one.fileno(), event.set, writing=False)
        other.send(b"!")
        with runtime.time_limit(60):
            event.wait()
        watch.cancel()
        calls[-1].cancel()


def test_a_watch_sees_each_time_and_the_end_until_it_is_canceled(each_hub: Hub) -> None:
    one, other = socket.socketpair()
    with one:
        seen: list[bytes] = []
        event = runtime.Event()

        def read() -> None:
            seen.append(one.recv(1))
            event.set()

        watch = each_hub.watch(one.fileno(), read, writing=False)
        other.send(b"a")
        other.send(b"b")
        other.close()
        while b"" not in seen:
            event.clear()
            assert event.wait(60)
        watch.cancel()
        watch.cancel()
        count = len(seen)
        runtime.sleep(0.01)
        assert seen[:3] == [b"a", b"b", b""]
        assert len(seen) == count


def test_canceled_calls_are_freed() -> None:
    hub = SelectorHub()
    for _ in range(10_000):
        hub.call_later(3600, print).cancel()
    assert len(hub.timers) < 1500


@pytest.mark.parametrize("kind", [ValueError, PanicException])
def test_a_call_that_fails_is_logged_and_others_come(
    kind: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    from knotless.controller.green import hub as hubs

    def fail() -> None:
        raise kind(PANIC)

    calls: list[int] = []
    hubs.current().call_later(0, fail)
    hubs.current().call_later(0, calls.append, 1)
    with caplog.at_level(logging.ERROR):
        runtime.sleep(0)
        runtime.sleep(0)
    assert calls == [1]
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [kind]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_process_reaches_its_main_thread_and_threads_can_still_be_ended(
    each_hub: Hub, kind: type[BaseException]
) -> None:
    ended: list[str] = []

    def wait() -> None:
        try:
            runtime.sleep(3600)
        finally:
            runtime.sleep(0)  # it may still wait
            ended.append("waiting")

    def interrupt() -> None:
        raise kind

    waiting = runtime.spawn(wait)
    runtime.sleep(0)
    runtime.spawn(interrupt)
    with pytest.raises(kind):
        runtime.sleep(3600)
    waiting.kill()
    runtime.join([waiting])
    assert ended == ["waiting"]
    del each_hub


def test_a_broken_pipe_wakes_its_writer(each_hub: Hub) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    while True:
        try:
            os.write(writer, b"x" * 4096)
        except BlockingIOError:
            break
    event = runtime.Event()
    watch = each_hub.watch(writer, event.set, writing=True)
    each_hub.call_later(0, os.close, reader)
    assert event.wait(60)
    watch.cancel()
    os.close(writer)


PROGRAM = """
import sys
sys.modules.update(dict.fromkeys(["eventlet", "ryu"]))  # cannot be imported
from knotless.controller import runtime
thread = runtime.spawn(runtime.in_thread, sum, [1, 2])
with runtime.time_limit(60):
    print(thread.wait(), runtime.together(str.upper, ["a", "b"]))
"""


def test_it_needs_neither_eventlet_nor_ryu() -> None:
    words = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout == "3 ['A', 'B']\n"


PATCHED = """
import eventlet
eventlet.monkey_patch()
from knotless.controller import runtime
from knotless.controller.green import hub
print(type(hub.current()).__name__)
import time
beats = []
def beat():
    while True:
        beats.append(1)
        time.sleep(0.001)  # Eventlet's: others go on
eventlet.spawn(beat)
def work():
    while len(beats) < 3:
        hub.unpatched("time").sleep(0.001)
    return "worked"
print(runtime.in_thread(work))
"""


def test_where_eventlet_has_changed_the_library_its_hub_is_shared() -> None:
    words = [sys.executable, "-W", "ignore", "-c", PATCHED]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout == "EventletHub\nworked\n"
