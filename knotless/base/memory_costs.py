"""The memory that things take: estimates by which work that would not fit is refused.

``tests/unit/base/test_memory_costs.py`` runs what each estimate is for and compares it with the
memory that was used.
"""

from __future__ import annotations

from enum import Enum


class Cost(Enum):
    """Bytes for each of something, while it is worked on, and the files that refuse by them."""

    FABRIC_FILE = 12, "byte of the file of a fabric", "topologies/formats/files.py"
    IMPORTED_FILE = 12, "byte of a file to be imported", "importers/reading.py"
    INFINIBAND_PAIR = 12, "LID and destination LID of a subnet", "importers/infiniband/fabric.py"
    ROUTER_PAIR = (
        *(22, "edge of routers, and edge or range of addresses"),
        "importers/routers/fabric.py importers/routers/routes.py",
    )
    LISTED_PATH = 6, "listed path, and switch or listed path", "importers/neutral/fabric.py"
    SWITCH_PAIR = 26, "pair of switches in a plan, with broadcast trees", "routing/plan.py"
    HOP = 30, "channel of a path that is written out, with VLANs", "routing/path_memory.py"
    NEXT_HOP = 12, "destination at a switch, in a balanced table", "routing/graphs/balance.py"
    NEXT_HOPS = 16, "switch or channel, and destination", "routing/graphs/next_hop_sets.py"
    INTERMEDIATE = 30, "intermediate of two switches", "routing/choices/source_choices.py"
    SIMULATION = 2_000_000, "simulation", "simulation/memory.py"
    SIMULATED_CHANNEL = 1_800, "channel: state, counters, frames", "simulation/memory.py"
    SIMULATED_FLOW = 1_500, "flow: its latency histogram, twice", "simulation/memory.py"
    SIMULATED_HOP = 100, "channel between switches and VLAN", "simulation/memory.py"
    SIMULATED_SENDING = 10, "destination in a phase", "simulation/memory.py"

    def __init__(self, each_bytes: int, thing: str, files: str) -> None:
        self.each_bytes, self.thing, self.files = each_bytes, thing, files.split()

    def bytes_for(self, count: int) -> int:
        """Return the bytes that ``count`` of these take."""
        return self.each_bytes * count
