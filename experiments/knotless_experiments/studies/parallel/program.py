"""The program of an MPI process of the measurements.

``python -m knotless_experiments.studies.parallel.program FOLDER WARM REPEATS NAME:BYTES...``, where
WARM and REPEATS are the numbers of warm-up and of measured repetitions.

The measurements are known from Intel's MPI Benchmarks: PingPong between the first and the last
process, SendRecv around a ring, Alltoall and Barrier with MPI's own collectives. Process 0 writes
``times.json``: for each measurement and repetition, the time of the slowest process.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from knotless_experiments.messages.programs.communicator import Communicator
from knotless_experiments.messages.programs.mpi import MpiCommunicator, wait

RESULT = "times.json"


def pingpong(communicator: Communicator, size: int) -> Callable[[], None]:
    """Return a round trip between the first and the last process."""
    data, last = np.zeros(size, np.uint8), communicator.size - 1

    def once() -> None:
        if communicator.rank == 0:
            communicator.send(last, data)
            communicator.receive(last, data)
        elif communicator.rank == last:
            communicator.receive(0, data)
            communicator.send(0, data)

    return once


def sendrecv(communicator: Communicator, size: int) -> Callable[[], None]:
    """Return an exchange around the ring of all processes."""
    data, into = np.zeros(size, np.uint8), np.empty(size, np.uint8)
    right = (communicator.rank + 1) % communicator.size
    left = (communicator.rank - 1) % communicator.size
    return lambda: communicator.exchange(right, data, left, into)


def alltoall(communicator: MpiCommunicator, size: int) -> Callable[[], None]:
    """Return an MPI_Alltoall of ``size`` bytes per pair."""
    data = np.zeros(communicator.size * size, np.uint8)
    into = np.empty_like(data)
    return lambda: wait(communicator.world.Ialltoall(data, into))


def barrier(communicator: MpiCommunicator, _size: int) -> Callable[[], None]:
    """Return an MPI_Barrier."""
    return lambda: wait(communicator.world.Ibarrier())


MEASUREMENTS: dict[str, Callable[[MpiCommunicator, int], Callable[[], None]]] = {
    "pingpong": pingpong,
    "sendrecv": sendrecv,
    "alltoall": alltoall,
    "barrier": barrier,
}


def times(communicator: MpiCommunicator, once: Callable[[], None], count: int) -> list[float]:
    """Repeat ``once``; return the time of each repetition in seconds, of the slowest process.

    A barrier synchronises the processes before each repetition.
    """
    own = np.zeros(count)
    for repetition in range(count):
        communicator.barrier()
        began = time.perf_counter()
        once()
        own[repetition] = time.perf_counter() - began
    longest: list[float] = communicator.allreduce(own, np.maximum).tolist()
    return longest


def main() -> None:
    """Run one MPI process."""
    from knotless_experiments.messages.programs.openmpi import synchronised

    folder, warm, repeats = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    communicator = MpiCommunicator()
    seconds_of: dict[str, Any] = {}

    def body() -> None:
        for word in sys.argv[4:]:
            name, _, size = word.partition(":")
            once = MEASUREMENTS[name](communicator, int(size))
            times(communicator, once, warm)
            seconds_of[word] = times(communicator, once, repeats)

    synchronised(folder, communicator, body)
    if communicator.rank == 0:
        (folder / RESULT).write_text(json.dumps(seconds_of), encoding="utf-8")


if __name__ == "__main__":
    main()
