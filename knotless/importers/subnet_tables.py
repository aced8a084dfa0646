"""InfiniBand switches and what they do with LIDs, apart from whose files say so.

This is the form that proofs are about, which ``proofs/verifier/lft.ml`` reads: ``fabric.json`` with
the switches, the links between them and the hosts with their LIDs, and for each switch a file
``NAME.lft`` with a line for each LID::

    0x0007 port 13                          out of this port; 0: it is for the switch itself
    0x0008 port 13 14                       out of any one of these
    sl2vl 1 13 : 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7
                                            from port 1 to port 13: the lane of each SL
    from 5 sl 3 to 0x0007 0x0008            what the host behind port 5 sends to these LIDs

Without lines ``sl2vl`` all packets are in lane 0. Packets to LIDs that no line ``from`` has may
have any SL.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from knotless.forwarding.state import ForwardingState
from knotless.topologies.fabric import Link
from knotless.topologies.formats.switch_files import FABRIC

LFT = ".lft"
"""The suffix of a switch's file."""
LidPorts = Mapping[int, tuple[int, ...]]
"""The output ports by LID, of which packets take any; 0 is the switch itself."""
Lanes = Mapping[tuple[int, int], tuple[int, ...]]
"""The virtual lane of each SL, by input and output port."""
Levels = Mapping[tuple[int, int], Sequence[int]]
"""The LIDs to which a host sends, by its port and the SL."""


@dataclass(frozen=True)
class LidHost:
    """A port of a channel adapter, behind a port of a switch, with 2**lmc LIDs from ``lid`` on."""

    name: str
    switch: str
    port: int
    lid: int
    lmc: int

    @property
    def lids(self) -> range:
        """Its LIDs."""
        return range(self.lid, self.lid + (1 << self.lmc))


@dataclass(frozen=True)
class SubnetTables:
    """The tables of a subnet, all by the names of the switches.

    ``lanes`` is empty where all packets are in lane 0. ``to_others`` are the states of what
    hosts send to LIDs that no host has.
    """

    links: Sequence[Link]
    hosts: Sequence[LidHost]
    ports: Mapping[str, LidPorts]
    lanes: Mapping[str, Lanes] = field(default_factory=dict)
    levels: Mapping[str, Levels] = field(default_factory=dict)
    to_others: Sequence[ForwardingState] = ()

    def files(self, name: str, read_from: Mapping[str, str]) -> dict[str, str]:
        """Return the text of each file of the subnet called ``name``.

        ``read_from`` are the files that it was read from, with their SHA-256.
        """
        fabric = {
            "name": name,
            "switches": [*self.ports],
            "links": [
                {"a": link.a, "a_port": link.a_port, "b": link.b, "b_port": link.b_port}
                for link in self.links
            ],
            "hosts": [vars(host) for host in self.hosts],
            "read_from": [{"file": file, "sha256": text} for file, text in read_from.items()],
        }
        return {
            FABRIC: json.dumps(fabric, indent=1) + "\n",
            **{switch + LFT: self._lines(switch) for switch in self.ports},
        }

    def _lines(self, switch: str) -> str:
        lines = [
            f"0x{lid:04x} port {' '.join(map(str, ports))}"
            for lid, ports in sorted(self.ports[switch].items())
        ]
        for (enters, leaves), lanes in sorted(self.lanes.get(switch, {}).items()):
            lines.append(f"sl2vl {enters} {leaves} : {' '.join(map(str, lanes))}")
        for (port, sl), lids in sorted(self.levels.get(switch, {}).items()):
            lines.append(f"from {port} sl {sl} to {' '.join(f'0x{lid:04x}' for lid in lids)}")
        return "".join(f"{line}\n" for line in lines)
