"""Programs with the preloaded library see the time that the clock page says."""

from __future__ import annotations

import json
import mmap
import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from knotless.emulation.virtual_clock import LIBRARY

SLOW_DOWN = 10.0
MAGIC = int.from_bytes(b"knclock1", "big")
NO_LIMIT = 2**64 - 1

PROGRAM = r"""
import ctypes, errno, json, os, select, signal, socket, struct, sys, threading, time

def took(wait):
    before = time.monotonic()
    wait()
    return time.monotonic() - before

def alarm(seconds):
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.pause()

def limited(seconds):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.bind(("127.0.0.1", 0))
        micros = round(seconds * 1e6)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, micros))
        try:
            end.recv(10)
        except BlockingIOError:
            pass

def epoll(seconds):
    with select.epoll() as waiting:
        waiting.poll(seconds)

def poll(seconds):
    select.poll().poll(seconds * 1000)

def forked_alarm(seconds):
    # A child has no alarm of its parent, and can have one of its own.
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, seconds / 5)
    if (child := os.fork()) == 0:
        inherited = signal.getitimer(signal.ITIMER_REAL)[0]
        before = time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, seconds)
        signal.pause()
        os._exit(0 if inherited == 0 and time.monotonic() - before >= seconds else 1)
    if os.waitpid(child, 0)[1] != 0:
        raise SystemExit("the child had the alarm of its parent")

def timer(seconds):
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.timerfd_create(time.CLOCK_MONOTONIC, 0)
    new = struct.pack("llll", 0, 0, 0, round(seconds * 1e9))
    assert libc.timerfd_settime(fd, 0, new, None) == 0
    assert select.select([fd], [], [])[0] == [fd]
    libc.close(fd)

def spec(seconds):
    return struct.pack("ll", int(seconds), round(seconds % 1 * 1e9))

def posix_timer(seconds):
    signal.signal(signal.SIGALRM, lambda *_: None)
    libc, made = ctypes.CDLL(None), ctypes.c_void_p()
    assert libc.timer_create(time.CLOCK_MONOTONIC, None, ctypes.byref(made)) == 0
    assert libc.timer_settime(made, 0, spec(0) + spec(seconds), None) == 0
    left = ctypes.create_string_buffer(32)
    assert libc.timer_gettime(made, left) == 0
    assert 0 < struct.unpack("4l", left)[3] <= seconds * 1e9
    signal.pause()
    assert libc.timer_delete(made) == 0

def lock(kind, taking, waiting):
    def wait(seconds):
        libc, made = ctypes.CDLL(None), ctypes.create_string_buffer(64)
        holder = threading.Thread(target=getattr(libc, f"pthread_{kind}_{taking}"), args=(made,))
        holder.start()
        holder.join()
        late = errno.ETIMEDOUT
        until = spec(time.clock_gettime(time.CLOCK_REALTIME) + seconds)
        assert getattr(libc, f"pthread_{kind}_timed{waiting}")(made, until) == late
        until = spec(time.monotonic() + seconds)
        clocked = getattr(libc, f"pthread_{kind}_clock{waiting}")
        assert clocked(made, time.CLOCK_MONOTONIC, until) == late
    return wait

def futex(seconds):
    libc, word = ctypes.CDLL(None, use_errno=True), ctypes.c_int(0)
    number = 202 if os.uname().machine == "x86_64" else 98
    wait, wait_bitset, private = 0, 9, 128
    for operation, until in ((wait, seconds), (wait_bitset, time.monotonic() + seconds)):
        before = time.monotonic()
        words = (ctypes.byref(word), operation | private, 0, spec(until), None, -1)
        assert libc.syscall(number, *words) == -1
        assert ctypes.get_errno() == errno.ETIMEDOUT
    assert libc.syscall(number, ctypes.byref(word), wait, 1, spec(seconds), None, 0) == -1
    assert ctypes.get_errno() == errno.EAGAIN

def semaphore(seconds):
    threading.Semaphore(0).acquire(timeout=seconds)

SO_TIMESTAMPNS = 35

def stamped():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.bind(("127.0.0.1", 0))
        end.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        # The kernel begins to stamp packets a moment later.
        time.sleep(0.02)
        before = time.time()
        end.sendto(b"x", end.getsockname())
        time.sleep(0.01)
        _, parts, _, _ = end.recvmsg(10, 100)
        seconds, ns = struct.unpack("ll", parts[0][2])
        return [before, seconds + ns / 1e9, time.time()]

wanted = float(sys.argv[1])
waits = {
    "sleep": time.sleep, "poll": poll, "epoll": epoll, "timer": timer, "alarm": alarm,
    "forked alarm": forked_alarm, "posix timer": posix_timer, "futex": futex,
    "mutex": lock("mutex", "lock", "lock"), "read lock": lock("rwlock", "wrlock", "rdlock"),
    "write lock": lock("rwlock", "rdlock", "wrlock"),
    "semaphore": semaphore, "limited": limited,
    "select": lambda seconds: select.select([], [], [], seconds),
}
chosen = sys.argv[2]
if chosen == "stamped":
    print(json.dumps(stamped()))
else:
    print(json.dumps(took(lambda: waits[chosen](wanted))))
"""


class Page:
    """The emulator's side of a clock page, in one thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(bytes(4096))
        self._start = time.monotonic_ns()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._publish)

    def __enter__(self) -> Page:
        with self.path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 4096)
        self._moment(0)
        slow_down = struct.unpack("<Q", struct.pack("<d", SLOW_DOWN))[0]
        self._write(16, struct.pack("<3Q", self._start, slow_down, NO_LIMIT))
        self._write(0, struct.pack("<Q", MAGIC))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()
        self._memory.close()

    def _write(self, address: int, data: bytes) -> None:
        self._memory[address : address + len(data)] = data

    def _publish(self) -> None:
        count = 1
        while not self._ends.wait(0.001):
            self._moment(count)
            count += 1

    def _moment(self, number: int) -> None:
        real = time.monotonic_ns()
        virtual = int((real - self._start) / SLOW_DOWN)
        self._write(8, struct.pack("<Q", 2 * number + 1))
        self._write(48 + 16 * (number % 128), struct.pack("<2Q", real, virtual))
        self._write(40, struct.pack("<Q", number + 1))
        self._write(8, struct.pack("<Q", 2 * number + 2))


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    with Page(tmp_path / "clock") as page:
        yield page


def run(page: Path, *arguments: str) -> tuple[object, float]:
    """Return what the program prints, and the real seconds that it took."""
    environment = {**os.environ, "LD_PRELOAD": str(LIBRARY), "KNOTLESS_CLOCK": str(page)}
    before = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), time.monotonic() - before


@pytest.mark.parametrize(
    "wait",
    [
        *("sleep", "select", "poll", "epoll", "timer", "alarm", "forked alarm", "posix timer"),
        *("semaphore", "mutex", "read lock", "write lock", "futex", "limited"),
    ],
)
def test_a_wait_lasts_as_long_as_virtual_time_says(page: Page, wait: str) -> None:
    measured, real_s = run(page.path, "0.05", wait)
    assert isinstance(measured, float)
    assert measured >= 0.0499
    assert real_s >= 0.05 * SLOW_DOWN


def test_time_stamps_of_packets_are_virtual(page: Page) -> None:
    measured, real_s = run(page.path, "0", "stamped")
    assert isinstance(measured, list)
    before, stamp, after = measured
    # The page of the test has one moment every millisecond of real time.
    assert before - 0.0005 <= stamp <= after - 0.009
    assert real_s >= 0.01 * SLOW_DOWN


def test_a_sleeping_program_of_the_system_waits_too(page: Page) -> None:
    environment = {**os.environ, "LD_PRELOAD": str(LIBRARY), "KNOTLESS_CLOCK": str(page.path)}
    before = time.monotonic()
    subprocess.run(["sleep", "0.05"], env=environment, check=True)
    assert time.monotonic() - before >= 0.05 * SLOW_DOWN
    before = time.monotonic()
    assert subprocess.run(["timeout", "0.05", "sleep", "60"], env=environment).returncode == 124
    assert time.monotonic() - before >= 0.05 * SLOW_DOWN


def test_without_a_page_time_is_real(tmp_path: Path) -> None:
    measured, _ = run(tmp_path / "none", "0.02", "sleep")
    assert isinstance(measured, float)
    assert measured >= 0.02
