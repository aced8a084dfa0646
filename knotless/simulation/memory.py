"""The memory of a simulation, estimated before it is allocated."""

from __future__ import annotations

from knotless.base.errors import SimulationError
from knotless.base.memory import refuse_beyond
from knotless.topologies.fabric import Fabric

BYTES_AT_LEAST = 2_000_000
BYTES_A_CHANNEL = 1_800
"""Bytes per channel: state and counters of one or two priorities, these counters again in the
report, frames in partly filled buffers, and what is copied when the simulation begins and ends.
Each further priority in use takes about 170."""
BYTES_A_FLOW = 1_500
"""Bytes per flow: its latency histogram, with the buckets from the least to the greatest latency,
and again in the report; without other flows, each host is a flow."""
BYTES_A_HOP = 100
"""Bytes per channel between switches and VLAN: in the state, its entries, and the tables."""
BYTES_A_SENDING = 10
"""Bytes per destination in a phase: in the pattern and in the core."""


def estimated_bytes(fabric: Fabric, *, vlans: int = 1, in_phases: bool = False) -> int:
    """Estimate the most bytes that simulating a fabric takes, within a factor of two.

    ``vlans`` is the number of VLANs of its plan; ``in_phases`` says that hosts send in about as
    many phases as there are hosts. Not included: the content of a trace, and packets that pile
    up when sources send more than the fabric carries.
    """
    switches, hosts = len(fabric.switches), len(fabric.hosts)
    channels = 2 * (len(fabric.links) + hosts)
    # The class of each destination at each switch. In the state: each host, and each flood of a
    # switch with hosts; in the tables: mostly each switch with hosts.
    leaves = sum(1 for hosts in fabric.hosts_at.values() if hosts)
    tables = 2 * switches * (hosts + 2 * leaves) + BYTES_A_HOP * 2 * len(fabric.links) * vlans
    return (
        BYTES_AT_LEAST
        + tables
        + BYTES_A_CHANNEL * channels
        + BYTES_A_FLOW * hosts
        + BYTES_A_SENDING * hosts * (hosts if in_phases else 0)
    )


def check_memory(fabric: Fabric, *, vlans: int = 1, in_phases: bool = False) -> None:
    """Raise SimulationError if the simulation does not fit into the free memory."""
    needed = estimated_bytes(fabric, vlans=vlans, in_phases=in_phases)
    refuse_beyond(f"{fabric.name}: simulating it", needed, SimulationError)
