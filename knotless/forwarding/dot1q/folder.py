"""The files of an export: the tables of each switch, the fabric, the hosts' tags, a README."""

from __future__ import annotations

from knotless.forwarding.dot1q.model import L2Fabric
from knotless.forwarding.dot1q.target import FABRIC, targets
from knotless.routing.vlans import host_tags
from knotless.topologies.formats.files import to_text

README = "README.txt"

_ORDER = """\
{name}: tables for {switches} ordinary 802.1Q switches

The order matters:

1. Keep every port of every switch down (or unplugged).
2. Apply its file to each switch: NAME.json has PVIDs, VLAN membership and the static MAC table;
NAME.bridge is the same as a script for a Linux bridge NAME with ports NAME-ethN:
   sh -e NAME.bridge
   Learning and spanning tree must be off; untagged frames on ports between switches are dropped.
3. Bring the ports up. NAME.bridge does this itself, at its end.

A switch whose ports are up before its tables are applied floods in its default VLAN. If the fabric
has loops, a single broadcast then causes a storm that fills every link.
"""
_TAGS = """
tags.json has the VLAN in which each host must send to each MAC; "default" is for all other
addresses and for broadcasts. Untagged frames of a host use the default VLAN, too.
"""


def files_of(exported: L2Fabric) -> dict[str, str]:
    """Return the text of each file by file name."""
    fabric = exported.fabric
    order = _ORDER.format(name=fabric.name, switches=len(exported.switches))
    files = {README: order, FABRIC: to_text(fabric)}
    if exported.tags is not None:
        files[README] += _TAGS
        files[host_tags.FILE] = host_tags.to_text(exported.tags)
    for switch in exported.switches:
        for suffix, target in targets().items():
            files[switch.name + suffix] = target.write(fabric, switch)
    return files
