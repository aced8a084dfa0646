"""Traces: the steps of the processes of a program, and their files.

A program trace is a CSV file of COLUMNS, the rows of each process in its own order:

- ``send``: pass a message of ``bytes`` for ``peer`` to the network, and continue;
- ``recv``: wait for the next message of ``peer``, of ``bytes``;
- ``compute``: compute for ``seconds``.

It has no send times: in a replay they depend on the
network. A message trace is the opposite: each message has the time at which it was sent.
``knotless simulate --trace`` reads both (:mod:`knotless.simulation.tracefile`).
"""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from knotless.base.files import write_whole
from knotless_experiments.messages.programs.communicator import Array, Communicator

COLUMNS = ("process", "kind", "peer", "bytes", "seconds")
MESSAGE_COLUMNS = ("time_us", "source", "destination", "bytes")
SHORTEST_COMPUTE_S = 1e-6


@dataclass(frozen=True)
class Event:
    """A step of a process; ``at_s`` is the time since the program's start, on its own clock.

    For computing, ``peer`` is -1, ``bytes`` is 0 and ``seconds`` is CPU time; for receiving,
    ``seconds`` is the waiting time (sending does not block).
    """

    process: int
    kind: str
    peer: int
    bytes: int
    seconds: float
    at_s: float


class Recorder(Communicator):
    """A communicator that forwards everything to another one and records it."""

    def __init__(self, inner: Communicator) -> None:
        self.inner = inner
        self.rank, self.size = inner.rank, inner.size
        self.events: list[Event] = []
        self.restart()

    def restart(self) -> None:
        """Discard the record; time starts now."""
        self.events.clear()
        self._zero = time.perf_counter()
        self._cpu = time.thread_time()

    def _computed(self) -> float:
        """Record the computing since the last message; return the time."""
        spent, now = time.thread_time() - self._cpu, time.perf_counter() - self._zero
        if spent >= SHORTEST_COMPUTE_S:
            self.events.append(Event(self.rank, "compute", -1, 0, spent, now - spent))
        return now

    def _add(self, kind: str, peer: int, data: Array, at_s: float) -> None:
        seconds = time.perf_counter() - self._zero - at_s if kind == "recv" else 0.0
        self.events.append(Event(self.rank, kind, peer, data.nbytes, seconds, at_s))

    def send(self, to: int, data: Array) -> None:
        """Send, and record it."""
        at_s = self._computed()
        self.inner.send(to, data)
        self._add("send", to, data, at_s)
        self._cpu = time.thread_time()

    def receive(self, source: int, into: Array) -> None:
        """Receive, and record it."""
        at_s = self._computed()
        self.inner.receive(source, into)
        self._add("recv", source, into, at_s)
        self._cpu = time.thread_time()

    def exchange(self, to: int, data: Array, source: int, into: Array) -> None:
        """Exchange, and record both."""
        at_s = self._computed()
        self.inner.exchange(to, data, source, into)
        self._add("send", to, data, at_s)
        self._add("recv", source, into, at_s)
        self._cpu = time.thread_time()


def volumes(events: Iterable[Event], processes: int) -> NDArray[np.int64]:
    """Return (processes, processes): bytes sent from each to each."""
    sent = np.zeros((processes, processes), np.int64)
    for event in events:
        if event.kind == "send":
            sent[event.process, event.peer] += event.bytes
    return sent


def write_program_trace(path: Path, events: Iterable[Event]) -> None:
    """Write a program trace."""
    lines = (
        (event.process, event.kind, event.peer, event.bytes, f"{event.seconds:.9f}")
        for event in events
    )
    _write(path, COLUMNS, lines)


def write_message_trace(path: Path, events: Iterable[Event], hosts: Sequence[str]) -> None:
    """Write a message trace; process p runs on ``hosts[p]``."""
    sent = sorted(
        (round(event.at_s * 1e6, 3), event.process, event.peer, event.bytes)
        for event in events
        if event.kind == "send" and event.bytes
    )
    lines = (
        (f"{time_us:.3f}", hosts[source], hosts[to], size) for time_us, source, to, size in sent
    )
    _write(path, MESSAGE_COLUMNS, lines)


def _write(path: Path, columns: Sequence[str], lines: Iterable[Sequence[object]]) -> None:
    text = io.StringIO(newline="")
    rows = csv.writer(text)
    rows.writerow(columns)
    rows.writerows(lines)
    write_whole(path, text.getvalue())
