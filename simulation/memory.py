"""How much memory a simulation takes, estimated before any of it is taken."""

from __future__ import annotations

import psutil

from simulation.errors import SimulationError
from topologies.fabric import Fabric

BYTES_AT_LEAST = 3_000_000
BYTES_A_CHANNEL = 2_800
"""State and counters of 8 priorities (1.7 kB), those counters once more for the report, and
frames in buffers that are not all full."""
BYTES_A_FLOW = 9_000
"""Its histogram of latencies, some hundred buckets of 8 bytes, and that once more for the report;
each host is a flow of its own where the traffic has no others."""
BYTES_A_SENDING = 10
"""A destination in a phase, as the pattern makes it and as the core has it."""


def estimated_bytes(fabric: Fabric, *, vlans: int = 1, in_phases: bool = False) -> int:
    """Return about how many bytes it takes to simulate a fabric, within a factor of two.

    ``vlans`` is how many its plan has; ``in_phases`` says that hosts send in phases, about as
    many as there are hosts. What a trace holds, and what piles up where sources send more than
    the fabric carries, comes on top.
    """
    switches, hosts = len(fabric.switches), len(fabric.hosts)
    channels = 2 * (len(fabric.links) + hosts)
    # One row of next hops for each switch at least, and at most one for each VLAN, too; as made
    # and as handed over.
    tables = 2 * 2 * switches * switches + 2 * 4 * switches * vlans
    return (
        BYTES_AT_LEAST
        + tables
        + BYTES_A_CHANNEL * channels
        + BYTES_A_FLOW * hosts
        + BYTES_A_SENDING * hosts * (hosts if in_phases else 0)
    )


def check_memory(fabric: Fabric, *, vlans: int = 1, in_phases: bool = False) -> None:
    """Raise SimulationError when the simulation will not fit into the memory that is free."""
    needed = estimated_bytes(fabric, vlans=vlans, in_phases=in_phases)
    there = psutil.virtual_memory().available
    if needed > there:
        raise SimulationError(
            f"{fabric.name}: simulating it takes about {needed / 2**30:.1f} GiB,"
            f" {there / 2**30:.1f} GiB are free"
        )
