"""``knotless lab`` on a terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from emulation.names import Names
from tests.integration.conftest import FREE_PORTS, Knotless, Remains

pytestmark = pytest.mark.integration


class Lab:
    """``knotless lab`` at a terminal."""

    def __init__(self, *words: str) -> None:
        self._terminal, far = pty.openpty()
        self.process = subprocess.Popen(
            [str(Path(sys.executable).with_name("knotless")), "lab", *words],
            stdin=far,
            stdout=far,
            stderr=far,
            start_new_session=True,
            env={**os.environ, "TERM": "dumb"},
        )
        os.close(far)
        self.seen = ""

    def expect(self, text: str, within_s: float = 60) -> str:
        """Wait for ``text``; return what came before it."""
        deadline = time.monotonic() + within_s
        while text not in self.seen:
            left_s = deadline - time.monotonic()
            assert left_s > 0, f"no {text!r} in {self.seen!r}"
            if select.select([self._terminal], [], [], left_s)[0]:
                try:
                    piece = os.read(self._terminal, 4096)
                except OSError:
                    piece = b""
                assert piece, f"it ended without {text!r}: {self.seen!r}"
                self.seen += piece.decode(errors="replace")
        before, _, self.seen = self.seen.partition(text)
        return before

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def wait(self, within_s: float = 60) -> int:
        """Read until it ends, and return its exit status."""
        deadline = time.monotonic() + within_s
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.seen
            if select.select([self._terminal], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self._terminal, 4096).decode(errors="replace")
                except OSError:
                    continue
        return self.process.returncode

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._terminal)


@pytest.fixture
def lab(names: Names) -> Iterator[Callable[..., Lab]]:
    """Return a function that opens a lab under this test's name."""
    opened: list[Lab] = []

    def start(*words: str) -> Lab:
        opened.append(Lab(*words, "--name", names.name, *FREE_PORTS))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def test_lab_gives_the_prompt_and_leaves_nothing(
    lab: Callable[..., Lab], names: Names, remains: Remains
) -> None:
    one = lab("ring,4")
    one.expect("mininet> ")
    one.type("pingall\n")
    assert "0% dropped" in one.expect("mininet> ")
    one.type("deadlock\n")
    assert "no deadlock" in one.expect("mininet> ")
    one.type("s1 ip -br link show s1-eth2\n")
    assert "UP" in one.expect("mininet> ")
    one.type("counters s1\n")
    assert "lost frames: 0" in one.expect("mininet> ")
    one.type("link h2 s2 down\n")
    one.expect("mininet> ")
    one.type("h1 ping -c 1 -W 1 10.0.2.1\n")
    assert one.expect(" packet loss").endswith("100%")
    one.expect("mininet> ")
    one.type("exit\n")
    assert one.wait() == 0
    assert remains(names) == []


def test_ctrl_c_while_it_starts_leaves_nothing(
    lab: Callable[..., Lab], names: Names, remains: Remains
) -> None:
    one = lab("ring,4")
    one.expect("links")
    one.process.send_signal(signal.SIGINT)
    assert one.wait() == 130
    assert remains(names) == []


def test_a_closed_terminal_ends_the_lab(
    lab: Callable[..., Lab], names: Names, remains: Remains
) -> None:
    one = lab("ring,4")
    one.expect("mininet> ")
    one.process.send_signal(signal.SIGHUP)
    assert one.wait() != 0
    assert remains(names) == []


def test_down_ends_a_lab_that_somebody_else_holds(
    lab: Callable[..., Lab], knotless: Knotless, names: Names, remains: Remains
) -> None:
    one = lab("ring,4")
    one.expect("mininet> ")
    assert knotless("down", "--name", names.name).returncode == 0
    assert one.wait() != 0
    assert remains(names) == []
