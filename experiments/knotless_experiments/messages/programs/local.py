"""Processes that run as threads, for tests and for traces of many processes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeVar

import numpy as np

from knotless_experiments.messages.programs.communicator import (
    Array,
    Communicator,
    CommunicatorError,
)

Result = TypeVar("Result")
Pipe = SimpleQueue[bytes | None]
"""Messages from one process to another; None if a process has failed."""


class LocalCommunicator(Communicator):
    """One of several threads, with a queue between each pair."""

    def __init__(self, rank: int, pipes: list[list[Pipe]]) -> None:
        self.rank, self.size = rank, len(pipes)
        self._pipes = pipes

    def send(self, to: int, data: Array) -> None:
        """Put a copy into the queue."""
        self._pipes[self.rank][to].put(data.tobytes())

    def receive(self, source: int, into: Array) -> None:
        """Take the next message; raises CommunicatorError if a process has failed."""
        message = self._pipes[source][self.rank].get()
        if message is None:
            raise CommunicatorError(f"process {self.rank}: another process has failed")
        if len(message) != into.nbytes:
            raise CommunicatorError(
                f"process {self.rank}: {len(message)} bytes from {source}, not {into.nbytes}"
            )
        into[...] = np.frombuffer(message, into.dtype).reshape(into.shape)

    def exchange(self, to: int, data: Array, source: int, into: Array) -> None:
        """Send, which does not block, and receive."""
        self.send(to, data)
        self.receive(source, into)


def run_local(size: int, program: Callable[[Communicator], Result]) -> list[Result]:
    """Run a program as ``size`` threads; return their results.

    The first exception in a thread ends all and is raised.
    """
    pipes: list[list[Pipe]] = [[SimpleQueue() for _ in range(size)] for _ in range(size)]
    results: dict[int, Result] = {}
    failures: list[BaseException] = []

    def run(rank: int) -> None:
        try:
            results[rank] = program(LocalCommunicator(rank, pipes))
        except BaseException as error:  # noqa: BLE001 - it is raised again in the main thread
            failures.append(error)
            for to in range(size):
                pipes[rank][to].put(None)

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return [results[rank] for rank in range(size)]
