"""What tests leave in the hub is found by name, and ended."""

from __future__ import annotations

import subprocess
import sys

from knotless.controller import runtime
from knotless.controller.green import hub as hubs
from tests.support import REPOSITORY
from tests.support.green_threads import end, going_on, left_since


def wait() -> None:
    runtime.Event().wait()


def sleep_long() -> None:
    runtime.sleep(3600)


def test_what_is_left_has_names_and_can_be_ended() -> None:
    before = going_on().keys()
    runtime.spawn(wait)
    runtime.spawn(sleep_long)
    runtime.sleep(0)
    runtime.Threads().spawn_after(3600, wait)
    hubs.current().call_later(3600, sleep_long)
    left = left_since(before)
    end(left)
    assert sorted(left.values()) == [
        "a call of sleep_long",
        "sleep_long",
        "wait",
        "wait, which has not begun",
    ]
    assert left_since(before) == {}


def test_a_thread_that_ends_at_once_is_not_left() -> None:
    before = going_on().keys()
    runtime.spawn(runtime.sleep, 0)
    runtime.sleep(0)
    assert left_since(before) == {}


def test_the_hub_is_not_imported_for_it() -> None:
    code = (
        "import sys; from tests.support.green_threads import going_on;"
        "assert going_on() == {}; assert 'knotless.controller.green.hub' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=REPOSITORY)
