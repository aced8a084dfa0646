"""Work in another process, and how objects get there and back."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import psutil
import pytest

from knotless.controller.updates.worker import (
    MAX_STARTS,
    NOTHING,
    Packing,
    Worker,
    WorkerError,
)
from tests.support.waiting import Limit


@dataclass(frozen=True)
class Point:
    x: int
    name: list[str]

    @cached_property
    def lock(self) -> object:
        """A value that no other process can have."""
        return (value for value in [self.x])


def test_what_both_have_stays_the_same_object() -> None:
    name = ["a"]
    packing = Packing([name])
    point = packing.unpack(packing.pack(Point(3, name)))
    assert point == Point(3, ["a"])
    assert point.name is name


def test_cached_values_are_not_sent() -> None:
    point = Point(3, [])
    assert point.lock
    back = NOTHING.unpack(NOTHING.pack(point))
    assert back == point
    assert "lock" not in vars(back)


def _other(point: Point, name: list[str]) -> Point:
    assert point.name is name, "both arguments refer to what was sent before"
    return Point(os.getpid(), name)


def _nice() -> int:
    sys.stdout.write("this must not disturb\n")
    return os.nice(0)


def _end() -> NoReturn:
    os._exit(3)


def test_calls_run_in_another_process_of_low_priority() -> None:
    background, name = Worker(), ["a"]
    packing = Packing([name])
    for _ in range(2):
        back = packing.unpack(background.call(packing, _other, Point(1, name), name))
        assert back.x != os.getpid()
        assert back.name is name
        assert NOTHING.unpack(background.call(NOTHING, _nice)) == 19
    background.close()


def test_a_process_that_ended_is_started_again() -> None:
    background = Worker()
    first = NOTHING.unpack(background.call(NOTHING, os.getpid))
    psutil.Process(first).kill()
    second = NOTHING.unpack(background.call(NOTHING, os.getpid))
    assert second not in (first, os.getpid())
    background.close()


def test_a_process_that_always_ends_is_given_up() -> None:
    background = Worker()
    for _ in range(2):
        with pytest.raises(WorkerError, match=f"has ended {MAX_STARTS} times"):
            background.call(NOTHING, _end)


def test_the_process_outlives_the_thread_that_started_it() -> None:
    background = Worker()
    pids = []
    for _ in range(2):
        thread = threading.Thread(
            target=lambda: pids.append(NOTHING.unpack(background.call(NOTHING, os.getpid)))
        )
        thread.start()
        thread.join()
    assert len(set(pids)) == 1
    background.close()


PARENT = """
from knotless.controller.updates.worker import NOTHING, Worker
from time import sleep
from tests.unit.controller.updates.test_worker import _nice
background = Worker()
background.call(NOTHING, _nice)
print(background._process.pid, flush=True)
background.call(NOTHING, sleep, 1000)
"""


def test_it_ends_with_the_controller() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.communicate()
    _, alive = psutil.wait_procs([child], timeout=30)
    if alive:  # an orphan that nobody waits for
        limit = Limit()
        while child.is_running() and child.status() != psutil.STATUS_ZOMBIE:
            limit.check("the end of the process")
