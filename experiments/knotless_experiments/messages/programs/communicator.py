"""The communicator of a kernel: rank, ordered messages, and collectives built on them.

The collectives are implemented here, with messages between two processes, not by MPI:
a kernel then sends the same messages over MPI, between threads and in the simulator, and
a record of them is complete.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knotless.base.errors import KnotlessError

Array = NDArray[Any]
Operation = Callable[[Array, Array], Array]


class CommunicatorError(KnotlessError):
    """A number of processes that a program cannot run on, or a process that failed."""


class Communicator(abc.ABC):
    """One of ``size`` processes, numbered ``rank`` from 0; arrays travel as their bytes.

    Two messages from one process to another arrive in the order in which they were sent.
    """

    rank: int
    size: int

    @abc.abstractmethod
    def send(self, to: int, data: Array) -> None:
        """Send ``data``, which may be modified when this returns."""

    @abc.abstractmethod
    def receive(self, source: int, into: Array) -> None:
        """Wait for the next message of ``source``, of exactly the size of ``into``."""

    @abc.abstractmethod
    def exchange(self, to: int, data: Array, source: int, into: Array) -> None:
        """Send and receive at the same time, so that a ring of processes cannot deadlock."""

    def allreduce(self, values: Array, operation: Operation = np.add) -> Array:
        """Combine the arrays of all processes elementwise; all get identical results.

        Recursive doubling: log2(size) exchanges of the whole array. ``operation`` must be
        commutative: then both partners of an exchange compute the same.
        """
        total = np.ascontiguousarray(values).copy()
        theirs = np.empty_like(total)
        for distance in distances(self.size):
            partner = self.rank ^ distance
            self.exchange(partner, total, partner, theirs)
            total = operation(total, theirs)
        return total

    def allgather(self, values: Array) -> list[Array]:
        """Return the arrays of all processes, by rank; all must have the same shape.

        Recursive doubling: the blocks that are held double with each exchange.
        """
        held = np.ascontiguousarray(values)[np.newaxis]
        for distance in distances(self.size):
            partner = self.rank ^ distance
            theirs = np.empty_like(held)
            self.exchange(partner, held, partner, theirs)
            held = np.concatenate((held, theirs) if self.rank & distance == 0 else (theirs, held))
        return list(held)

    def alltoall(self, parts: Sequence[Array], shapes: Sequence[tuple[int, ...]]) -> list[Array]:
        """Send ``parts[i]`` to process i; return the parts received, which have these ``shapes``.

        Pairwise exchange: in step k every process exchanges with the one at rank XOR k.
        """
        got = [np.empty(shape, part.dtype) for shape, part in zip(shapes, parts, strict=True)]
        got[self.rank][...] = parts[self.rank]
        for step in range(1, self.size):
            partner = self.rank ^ step
            self.exchange(partner, np.ascontiguousarray(parts[partner]), partner, got[partner])
        return got

    def barrier(self) -> None:
        """Return when all have called it (dissemination: log2(size) messages each)."""
        token = np.zeros(1, np.uint8)
        for distance in distances(self.size):
            to, source = (self.rank + distance) % self.size, (self.rank - distance) % self.size
            self.exchange(to, token, source, token.copy())


def distances(size: int) -> list[int]:
    """Return 1, 2, 4, ... below ``size``."""
    return [1 << bit for bit in range((size - 1).bit_length())]


def require_power_of_two(size: int, what: str) -> int:
    """Return log2(size); raises CommunicatorError if ``size`` is not a power of two."""
    if size < 1 or size & (size - 1):
        raise CommunicatorError(f"{what}: {size} processes: the number must be a power of two")
    return size.bit_length() - 1
