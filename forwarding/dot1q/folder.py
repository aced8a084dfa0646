"""The files of an export: the tables of each switch, the fabric, the hosts' tags, a README."""

from __future__ import annotations

from forwarding.dot1q.model import L2Fabric
from forwarding.dot1q.reader import FABRIC
from forwarding.dot1q.targets import linux_bridge, plain
from routing.vlans import host_tags
from topologies.formats.files import to_text

README = "README.txt"

_ORDER = """\
{name}: tables for {switches} ordinary 802.1Q switches

The order matters:

1. Keep every port of every switch down (or unplugged).
2. Apply to each switch the whole of its file: NAME.json has PVIDs, VLAN membership and the static
   MAC table as plain values; NAME.bridge is the same for a Linux bridge NAME with ports NAME-ethN:
   sh -e NAME.bridge
   Learning and spanning tree must be off; untagged frames on ports between switches are dropped.
3. Bring the ports up. NAME.bridge does this by itself, at its end.

A switch whose ports are up before its tables are applied floods in its default VLAN. If the fabric
has loops, one broadcast is then enough for a storm that fills every link.
"""
_TAGS = """
tags.json says in which VLAN each host must send to which MAC; "default" is for every other address
and for broadcasts. What a host sends without a tag goes in the default VLAN, too.
"""


def files_of(exported: L2Fabric) -> dict[str, str]:
    """Return the text of each file by its name."""
    fabric = exported.fabric
    order = _ORDER.format(name=fabric.name, switches=len(exported.switches))
    files = {README: order, FABRIC: to_text(fabric)}
    if exported.tags is not None:
        files[README] += _TAGS
        files[host_tags.FILE] = host_tags.to_text(exported.tags)
    for switch in exported.switches:
        files[switch.name + plain.SUFFIX] = plain.to_text(fabric, switch)
        files[switch.name + linux_bridge.SUFFIX] = linux_bridge.to_text(switch)
    return files
