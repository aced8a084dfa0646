"""Schedules: operations of ranks, and what they require, as the traffic of a simulation.

An operation starts when all that it requires has ended. A send ends when it is given to the
network, which is at once; a receive ends when its message has arrived. Invalid arguments raise a
ValueError of one line.
"""

import numpy as np
from numpy.typing import NDArray

from knotless._core.replay import Ends
from knotless._core.simulator import Traffic

class Schedule:
    """The operations of all ranks."""

    @property
    def ranks(self) -> int: ...
    @property
    def operations(self) -> int:
        """The number of operations of all ranks."""
    def traffic(self, hosts: int, places: NDArray[np.uint32]) -> tuple[Traffic, Ends]:
        """Return the traffic of ``hosts`` hosts with rank r on host ``places[r]``, and its ends."""

class GoalReader:
    """A reader of GOAL, the text that LogGOPSim reads, of at most so many ranks."""

    def __new__(cls, most_ranks: int) -> GoalReader: ...
    def feed(self, piece: bytes) -> None:
        """Read the next piece of the file; ValueError with the line for what makes no sense."""
    def finish(self) -> Schedule:
        """Return the schedule at the end of the file; ValueError if anything is missing."""

def transfer_schedule(
    ranks: int,
    sources: NDArray[np.uint32],
    destinations: NDArray[np.uint32],
    transfer_bytes: NDArray[np.uint64],
    waiting: NDArray[np.uint32],
    needed: NDArray[np.uint32],
) -> Schedule:
    """Return the schedule of transfers between ranks.

    Transfer ``waiting[i]`` starts when ``needed[i]``, which its sender receives, has arrived.
    Transfers of a rank that wait for nothing more start in their order.
    """

def operation_schedule(
    ranks: int,
    rank: NDArray[np.uint32],
    kind: NDArray[np.uint8],
    peer: NDArray[np.uint32],
    amount: NDArray[np.uint64],
    tag: NDArray[np.uint32],
    waiting: NDArray[np.uint32],
    needed: NDArray[np.uint32],
) -> Schedule:
    """Return the schedule of operations in rows.

    ``kind`` 0 sends ``amount`` bytes to rank ``peer``, 1 waits for a message from ``peer``, both
    with ``tag``; 2 computes for ``amount`` picoseconds on processor ``peer``; 3 ends at once. Row
    ``waiting[i]`` starts when ``needed[i]``, of the same rank, has ended.
    """
