"""NAME.json: the tables of a switch as JSON, for people and for other programs."""

from __future__ import annotations

import json

from forwarding.dot1q.model import L2Switch
from topologies.fabric import Fabric

SUFFIX = ".json"


def to_text(fabric: Fabric, switch: L2Switch) -> str:
    """Return ``switch`` as JSON text, with the far end of each port (its peer)."""
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


def peers_of(fabric: Fabric, switch: str) -> dict[int, str]:
    """Return the far end of each port: a host (``h1``), or a port of another switch (``s2:3``)."""
    hosts = {port: host.name for port, host in fabric.hosts_at[switch].items()}
    return hosts | {port: f"{far}:{p}" for port, (far, p) in fabric.neighbours[switch].items()}
