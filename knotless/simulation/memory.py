"""The memory of a simulation, estimated before it is allocated."""

from __future__ import annotations

from knotless.base.errors import SimulationError
from knotless.base.memory import Cost, refuse_beyond
from knotless.topologies.fabric import Fabric


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
    tables = 2 * switches * (hosts + 2 * leaves)
    return (
        Cost.SIMULATION.each_bytes
        + tables
        + Cost.SIMULATED_HOP.bytes_for(2 * len(fabric.links) * vlans)
        + Cost.SIMULATED_CHANNEL.bytes_for(channels)
        # Without other flows, each host is a flow.
        + Cost.SIMULATED_FLOW.bytes_for(hosts)
        + Cost.SIMULATED_SENDING.bytes_for(hosts * (hosts if in_phases else 0))
    )


def check_memory(fabric: Fabric, *, vlans: int = 1, in_phases: bool = False) -> None:
    """Raise SimulationError if the simulation does not fit into the free memory."""
    needed = estimated_bytes(fabric, vlans=vlans, in_phases=in_phases)
    refuse_beyond(f"{fabric.name}: simulating it", needed, SimulationError)
