"""Work in a thread with the priority of the main one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from controller.urgent import with_own_priority

OF_THIS_THREAD = 0


@pytest.fixture
def in_thread() -> Iterator[ThreadPoolExecutor]:
    """Give this process's main thread another policy than the thread in which calls are made."""
    main = os.getpid()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(os.getpid).result()  # starts the thread
        before = os.sched_getscheduler(main)
        os.sched_setscheduler(main, os.SCHED_BATCH, os.sched_param(0))
        try:
            yield pool
        finally:
            os.sched_setscheduler(main, before, os.sched_param(0))


def test_a_thread_has_the_priority_of_the_main_one_during_the_call(
    in_thread: ThreadPoolExecutor,
) -> None:
    def policy() -> int:
        return in_thread.submit(os.sched_getscheduler, OF_THIS_THREAD).result()

    before = policy()
    assert before != os.SCHED_BATCH
    during = in_thread.submit(with_own_priority, os.sched_getscheduler, OF_THIS_THREAD).result()
    assert during == os.SCHED_BATCH
    assert policy() == before


def test_it_gets_its_own_priority_back_after_an_error(in_thread: ThreadPoolExecutor) -> None:
    before = in_thread.submit(os.sched_getscheduler, OF_THIS_THREAD).result()
    failed = in_thread.submit(with_own_priority, int, "x")
    with pytest.raises(ValueError, match="invalid literal"):
        failed.result()
    assert in_thread.submit(os.sched_getscheduler, OF_THIS_THREAD).result() == before


def test_the_call_is_made_if_the_priority_is_not_permitted(
    in_thread: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = os.sched_setscheduler

    def refuse(pid: int, policy: int, param: os.sched_param) -> None:
        if policy == os.SCHED_BATCH:
            raise PermissionError
        own(pid, policy, param)

    with monkeypatch.context() as patched:
        patched.setattr(os, "sched_setscheduler", refuse)
        assert in_thread.submit(with_own_priority, int, "7").result() == 7
