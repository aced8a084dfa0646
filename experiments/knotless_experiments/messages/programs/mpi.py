"""The communicator over MPI, by mpi4py."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from knotless_experiments.messages.programs.communicator import Array, Communicator

SLOW_DOWN = "KNOTLESS_SLOW_DOWN"
"""Environment variable: by how much virtual time is slower than real time at least."""
SHORTEST_SLEEP_S, LONGEST_SLEEP_S = 50e-6, 500e-6
"""Open MPI waits by continuous polling. With many processes on few cores this would keep
switches and emulator from the CPU, so here a process sleeps between polls, each time twice as
long: 16 processes that poll every 50 us use more than a core. These are real times."""


def wait(*requests: Any) -> None:
    """Wait for MPI requests, sleeping between polls."""
    waiting, sleep_s = list(requests), SHORTEST_SLEEP_S
    slow_down = float(os.environ.get(SLOW_DOWN, "1"))
    while waiting := [request for request in waiting if not request.Test()]:
        time.sleep(sleep_s / slow_down)
        sleep_s = min(2 * sleep_s, LONGEST_SLEEP_S)


class MpiCommunicator(Communicator):
    """A process of MPI's world communicator."""

    def __init__(self) -> None:
        from mpi4py import MPI

        self.world: Any = MPI.COMM_WORLD
        self.rank, self.size = self.world.Get_rank(), self.world.Get_size()
        self._bytes: Any = MPI.BYTE

    def _buffer(self, data: Array) -> list[Any]:
        return [data.reshape(-1).view(np.uint8), self._bytes]

    def send(self, to: int, data: Array) -> None:
        """Send; returns when the buffer may be used again."""
        wait(self.world.Isend(self._buffer(np.ascontiguousarray(data)), to))

    def receive(self, source: int, into: Array) -> None:
        """Receive into a contiguous array."""
        wait(self.world.Irecv(self._buffer(into), source))

    def exchange(self, to: int, data: Array, source: int, into: Array) -> None:
        """Send and receive at once."""
        incoming = self.world.Irecv(self._buffer(into), source)
        wait(incoming, self.world.Isend(self._buffer(np.ascontiguousarray(data)), to))
