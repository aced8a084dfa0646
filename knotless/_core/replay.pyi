"""Recorded programs as the traffic of a simulation.

Invalid arguments raise a ValueError of one line.
"""

import numpy as np
from numpy.typing import NDArray

from knotless._core.simulator import Traffic

class Ends:
    """The end times of the processes so far."""

    def times_ps(self) -> list[int | None]:
        """Return the end time of each host's process, or None if it has not ended."""

def replay_traffic(
    hosts: int,
    host: NDArray[np.uint32],
    kind: NDArray[np.uint8],
    peer: NDArray[np.uint32],
    amount: NDArray[np.uint64],
) -> tuple[Traffic, Ends]:
    """Return processes that do the steps in the rows, the steps of each host in order.

    ``kind`` 0 sends ``amount`` bytes to host ``peer`` and continues at once, 1 waits for one more
    message from ``peer``, 2 computes for ``amount`` picoseconds.
    """
