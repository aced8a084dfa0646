"""The files of an export, written and read back: tables, the fabric, the hosts' tags, a README."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from knotless.base.errors import KnotlessError, RuleError
from knotless.base.files import read_text
from knotless.forwarding.dot1q.model import L2Fabric, L2Switch
from knotless.forwarding.dot1q.target import peers_of, targets
from knotless.routing.vlans import host_tags
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats.files import from_text, to_text
from knotless.topologies.formats.switch_files import FABRIC

DEFAULT = ".json"


def read_folder(folder: str | Path, kind: str = DEFAULT) -> L2Fabric:
    """Return what the files in ``folder`` say; of each switch that of the ``kind`` given.

    Raises
    ------
    KnotlessError
        A file is missing, cannot be read, or does not fit the fabric.

    """
    files = {}
    for path in sorted(Path(folder).glob("*")):
        if path.suffix in targets():
            files[path.name] = read_text(path, RuleError)
    return read_files(files, kind)


def read_files(files: Mapping[str, str], kind: str = DEFAULT) -> L2Fabric:
    """Return what files (name -> text) say; see :func:`read_folder`."""
    if FABRIC not in files:
        raise RuleError(f"{FABRIC} is missing")
    fabric = from_text(files[FABRIC])
    tags = None
    if host_tags.FILE in files:
        try:
            tags = host_tags.from_text(fabric, files[host_tags.FILE])
        except KnotlessError as error:
            raise error.within(host_tags.FILE) from None
    return L2Fabric(
        fabric, tuple(_switch(fabric, s.name, files, kind) for s in fabric.switches), tags
    )


def _switch(fabric: Fabric, name: str, files: Mapping[str, str], kind: str) -> L2Switch:
    file = name + kind
    if file not in files:
        raise RuleError(f"{file} is missing")
    try:
        switch = targets()[kind].read(fabric, name, files[file])
        _check(fabric, switch)
    except KnotlessError as error:
        raise error.within(file) from None
    return switch


def _check(fabric: Fabric, switch: L2Switch) -> None:
    """Raise RuleError if the tables do not fit the fabric or are inconsistent."""
    ports = [port.port for port in switch.ports]
    expected = sorted(peers_of(fabric, switch.name))
    if ports != expected:
        raise RuleError(f"has the ports {ports}, but in {FABRIC} {expected}")
    for port in switch.ports:
        if len(set(port.vlans)) != len(port.vlans):
            raise RuleError(f"port {port.port}: is a member of a VLAN twice")
        if port.pvid is not None and port.pvid not in port.vlans:
            raise RuleError(f"port {port.port}: is not a member of its PVID {port.pvid}")
    for vlan, of_vlan in switch.macs.items():
        for mac, entry_port in of_vlan.items():
            if not re.fullmatch("[0-9a-f]{2}(:[0-9a-f]{2}){5}", mac):
                raise RuleError(f"VLAN {vlan}: {mac[:40]!r} is not a MAC address")
            if int(mac[:2], 16) & 1:
                raise RuleError(f"VLAN {vlan}: {mac} is the address of a group, which is flooded")
            if entry_port not in ports:
                raise RuleError(f"VLAN {vlan}: {mac} is at port {entry_port}, which does not exist")


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
