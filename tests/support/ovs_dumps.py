"""Dumps of Open vSwitch bridges, one folder a switch, and a list of cables."""

from __future__ import annotations

import json
from pathlib import Path

from knotless.forwarding.openflow.ofctl_writer import write
from knotless.forwarding.openflow.rules import FabricRules
from knotless.topologies.fabric import Fabric


def write_ovs(
    fabric: Fabric, rules: FabricRules, folder: Path, *, named: bool = True, hosts: bool = True
) -> Path:
    """Write what ovs-ofctl prints of each switch.

    ``named``: cables name ports as ``s1-eth1``, otherwise by their numbers. ``hosts``: the list of
    cables has those of hosts, with their addresses; otherwise these were learned.
    """
    header = "OFPST_{} reply (OF1.3) (xid=0x2):\n"
    for switch in fabric.switches:
        directory = folder / switch.name
        directory.mkdir(parents=True, exist_ok=True)
        flows, groups = write(rules[switch.name])
        (directory / "flows").write_text(header.format("FLOW") + flows)
        (directory / "groups").write_text(header.format("GROUP_DESC") + groups)
        ports = [*fabric.neighbours[switch.name], *fabric.hosts_at[switch.name]]
        lines = [f" {port}({switch.name}-eth{port}): addr:02:aa:00:00:00:01" for port in ports]
        lines.append(f" LOCAL({switch.name}): addr:02:aa:00:00:00:02")
        (directory / "ports").write_text(header.format("PORT_DESC") + "\n".join(lines) + "\n")
    edges = [
        (_end(link.a, link.a_port, named), _end(link.b, link.b_port, named))
        for link in fabric.links
    ]
    for host in fabric.hosts:
        if hosts:
            edges.append((_end(host.switch, host.port, named), (host.name, host.mac)))
        else:
            row = f"{host.port:5}     0  {host.mac}   12\n"
            file = folder / host.switch / "learned"
            learned = file.read_text() if file.exists() else " port  VLAN  MAC                Age\n"
            file.write_text(learned + row)
    shown = [
        {
            key: dict(zip(("hostname", "interfaceName"), end, strict=True))
            for key, end in zip(("node1", "node2"), ends, strict=True)
        }
        for ends in edges
    ]
    (folder / "cables.json").write_text(json.dumps({"edges": shown}))
    return folder


def _end(switch: str, port: int, named: bool) -> tuple[str, str]:
    return switch, f"{switch}-eth{port}" if named else str(port)
