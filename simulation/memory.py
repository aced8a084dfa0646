"""How much memory a simulation takes, estimated before any of it is taken."""

from __future__ import annotations

from common.memory import refuse_beyond
from simulation.errors import SimulationError
from topologies.fabric import Fabric

BYTES_AT_LEAST = 3_000_000
BYTES_A_CHANNEL = 2_800
"""State and counters of 8 priorities (1.7 kB), those counters once more for the report, and
frames in buffers that are not all full."""
BYTES_A_FLOW = 9_000
"""Its histogram of latencies, some hundred buckets of 8 bytes, and that once more for the report;
each host is a flow of its own where the traffic has no others."""
BYTES_A_HOP = 100
"""A channel between switches in one VLAN: in the state, with its entries, and in the tables."""
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
    # The class of each destination at each switch: in the state, that of each host and of what each
    # switch with hosts floods; in the tables, mostly that of each switch with hosts.
    leaves = sum(1 for at in fabric.hosts_at.values() if at)
    tables = 2 * switches * (hosts + 2 * leaves) + BYTES_A_HOP * 2 * len(fabric.links) * vlans
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
    refuse_beyond(f"{fabric.name}: simulating it", needed, SimulationError)
