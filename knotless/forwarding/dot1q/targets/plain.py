"""NAME.json: the tables of a switch as JSON, for people and for other programs."""

from __future__ import annotations

import json
from typing import Any

from knotless.base.errors import RuleError
from knotless.base.model_limits import LAST_VLAN
from knotless.forwarding.dot1q.model import L2Port, L2Switch, Macs
from knotless.forwarding.dot1q.target import Target, peers_of
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats.switch_files import FABRIC


def _write(fabric: Fabric, switch: L2Switch) -> str:
    """Return ``switch`` as JSON text, with what is at the other end of each port (its peer)."""
    peers = peers_of(fabric, switch.name)
    ports = [
        {
            "port": port.port,
            "peer": peers[port.port],
            "pvid": port.pvid,
            "untagged": list(port.untagged),
            "tagged": list(port.tagged),
        }
        for port in switch.ports
    ]
    macs = [
        {"vlan": vlan, "mac": mac, "port": port}
        for vlan, of_vlan in switch.macs.items()
        for mac, port in of_vlan.items()
    ]
    head = json.dumps({"switch": switch.name, "vlans": list(switch.vlans)})
    return f'{head[:-1]},\n "ports": {_lines(ports)},\n "macs": {_lines(macs)}}}\n'


def _lines(rows: list[dict[str, object]]) -> str:
    """Return the rows as a JSON list with one row per line."""
    return "[" + ",\n  ".join(map(json.dumps, rows)) + "]"


def _read(fabric: Fabric, name: str, text: str) -> L2Switch:
    """Return what a NAME.json gives the switch ``name``; RuleError where it does not."""
    try:
        values: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise RuleError("not JSON") from None
    if not isinstance(values, dict) or values.get("switch") != name:
        raise RuleError(f"must be an object with 'switch': {name!r}")
    peers = peers_of(fabric, name)
    ports = []
    for port in _objects(values, "ports"):
        number = _number(port, "port", 2**31)
        if port.get("peer") != peers.get(number):
            raise RuleError(
                f"port {number}: leads to {str(port.get('peer'))[:40]!r},"
                f" but in {FABRIC} to {peers.get(number, 'nothing')!r}"
            )
        pvid = None if port.get("pvid") is None else _number(port, "pvid", LAST_VLAN)
        vlans = (_vlans(port, "untagged"), _vlans(port, "tagged"))
        ports.append(L2Port(number, pvid, *vlans))
    macs: Macs = {}
    for entry in _objects(values, "macs"):
        of_vlan = macs.setdefault(_number(entry, "vlan", LAST_VLAN), {})
        mac = str(entry.get("mac")).lower()
        if of_vlan.setdefault(mac, _number(entry, "port", 2**31)) != entry["port"]:
            raise RuleError(f"VLAN {entry['vlan']}: {mac[:40]} is at two ports")
    return L2Switch(name, tuple(sorted(ports, key=lambda port: port.port)), macs)


def _objects(values: dict[str, Any], key: str) -> list[dict[str, Any]]:
    objects = values.get(key)
    if not isinstance(objects, list) or not all(isinstance(one, dict) for one in objects):
        raise RuleError(f"{key!r} must be a list of objects")
    return objects


def _number(values: dict[str, Any], key: str, maximum: int) -> int:
    number = values.get(key)
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= maximum:
        raise RuleError(f"{key!r} must be a number from 1 to {maximum}, not {str(number)[:40]}")
    return number


def _vlans(values: dict[str, Any], key: str) -> tuple[int, ...]:
    vlans = values.get(key)
    if not isinstance(vlans, list):
        raise RuleError(f"{key!r} must be a list of VLANs")
    return tuple(sorted(_number({key: vlan}, key, LAST_VLAN) for vlan in vlans))


PLAIN = Target("plain", ".json", _write, _read)
