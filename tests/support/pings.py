"""Pings that go on while something happens to a fabric."""

from __future__ import annotations

import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import IO

from tests.support.waiting import HANG_S, until

Start = Callable[[IO[str]], subprocess.Popen[str]]
"""Starts a ping that prints to this file."""


def _arrived(output: IO[str]) -> list[int]:
    """Return the numbers of the echoes so far, in their order."""
    output.seek(0)
    return [int(number) for number in re.findall(r"icmp_seq=(\d+) ttl", output.read())]


@contextmanager
def every_echo_arrives(starts: Sequence[Start]) -> Iterator[None]:
    """Let pings run; no echo may be lost, or come twice. It begins when one of each has arrived.

    At the end one more echo of each is awaited, and all that were sent before it: while routes
    change, later frames may overtake them. Those after it may be under way when pings are ended.
    A file holds what they print: a pipe that nobody reads would stop them when it is full.
    """
    with ExitStack() as stack:
        outputs = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in starts]
        clients = [start(output) for start, output in zip(starts, outputs, strict=True)]
        try:
            for output in outputs:
                _await_every_echo(output)
            yield
            for output in outputs:
                _await_every_echo(output)
        finally:
            for client in clients:
                client.send_signal(signal.SIGINT)
            for client in clients:
                client.wait(timeout=HANG_S)
        for output in outputs:
            arrived = _arrived(output)
            assert len(set(arrived)) == len(arrived)


def _await_every_echo(output: IO[str]) -> None:
    """Wait for one more echo, and all that were sent before it."""
    try:
        until("every echo", partial(_is_complete, output, len(_arrived(output))))
    except AssertionError as late:
        arrived = _arrived(output)
        missing = sorted({*range(1, max(arrived, default=0) + 1)} - {*arrived})
        raise AssertionError(f"echoes that have not arrived: {missing}") from late


def _is_complete(output: IO[str], count: int) -> bool:
    """Return whether more echoes than ``count`` have arrived, and none is missing among them."""
    arrived = sorted(_arrived(output))
    return len(arrived) > count and arrived == list(range(1, len(arrived) + 1))
