"""Waiting of the controller: limits of time, queues, threads and signals."""

from __future__ import annotations

import _imp
import errno
import json
import os
import signal
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from knotless.base.errors import FaultError, KnotlessError
from knotless.controller import runtime
from tests.support.panics import PANIC, PanicException
from tests.support.waiting import HANG_S

pytestmark = pytest.mark.usefixtures("each_hub")


def test_a_limit_ends_what_waits_too_long() -> None:
    with pytest.raises(runtime.TimeLimitError, match="within 0.01 s"), runtime.time_limit(0.01):
        runtime.Event().wait()


def test_the_outer_limit_passes_through_the_inner_one() -> None:
    ended = []

    def wait() -> None:
        try:
            with runtime.time_limit(60):
                runtime.Event().wait()
        finally:
            ended.append("inner")

    with pytest.raises(runtime.TimeLimitError, match="within 0.01 s"), runtime.time_limit(0.01):
        wait()
    assert ended == ["inner"]


def test_a_queue_refuses_what_is_too_much_and_gives_up_waiting() -> None:
    queue = runtime.Queue(2)
    assert [queue.put(number) for number in range(3)] == [True, True, False]
    assert [queue.get(1), queue.get(1)] == [0, 1]
    with pytest.raises(runtime.TimeLimitError):
        queue.get(0.01)


def test_green_threads_wait_together_and_keep_their_order() -> None:
    event, waiting = runtime.Event(), []

    def wait(number: int) -> int:
        waiting.append(number)
        if len(waiting) == 3:
            event.set()
        event.wait()
        return number * 10

    assert runtime.together(wait, [1, 2, 3]) == [10, 20, 30]


def test_other_green_threads_go_on_while_a_thread_of_the_system_works() -> None:
    here, release = threading.get_ident(), runtime.blocking_subprocess().threading.Event()
    runtime.spawn(release.set)
    there = runtime.in_thread(lambda: release.wait(HANG_S) and threading.get_ident())
    assert there not in (False, here)


def test_a_signal_wakes_the_thread_that_waits_for_it() -> None:
    before = signal.getsignal(signal.SIGUSR1)
    try:
        received = runtime.signals(signal.SIGUSR1)
        thread = runtime.spawn(next, received)
        runtime.sleep(0)
        os.kill(os.getpid(), signal.SIGUSR1)
        with runtime.time_limit(60):
            runtime.join([thread])
        received.close()
        assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN, "nobody waits any more"
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_unix_socket_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        runtime.ask_line(tmp_path / "socket", b"\n", 1, 10)


def test_a_unix_socket_is_for_its_owner_alone_and_replaces_a_dead_one(tmp_path: Path) -> None:
    path = tmp_path / "controller.sock"
    first = runtime.listen(path, 1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(KnotlessError, match="another process does; stop that"):
        runtime.refuse_taken_socket(path, "OpenFlow")
    first.close()
    assert path.is_socket(), "as after the end of a process"
    runtime.refuse_taken_socket(path, "OpenFlow")
    runtime.listen(path, 1).close()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("file", "it is not a socket"),
        ("nowhere/controller.sock", "there is no folder"),
        ("x" * 108, "at most 107 bytes"),
    ],
)
def test_a_path_that_cannot_be_a_socket_is_one_line(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "file").write_text("kept")
    with pytest.raises(KnotlessError, match=words) as caught:
        runtime.refuse_taken_socket(tmp_path / name, "OpenFlow")
    assert "\n" not in str(caught.value)
    assert (tmp_path / "file").read_text() == "kept"


def test_an_exception_ends_its_thread_only_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise ValueError("odd")

    runtime.join([runtime.spawn(fail)])
    (record,) = caplog.records
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "odd"


def test_a_thread_that_is_ended_ends_quietly(caplog: pytest.LogCaptureFixture) -> None:
    ended: list[object] = []
    thread = runtime.spawn(runtime.Event().wait)
    thread.link(lambda _thread: ended.append(thread))
    runtime.sleep(0)
    thread.kill()
    runtime.sleep(0)
    assert ended == [thread]
    assert caplog.records == []


def test_threads_end_together_with_those_that_they_begin() -> None:
    threads = runtime.Threads()
    ended: list[str] = []

    def wait(name: str) -> None:
        try:
            runtime.Event().wait()
        finally:
            ended.append(name)

    def begin_another() -> None:
        try:
            runtime.Event().wait()
        finally:
            threads.spawn(wait, "begun at the end")

    threads.spawn(wait, "first")
    threads.spawn(begin_another)
    threads.spawn(wait, "third")
    runtime.sleep(0)
    threads.spawn(wait, "before it runs")
    threads.spawn_after(3600, wait, "later")
    threads.close()
    assert ended[0] == "first"
    assert set(ended) <= {"first", "third", "before it runs", "begun at the end"}
    threads.close()
    done = threads.spawn(ended.clear)
    runtime.join([done])
    assert ended == [], "others can begin"


def test_an_import_elsewhere_holds_up_no_call() -> None:
    _imp.acquire_lock()
    try:
        with runtime.time_limit(HANG_S):
            assert runtime.in_thread(str, 1) == "1"
    finally:
        _imp.release_lock()


def _fail(kind: type[BaseException]) -> None:
    raise kind(PANIC)


def test_a_panic_of_the_core_in_a_thread_of_the_system_reaches_its_caller() -> None:
    with pytest.raises(PanicException, match="index out of bounds"), runtime.time_limit(60):
        runtime.in_thread(_fail, PanicException)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_what_would_end_the_thread_reaches_the_caller_as_a_fault(kind: type[BaseException]) -> None:
    with pytest.raises(FaultError, match=f"^a computation failed: {kind.__name__}: index out"):
        runtime.in_thread(_fail, kind)


@contextmanager
def answering(path: Path, *answers: bytes) -> Iterator[list[bytes]]:
    """Answer requests on a socket; yields what has come. The last answer ends the connection."""
    requests: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as server:
        folder = os.open(path.parent, os.O_PATH)
        server.bind(f"/proc/self/fd/{folder}/{path.name}")
        os.close(folder)
        server.listen()

        def answer() -> None:
            connection, _ = server.accept()
            with connection, suppress(BrokenPipeError):
                for text in answers:
                    requests.append(connection.recv(1 << 16))
                    for part in text.split(b"|"):
                        connection.sendall(part)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield requests
        thread.join(HANG_S)


DONE = b'{"id":%d,"result":|"","error":null}'


def test_open_vswitch_performs_commands_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "s.ctl"
    with answering(path, DONE % 0, DONE % 1) as requests:
        assert runtime.command_open_vswitch(path, ["a/b", "c"]) == 0
    assert [json.loads(one) for one in requests] == [
        {"id": 0, "method": "a/b", "params": []},
        {"id": 1, "method": "c", "params": []},
    ]


@pytest.mark.parametrize(
    "answer",
    [
        b'{"id":0,"result":null,"error":"no such command"}',
        b'{"id":7,"result":"","error":null}',
        b"[]",
        b"{",
        b"",
        b"\xff\xfe{}",
        b"[" * (1 << 21),
    ],
    ids=range(7),
)
def test_what_open_vswitch_does_not_do_is_told(tmp_path: Path, answer: bytes) -> None:
    path = tmp_path / "s.ctl"
    with answering(path, answer):
        assert runtime.command_open_vswitch(path, ["a/b", "c"]) is None


def test_a_process_of_open_vswitch_that_is_gone(tmp_path: Path) -> None:
    assert runtime.command_open_vswitch(tmp_path / "none", ["a"]) == errno.ENOENT
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "old"))
    assert runtime.command_open_vswitch(tmp_path / "old", ["a"]) == errno.ECONNREFUSED


def test_the_path_of_a_socket_may_be_long(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 200)
    folder.mkdir()
    with answering(folder / "s.ctl", DONE % 0):
        assert runtime.command_open_vswitch(folder / "s.ctl", ["a"]) == 0
