"""Green threads: how they end, and that nothing wakes a wait but what it waits for."""

from __future__ import annotations

import gc
import weakref

import pytest

from knotless.controller import runtime
from knotless.controller.green.hub import Hub

pytestmark = pytest.mark.usefixtures("each_hub")


def test_what_would_have_ended_a_wait_ends_no_later_one() -> None:
    event, later, ended = runtime.Event(), runtime.Event(), []

    def wait() -> None:
        try:
            event.wait()
        finally:
            ended.append(later.wait(0.02))

    thread = runtime.spawn(wait)
    runtime.sleep(0)
    event.set()
    thread.kill()
    runtime.join([thread])
    assert ended == [False]


def test_who_kills_is_woken_once() -> None:
    """The thread that kills is killed itself before it goes on."""
    ended: list[object] = []

    def linger() -> None:
        try:
            runtime.sleep(3600)
        finally:
            runtime.sleep(0.02)

    def kill() -> None:
        try:
            lingering.kill()
        finally:
            ended.append(runtime.Event().wait(0.02))

    lingering = runtime.spawn(linger)
    runtime.sleep(0)
    killing = runtime.spawn(kill)
    killing.link(lambda _thread: ended.append("killing"))
    runtime.sleep(0)
    killing.kill()
    runtime.join([lingering, killing])
    assert ended == [False, "killing"]


def test_a_thread_ends_at_the_place_where_it_waits_and_calls_its_links_once() -> None:
    order: list[str] = []

    def wait() -> None:
        try:
            runtime.sleep(3600)
        finally:
            order.append("cleaned up")

    thread = runtime.spawn(wait)
    thread.link(lambda ended, name: order.append(f"{name} {ended is thread}"), "linked")
    runtime.sleep(0)
    thread.kill()
    order.append("killed")
    thread.kill()
    thread.link(lambda _: order.append("late"))
    assert order == ["cleaned up", "linked True", "killed", "late"]


def test_what_is_killed_or_canceled_before_it_begins_never_does() -> None:
    order: list[str] = []
    threads = runtime.Threads()
    one = threads.spawn(order.append, "one")
    later = threads.spawn_after(0.001, order.append, "later")
    one.link(lambda _: order.append("one has ended"))
    one.kill()
    later.cancel()
    runtime.sleep(0.005)
    assert order == ["one has ended"]
    begun = threads.spawn(runtime.sleep, 0.001)
    runtime.sleep(0)
    begun.cancel()
    assert not begun.dead, "it is too late"
    runtime.join([begun])


def test_a_thread_that_kills_itself_has_ended() -> None:
    order: list[str] = []

    def end() -> None:
        runtime.current_thread().kill()
        order.append("went on")

    runtime.join([runtime.spawn(end)])
    assert order == []


def test_a_lock_goes_to_who_waits_first_and_past_who_is_killed() -> None:
    lock, order = runtime.Lock(), []

    def hold(name: str) -> None:
        with lock:
            order.append(name)
            runtime.sleep(0)

    threads = [runtime.spawn(hold, name) for name in "abcd"]
    with lock:
        runtime.sleep(0)
        threads[1].kill()
    threads[0].kill()  # the lock is its own, and it does not know yet
    runtime.join(threads)
    assert order == ["c", "d"]
    with runtime.time_limit(60), lock:
        order.append("free")


def test_an_event_that_is_cleared_at_once_has_still_been_set() -> None:
    event, woken = runtime.Event(), []
    threads = [runtime.spawn(lambda: woken.append(event.wait(60))) for _ in range(2)]
    runtime.sleep(0)
    event.set()
    event.clear()
    runtime.join(threads)
    assert woken == [True, True]
    assert not event.is_set()
    assert not event.wait(0)


def test_together_raises_what_the_first_has_raised_and_ends_nobody() -> None:
    ended: list[int] = []

    def fail(number: int) -> None:
        runtime.sleep(0.001 * (5 - number))
        ended.append(number)
        if number:
            raise ValueError(number)

    with pytest.raises(ValueError, match="1"):
        runtime.together(fail, range(4))
    assert ended == [3, 2, 1, 0][: len(ended)]
    runtime.sleep(0.02)
    assert sorted(ended) == [0, 1, 2, 3]


def test_what_waits_within_a_limit_may_take_no_error_for_it() -> None:
    def wait() -> str:
        try:
            runtime.sleep(3600)
        except Exception:  # noqa: BLE001 - that is tested
            return "an error"
        return "waited"

    with pytest.raises(runtime.TimeLimitError), runtime.time_limit(0.001):
        wait()
    with runtime.time_limit(0.001):
        pass
    runtime.sleep(0.005)  # a limit that was kept does nothing later


def test_nothing_that_has_ended_waits_for_the_garbage_collector(each_hub: Hub) -> None:
    def work() -> None:
        with runtime.time_limit(60):
            runtime.Event().wait(0.001)

    gc.collect()
    gc.disable()
    try:
        thread = runtime.spawn(work)
        killed = runtime.spawn(runtime.sleep, 3600)
        refs = [weakref.ref(thread), weakref.ref(killed)]
        runtime.sleep(0)
        killed.kill()
        runtime.join([thread])
        del thread, killed
        runtime.sleep(0)
        assert [ref() for ref in refs] == [None, None]
    finally:
        gc.enable()
    del each_hub
