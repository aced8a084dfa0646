"""Recorded programs as traffic of a simulation."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np

from knotless._core.replay import Ends, replay_traffic
from knotless._core.simulator import Traffic
from knotless.base.errors import SimulationError
from knotless.topologies.fabric import Fabric

KINDS = {"send": 0, "recv": 1, "compute": 2}
COMPUTE = KINDS["compute"]
Played = tuple[Traffic, Ends]


class Program:
    """The recorded steps of ``processes`` processes, in order for each process.

    Recorded compute times are multiplied by ``computing``; 0 keeps only the messages.
    """

    def __init__(self, processes: int, computing: float = 0.0) -> None:
        self.processes = processes
        self._computing = computing
        self._process, self._kind = array("I"), array("B")
        self._peer, self._amount = array("I"), array("Q")

    def __len__(self) -> int:
        """Return the number of steps, without omitted ones."""
        return len(self._kind)

    def add(self, process: int, kind: int, peer: int, size: int, seconds: float) -> None:
        """Add a step of a process; ``kind`` is one of the numbers of KINDS."""
        # A message has at least one byte.
        amount = round(1e12 * self._computing * seconds) if kind == COMPUTE else max(1, size)
        if amount:
            self._process.append(process)
            self._kind.append(kind)
            self._peer.append(peer)
            self._amount.append(amount)

    def traffic(self, hosts: int | None = None, places: Sequence[int] | None = None) -> Played:
        """Return the program as traffic of ``hosts`` hosts, and the end times of its processes.

        Process p runs on host ``places[p]``, by default on host p. Raises SimulationError if the
        steps are invalid.
        """
        place = np.arange(self.processes) if places is None else np.asarray(places)
        try:
            return replay_traffic(
                self.processes if hosts is None else hosts,
                place[np.array(self._process, dtype=np.int64)].astype(np.uint32),
                np.array(self._kind, dtype=np.uint8),
                place[np.array(self._peer, dtype=np.int64)].astype(np.uint32),
                np.array(self._amount, dtype=np.uint64),
            )
        except ValueError as error:
            raise SimulationError(str(error)) from None


def waiting(fabric: Fabric, ends: Ends) -> None:
    """Raise SimulationError, with the host's name, if a process has not ended."""
    times = ends.times_ps()
    if None in times:
        name = fabric.hosts[times.index(None)].name
        raise SimulationError(f"{name} waits for a message that nobody sends")
