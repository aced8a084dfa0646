"""What the processes of a program did, in order, and the files that keep it.

A program trace is a CSV file of COLUMNS, the rows of each process in its own order:

- ``send``: give a message of ``bytes`` to ``peer`` to the network, and go on at once;
- ``recv``: wait for the next message of ``peer``, of ``bytes``;
- ``compute``: compute for ``seconds``.

It says nothing of when messages were sent: whoever replays it finds that out from his own
network. A message trace is the opposite: each message at the time at which it was once sent.
``knotless simulate --trace`` reads both (:mod:`simulation.tracefile`).
"""

from __future__ import annotations

import csv
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.workloads.programs.communicator import Array, Communicator

COLUMNS = ("process", "kind", "peer", "bytes", "seconds")
MESSAGE_COLUMNS = ("time_us", "source", "destination", "bytes")
SHORTEST_COMPUTE_S = 1e-6


@dataclass(frozen=True)
class Event:
    """One thing that a process did; ``at_s`` since the program's begin, by its own clock.

    ``peer`` is -1 and ``bytes`` 0 where it computed; ``seconds`` is CPU time there, and how
    long it waited where it received (what it sent is on its way at once).
    """

    process: int
    kind: str
    peer: int
    bytes: int
    seconds: float
    at_s: float


class Recorder(Communicator):
    """A communicator that passes everything on to another and writes it down."""

    def __init__(self, inner: Communicator) -> None:
        self.inner = inner
        self.rank, self.size = inner.rank, inner.size
        self.events: list[Event] = []
        self.restart()

    def restart(self) -> None:
        """Forget what was; time begins now."""
        self.events.clear()
        self._zero = time.perf_counter()
        self._cpu = time.thread_time()

    def _computed(self) -> float:
        """Write down what has been computed since the last message; returns the time."""
        spent, now = time.thread_time() - self._cpu, time.perf_counter() - self._zero
        if spent >= SHORTEST_COMPUTE_S:
            self.events.append(Event(self.rank, "compute", -1, 0, spent, now - spent))
        return now

    def _add(self, kind: str, peer: int, data: Array, at_s: float) -> None:
        seconds = time.perf_counter() - self._zero - at_s if kind == "recv" else 0.0
        self.events.append(Event(self.rank, kind, peer, data.nbytes, seconds, at_s))

    def send(self, to: int, data: Array) -> None:
        """Send, and note it."""
        at_s = self._computed()
        self.inner.send(to, data)
        self._add("send", to, data, at_s)
        self._cpu = time.thread_time()

    def receive(self, source: int, into: Array) -> None:
        """Receive, and note it."""
        at_s = self._computed()
        self.inner.receive(source, into)
        self._add("recv", source, into, at_s)
        self._cpu = time.thread_time()

    def exchange(self, to: int, data: Array, source: int, into: Array) -> None:
        """Exchange, and note both."""
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
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        for event in events:
            rows.writerow(
                (event.process, event.kind, event.peer, event.bytes, f"{event.seconds:.9f}")
            )


def write_message_trace(path: Path, events: Iterable[Event], hosts: Sequence[str]) -> None:
    """Write a message trace; process p runs on ``hosts[p]``."""
    sent = sorted(
        (round(event.at_s * 1e6, 3), event.process, event.peer, event.bytes)
        for event in events
        if event.kind == "send" and event.bytes
    )
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(MESSAGE_COLUMNS)
        for time_us, source, to, size in sent:
            rows.writerow((f"{time_us:.3f}", hosts[source], hosts[to], size))
