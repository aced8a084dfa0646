"""An estimate of the resources of a fabric before it starts: a rule fitted to measured fabrics.

Memory is fitted to the fabrics of different sizes in ``docs/decisions/settled-comparisons.md``, the
pace to those there beside busy loops, on two cores; a test compares them with the rule.
"""

from __future__ import annotations

from dataclasses import dataclass

from knotless.topologies.fabric import Fabric
from knotless.traffic.theory import wire_bytes

OWNER_MB, EMULATOR_MB = 50.0, 14.0
CONTROLLER_MB = 130.0
"""Of a controller and of its process that plans repairs ahead."""
SWITCH_PROCESS_MB = 17.0
"""Of an Open vSwitch and its database, without ports."""
PORT_MB = 0.2
RING_MB, MOST_RINGS_MB = 2.0, 134.0
"""Of the emulator's ring of each host, and of all together."""
SHELL_MB = 0.8
"""Of a host or of a switch."""
HOPS_PER_S = 100_000.0
"""Frames on all channels per second of real time, at full rate and ordinary priority."""
DATAGRAM_BYTES = 1472


@dataclass(frozen=True)
class Estimate:
    """The resources of a fabric, roughly.

    Attributes
    ----------
    processes : their number.
    memory_mb : memory of all of them.
    stretch : seconds in which two cores emulate a second in which all hosts send all they can,
        at least 1; None without emulated links.

    """

    processes: int
    memory_mb: int
    stretch: float | None

    @property
    def text(self) -> str:
        """One line."""
        line = f"about {self.memory_mb} MB in {self.processes} processes"
        if self.stretch is None:
            return line
        if self.stretch == 1:
            return f"{line}; two cores carry all that its hosts can send in real time"
        return (
            f"{line}; if all hosts send all they can, two cores take about {self.stretch:.1f} s"
            " for a second of the fabric"
        )


def estimate(
    fabric: Fabric, *, switch_processes: int, controllers: int, mean_switches: float, emulated: bool
) -> Estimate:
    """Return what a fabric will take.

    Parameters
    ----------
    fabric : Fabric
        Its switches, hosts and links.
    switch_processes, controllers : int
        Numbers of Open vSwitch processes and of our controllers.
    mean_switches : float
        Switches on a path, on average of all pairs of hosts, where a host to itself counts as one.
    emulated : bool
        Whether links pass through the emulator.

    Returns
    -------
    Estimate
        A rough figure; programs on hosts come on top.

    """
    hosts, nodes = len(fabric.hosts), len(fabric.hosts) + len(fabric.switches)
    ports = 2 * len(fabric.links) + hosts
    memory_mb = (
        OWNER_MB
        + emulated * (EMULATOR_MB + min(RING_MB * hosts, MOST_RINGS_MB))
        + controllers * CONTROLLER_MB
        + switch_processes * SWITCH_PROCESS_MB
        + ports * PORT_MB
        + nodes * SHELL_MB
    )
    processes = 1 + emulated + 2 * controllers + 2 * switch_processes + nodes
    stretch = None
    if emulated and hosts > 1:
        bits = 8 * wire_bytes("udp", DATAGRAM_BYTES, tagged=False)
        frames_per_s = sum(host.rate_mbps for host in fabric.hosts) * 1e6 / bits
        channels = (mean_switches * hosts - 1) / (hosts - 1) + 1
        stretch = max(1.0, frames_per_s * channels / HOPS_PER_S)
    return Estimate(processes, round(memory_mb), stretch)
