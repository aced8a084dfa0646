"""Programs of hosts as the traffic of a simulation: barriers, on LogP processors.

Times are picoseconds where a name ends in ``_ps``, nanoseconds where it ends in ``_ns``.
Invalid arguments raise a ValueError of one line.
"""

import numpy as np
from numpy.typing import NDArray

from knotless._core.simulator import Traffic

class Outcome:
    """The results of the barriers of a simulation so far."""

    @property
    def asked(self) -> int:
        """Number of requests for late messages; 0 if nothing is lost."""

    def passages(self) -> tuple[NDArray[np.uint32], NDArray[np.uint64], NDArray[np.uint64]]:
        """Return process, entry time and exit time (ps) of all passages, in order of exit."""

def barrier_traffic(
    algorithm: str,
    order: list[int] | None,
    places: list[int],
    hosts: int,
    networks: int,
    *,
    send_ps: int,
    receive_ps: int,
    gap_ps: int,
    interrupt_ps: int,
    barriers: int,
    computing_ps: int,
    message_bytes: int,
    retry_ns: int,
    patience_ns: int,
) -> tuple[Traffic, Outcome]:
    """Return processes that pass ``barriers`` barriers and compute ``computing_ps`` in between.

    Process r runs on host ``places[r]`` of ``hosts``. With 2 ``networks`` the fabric has every
    host twice: host ``places[r] + hosts`` is the process's second interface. ``algorithm`` is
    shuffle, tree2, tree3, tree4, concurrent or unicast; ``order`` the visiting list of unicast,
    or None. ``send_ps``, ``receive_ps`` and ``gap_ps`` are LogP's o_s, o_r and g (between sends).
    ``interrupt_ps`` is the part of o_r that is saved if a message arrives before the processor has
    received the previous one from the same interface. The master's multicast is tree 0 of the
    simulation's tables.
    """

def random_order(size: int, seed: int) -> list[int]:
    """Return a random visiting list, process 0 first; equal seeds give equal lists."""
