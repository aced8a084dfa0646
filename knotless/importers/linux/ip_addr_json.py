"""Output of Linux's ``ip -j addr`` and ``ip -j link``: interfaces, bonds, bridges and VRFs.

The result has the form of SONiC's CONFIG_DB: INTERFACE, PORTCHANNEL_MEMBER (for bonds, and for
VLAN devices on a port), PORT, and BRIDGE and BRIDGE_MEMBER, which SONiC has not.
"""

from __future__ import annotations

from typing import Any

from knotless.base.errors import RuleError
from knotless.importers.file_kinds import Content, FileKind, json_mark
from knotless.importers.sonic.database import SonicTables


def _fits(content: Content) -> bool:
    # Interfaces that a filter leaves out are empty objects.
    return isinstance(content.json, list) and all(
        isinstance(item, dict) and (not item or {"ifname", "flags"} <= item.keys())
        for item in content.json
    )


def _read(content: Content) -> SonicTables:
    devices = {_text(item, "ifname"): item for item in content.json if item}
    database = SonicTables()
    for name, device in devices.items():
        master, parent = device.get("master"), device.get("link")
        if isinstance(master, str) and master in devices:
            _member(database, name, master, device, devices[master])
        kind = devices.get(parent, {}) if isinstance(parent, str) else {}
        if kind.get("link") == name:
            parent = None  # the other end of a veth
        if isinstance(parent, str) and not name.startswith(f"{parent}."):
            if _is_bridge(parent, kind, devices):
                _row(database, "BRIDGE", name)
            else:
                _row(database, "PORTCHANNEL_MEMBER", f"{name}|{parent}")
        addresses = device.get("addr_info", [])
        if not isinstance(addresses, list) or not all(isinstance(one, dict) for one in addresses):
            raise RuleError(f"{name[:40]}: addr_info must be a list of objects")
        for address in addresses:
            if "local" in address and address.get("scope") == "global":
                _row(database, "INTERFACE", f"{name}|{address['local']}/{address.get('prefixlen')}")
        if _is_bridge(name, device, devices):
            _row(database, "BRIDGE", name)
        elif parent is None and "LOOPBACK" not in device["flags"] and not _is_master(device):
            _row(database, "PORT", name)
    return database


def _member(
    database: SonicTables,
    name: str,
    master: str,
    device: dict[str, Any],
    master_device: dict[str, Any],
) -> None:
    if "SLAVE" in device["flags"]:
        _row(database, "PORTCHANNEL_MEMBER", f"{master}|{name}")
    elif _is_master(master_device):
        database.tables.setdefault("INTERFACE", {})[name] = {"vrf_name": master}
    else:
        _row(database, "BRIDGE_MEMBER", f"{master}|{name}")


def _is_master(device: dict[str, Any]) -> bool:
    """Tell whether a device is a bond or a VRF; their members cannot be bridged by it."""
    return "MASTER" in device.get("flags", [])


def _is_bridge(name: str, device: dict[str, Any], devices: dict[str, dict[str, Any]]) -> bool:
    info = device.get("linkinfo")
    if isinstance(info, dict) and "info_kind" in info:
        return bool(info["info_kind"] == "bridge")
    return not _is_master(device) and any(other.get("master") == name for other in devices.values())


def _row(database: SonicTables, table: str, key: str) -> None:
    database.tables.setdefault(table, {}).setdefault(key, {})


def _text(item: dict[str, Any], key: str) -> str:
    if not isinstance(item[key], str) or not isinstance(item["flags"], list):
        raise RuleError(f"{key} must be a text and flags a list: {str(item)[:80]}")
    return str(item[key])


KIND = FileKind("Linux interfaces (ip -j addr)", "routers", json_mark("[", "ifname"), _read, _fits)
