"""Recorded programs as the traffic of a simulation.

Invalid arguments raise a ValueError of one line.
"""

import numpy as np
from numpy.typing import NDArray

from knotless_core.simulator import Traffic

class Ends:
    """When the processes came to their ends, so far."""

    def times_ps(self) -> list[int | None]:
        """Return the time of each host's process; None where it has not ended."""

def replay_traffic(
    hosts: int,
    host: NDArray[np.uint32],
    kind: NDArray[np.uint8],
    peer: NDArray[np.uint32],
    amount: NDArray[np.uint64],
) -> tuple[Traffic, Ends]:
    """Return processes that do what the rows say, those of one host in their order.

    ``kind`` 0 sends ``amount`` bytes to host ``peer`` and goes on at once, 1 waits for one
    more message of ``peer``, 2 computes for ``amount`` picoseconds.
    """
