"""The communicator over MPI, by mpi4py."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from experiments.workloads.programs.communicator import Array, Communicator

SHORTEST_SLEEP_S, LONGEST_SLEEP_S = 50e-6, 500e-6
"""Open MPI waits by polling without rest. With many processes on few cores that would keep
switches and emulator from the CPU, so here a process sleeps between two looks, each time twice as
long: 16 processes that looked every 50 us took a core and more for it."""


def wait(*requests: Any) -> None:
    """Wait for MPI requests, asleep between looks."""
    waiting, sleep_s = list(requests), SHORTEST_SLEEP_S
    while waiting := [request for request in waiting if not request.Test()]:
        time.sleep(sleep_s)
        sleep_s = min(2 * sleep_s, LONGEST_SLEEP_S)


class MpiCommunicator(Communicator):
    """One process of MPI's world."""

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
