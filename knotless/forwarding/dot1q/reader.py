"""Exported files read back into what they give each switch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from knotless.base.errors import KnotlessError, RuleError
from knotless.base.files import read_text
from knotless.forwarding.dot1q.model import L2Fabric, L2Switch
from knotless.forwarding.dot1q.target import FABRIC, peers_of, targets
from knotless.routing.vlans import host_tags
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats.files import from_text

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
    known = sorted(peers_of(fabric, switch.name))
    if ports != known:
        raise RuleError(f"has the ports {ports}, but in {FABRIC} {known}")
    for port in switch.ports:
        if len(set(port.vlans)) != len(port.vlans):
            raise RuleError(f"port {port.port}: is a member of a VLAN twice")
        if port.pvid is not None and port.pvid not in port.vlans:
            raise RuleError(f"port {port.port}: is not a member of its PVID {port.pvid}")
    for vlan, of_vlan in switch.macs.items():
        for mac, at in of_vlan.items():
            if not re.fullmatch("[0-9a-f]{2}(:[0-9a-f]{2}){5}", mac):
                raise RuleError(f"VLAN {vlan}: {mac[:40]!r} is not a MAC address")
            if at not in ports:
                raise RuleError(f"VLAN {vlan}: {mac} is at port {at}, which does not exist")
