"""What an 802.1Q switch with static tables does with a frame.

The relation is (switch, in port, destination, VLAN or untagged) -> {(out port, VLAN or untagged)}:

- a frame without a tag (or with VLAN 0) is in the VLAN that is the port's PVID, if it has one;
- a frame in a VLAN that the port is not a member of is dropped (ingress filtering);
- an address that the table of the VLAN knows goes out of its port, if that is a member of the
  VLAN and not the port that the frame came in by;
- any other address, unknown, broadcast or group, goes out of all other members (flooding);
- it goes out without a tag where the port's membership is untagged.

Nothing is learned. It is evaluated for many frames at once, as arrays: a port is the index of a
(switch, port) of the whole fabric, a tag a VLAN's number or 0.

References
----------
IEEE 802.1Q-2018, clauses 6.9 (classification), 8.6 (ingress, forwarding, egress).

"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forwarding.dot1q.model import L2Fabric, L2Switch
from routing.channels import Ints

UNTAGGED = 0
FLOODED = -1
"""In a table of next ports: the address is not in it."""


class Sent(NamedTuple):
    """Copies that are sent: of which frame (its place in what came), out of which port, its tag."""

    frame: Ints
    port: Ints
    tag: Ints


@dataclass(frozen=True)
class Tables:
    """The tables of all switches of a fabric; ports are ordered by switch, then number.

    ``first`` (switches + 1) is where each switch's ports begin. A VLAN's place is its row in
    ``member`` and ``untagged`` (VLANs, ports); ``place`` (4,096) is the place of each VLAN, the
    last one that of VLANs that nobody knows. ``entries`` are, for each MAC, the switches, places
    and ports of its static entries.
    """

    switch: Ints
    first: Ints
    pvid: Ints
    place: Ints
    vlan: Ints
    member: NDArray[np.bool_]
    untagged: NDArray[np.bool_]
    entries: dict[str, Ints]

    def next_ports(self, mac: str | None) -> Ints:
        """Return (switches, VLANs) the port to ``mac``, FLOODED where it is unknown or None."""
        table = np.full((len(self.first) - 1, len(self.vlan)), FLOODED, dtype=np.int32)
        if mac is not None and mac in self.entries:
            switch, place, port = self.entries[mac]
            table[switch, place] = port
        return table

    def send(self, next_ports: Ints, port: Ints, tag: Ints) -> Sent:
        """Return what is sent for frames to one address that come in by ``port`` with ``tag``."""
        place = self.place[np.where(tag == UNTAGGED, self.pvid[port], tag)]
        frame = np.flatnonzero(self.member[place, port])
        port, place = port[frame], place[frame]
        switch = self.switch[port]
        onward = next_ports[switch, place]
        known = onward != FLOODED
        copies = np.where(known, 1, self.first[switch + 1] - self.first[switch])
        # A known address: its port. Else: each port of the switch in turn.
        each = np.repeat(np.arange(len(frame)), copies)
        turn = np.arange(len(each)) - np.repeat(np.cumsum(copies) - copies, copies)
        out = np.where(known[each], onward[each], self.first[switch[each]] + turn)
        sent = self.member[place[each], out] & (out != port[each])
        each, out = each[sent], out[sent].astype(np.int32)
        leaves = np.where(self.untagged[place[each], out], UNTAGGED, self.vlan[place[each]])
        return Sent(frame[each].astype(np.int32), out, leaves.astype(np.int32))


def tables_of(fabric: L2Fabric) -> Tables:
    """Return the tables of ``fabric`` as arrays."""
    switches = fabric.switches
    counts = [len(switch.ports) for switch in switches]
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    vlans = sorted({vlan for s in switches for vlan in (*s.vlans, *s.macs)})
    place = np.full(4096, len(vlans), dtype=np.int32)
    place[vlans] = np.arange(len(vlans))
    member = np.zeros((len(vlans) + 1, int(first[-1])), dtype=np.bool_)
    untagged = np.zeros_like(member)
    pvid = np.zeros(int(first[-1]), dtype=np.int32)
    ports = [port for switch in switches for port in switch.ports]
    for i, port in enumerate(ports):
        member[place[list(port.vlans)], i] = True
        untagged[place[list(port.untagged)], i] = True
        pvid[i] = port.pvid or 0
    return Tables(
        switch=np.repeat(np.arange(len(switches)), counts).astype(np.int32),
        first=first,
        pvid=pvid,
        place=place,
        vlan=np.array([*vlans, 0], dtype=np.int32),
        member=member,
        untagged=untagged,
        entries=_entries(switches, first, place),
    )


def _entries(switches: tuple[L2Switch, ...], first: Ints, place: Ints) -> dict[str, Ints]:
    found: dict[str, list[tuple[int, int, int]]] = {}
    for i, switch in enumerate(switches):
        at = {port.port: int(first[i]) + k for k, port in enumerate(switch.ports)}
        for vlan, of_vlan in switch.macs.items():
            for mac, port in of_vlan.items():
                found.setdefault(mac, []).append((i, int(place[vlan]), at[port]))
    return {mac: np.array(rows, dtype=np.int32).T for mac, rows in found.items()}
