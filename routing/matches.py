"""The matches and the form of rule that every part of the compiler uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from routing.rules import COOKIE, Action, Field, Rule, match_order
from routing.vlan import FIRST_VLAN
from topologies.fabric import Fabric
from topologies.numbering import MAX_SWITCHES, SWITCH_MAC_MASK, mac_value, switch_mac

VLAN_PRESENT = 0x1000
UNTAGGED = Field("vlan_vid", 0)
TAGGED = Field("vlan_vid", VLAN_PRESENT, VLAN_PRESENT)

Addresses = dict[int, list[tuple[int, int | None]]]
"""The (MAC, mask) that together match the hosts of each switch that has any, by its index."""


def make_rule(
    table: int,
    priority: int,
    match: Iterable[Field],
    actions: tuple[Action, ...] = (),
    metadata: int | None = None,
    goto: int | None = None,
) -> Rule:
    """Return a rule of ours: fields in one order, our cookie."""
    return Rule(table, priority, match_order(match), actions, metadata, goto, COOKIE)


def switch_addresses(fabric: Fabric) -> Addresses:
    """Return the addresses of the fabric's hosts by switch.

    One masked address for each switch if every host's MAC is numbered, else exact ones.
    """
    index = fabric.switch_index
    exact: Addresses = {}
    numbered = True
    for host in fabric.hosts:
        i = index[host.switch]
        mac = mac_value(host.mac)
        exact.setdefault(i, []).append((mac, None))
        numbered &= i < MAX_SWITCHES and mac & SWITCH_MAC_MASK == switch_mac(i + 1)
    if numbered:
        return {i: [(switch_mac(i + 1), SWITCH_MAC_MASK)] for i in exact}
    return exact


def vlan_ranges(vlans: int) -> Iterator[Field]:
    """Yield matches that together cover the VLANs in use: FIRST_VLAN and so many on."""
    low, end = FIRST_VLAN, FIRST_VLAN + vlans
    while low < end:
        size = low & -low
        while low + size > end:
            size //= 2
        value = VLAN_PRESENT | low
        yield Field("vlan_vid", value, 0x1FFF & ~(size - 1) if size > 1 else None)
        low += size
