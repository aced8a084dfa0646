"""Exported files read back into what they give each switch: NAME.json or NAME.bridge."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common.errors import KnotlessError, RuleError
from forwarding.dot1q.bridge_script import read_script
from forwarding.dot1q.model import L2Fabric, L2Port, L2Switch, Macs
from forwarding.dot1q.targets import linux_bridge, plain
from routing.vlans import host_tags
from topologies.fabric import Fabric
from topologies.formats.files import from_text

FABRIC = "fabric.json"
KINDS = (plain.SUFFIX, linux_bridge.SUFFIX)
"""What the files of the switches may end in."""


def read_folder(folder: str | Path, kind: str = plain.SUFFIX) -> L2Fabric:
    """Return what the files in ``folder`` say; of each switch that of the ``kind`` given.

    Raises
    ------
    KnotlessError
        A file that is missing, cannot be read, or does not fit the fabric.

    """
    files = {}
    for path in sorted(Path(folder).glob("*")):
        if path.suffix in KINDS:
            try:
                files[path.name] = path.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise RuleError(f"{path}: cannot be read: {error}") from None
    return read_files(files, kind)


def read_files(files: Mapping[str, str], kind: str = plain.SUFFIX) -> L2Fabric:
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
        if kind == plain.SUFFIX:
            switch = read_plain(fabric, name, files[file])
        else:
            switch = read_script(name, files[file])
        _check(fabric, switch)
    except KnotlessError as error:
        raise error.within(file) from None
    return switch


def read_plain(fabric: Fabric, name: str, text: str) -> L2Switch:
    """Return what a NAME.json gives the switch ``name``; RuleError where it does not."""
    try:
        values: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise RuleError("not JSON") from None
    if not isinstance(values, dict) or values.get("switch") != name:
        raise RuleError(f"must be an object with 'switch': {name!r}")
    peers = plain.peers_of(fabric, name)
    ports = []
    for port in _objects(values, "ports"):
        number = _number(port, "port", 2**31)
        if port.get("peer") != peers.get(number):
            raise RuleError(
                f"port {number}: leads to {str(port.get('peer'))[:40]!r},"
                f" but in {FABRIC} to {peers.get(number, 'nothing')!r}"
            )
        pvid = None if port.get("pvid") is None else _number(port, "pvid", 4094)
        vlans = (_vlans(port, "untagged"), _vlans(port, "tagged"))
        ports.append(L2Port(number, pvid, *vlans))
    macs: Macs = {}
    for entry in _objects(values, "macs"):
        of_vlan = macs.setdefault(_number(entry, "vlan", 4094), {})
        mac = str(entry.get("mac")).lower()
        if of_vlan.setdefault(mac, _number(entry, "port", 2**31)) != entry["port"]:
            raise RuleError(f"VLAN {entry['vlan']}: {mac[:40]} is at two ports")
    return L2Switch(name, tuple(sorted(ports, key=lambda port: port.port)), macs)


def _check(fabric: Fabric, switch: L2Switch) -> None:
    """Refuse what does not fit the fabric or contradicts itself."""
    ports = [port.port for port in switch.ports]
    known = sorted(plain.peers_of(fabric, switch.name))
    if ports != known:
        raise RuleError(f"has the ports {ports}, but in {FABRIC} {known}")
    for port in switch.ports:
        if len(set(port.vlans)) != len(port.vlans):
            raise RuleError(f"port {port.port}: is a member of a VLAN twice")
        if port.pvid is not None and port.pvid not in port.vlans:
            raise RuleError(f"port {port.port}: is no member of its PVID {port.pvid}")
    for vlan, of_vlan in switch.macs.items():
        for mac, at in of_vlan.items():
            if not re.fullmatch("[0-9a-f]{2}(:[0-9a-f]{2}){5}", mac):
                raise RuleError(f"VLAN {vlan}: {mac[:40]!r} is no MAC address")
            if at not in ports:
                raise RuleError(f"VLAN {vlan}: {mac} is at port {at}, which there is not")


def _objects(values: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = values.get(key)
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise RuleError(f"{key!r} must be a list of objects")
    return found


def _number(values: dict[str, Any], key: str, most: int) -> int:
    found = values.get(key)
    if not isinstance(found, int) or isinstance(found, bool) or not 1 <= found <= most:
        raise RuleError(f"{key!r} must be a number from 1 to {most}, not {str(found)[:40]}")
    return found


def _vlans(values: dict[str, Any], key: str) -> tuple[int, ...]:
    found = values.get(key)
    if not isinstance(found, list):
        raise RuleError(f"{key!r} must be a list of VLANs")
    return tuple(sorted(_number({key: vlan}, key, 4094) for vlan in found))
