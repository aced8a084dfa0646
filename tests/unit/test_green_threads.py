"""What tests leave in Eventlet's hub is found by name, and ended."""

from __future__ import annotations

import subprocess
import sys

import eventlet

from tests.support import REPOSITORY
from tests.support.green_threads import end, going_on, left_since


def wait() -> None:
    eventlet.Event().wait()


def sleep_long() -> None:
    eventlet.sleep(3600)


def test_what_is_left_has_names_and_can_be_ended() -> None:
    before = going_on().keys()
    eventlet.spawn(wait)
    eventlet.spawn(sleep_long)
    eventlet.sleep(0)
    eventlet.spawn_after(3600, wait)
    eventlet.hubs.get_hub().schedule_call_global(3600, sleep_long)
    left = left_since(before)
    end(left)
    assert sorted(left.values()) == [
        "a timer for sleep_long",
        "sleep_long",
        "wait",
        "wait, which has not begun",
    ]
    assert left_since(before) == {}


def test_a_thread_that_ends_at_once_is_not_left() -> None:
    before = going_on().keys()
    eventlet.spawn(eventlet.sleep)
    eventlet.sleep(0)
    assert left_since(before) == {}


def test_eventlet_is_not_imported_for_it() -> None:
    code = (
        "import sys; from tests.support.green_threads import going_on;"
        "assert going_on() == {}; assert 'eventlet' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=REPOSITORY)
