"""An 802.1Q bridge with a static MAC table, written as OpenFlow rules.

It uses only the file that ``knotless export`` writes for the switch, as an ordinary switch does:
assign the port's PVID to untagged frames, drop frames in a VLAN of which the port is not a member,
forward by (VLAN, MAC), flood the VLAN if the MAC is not in the table, and send with or without the
tag according to the port's membership.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PRESENT = 0x1000


def flows_of(file: Path) -> str:
    """Return the rules, for ``ovs-ofctl -O OpenFlow13 add-flows``."""
    switch = json.loads(file.read_text())
    ports = {port["port"]: port for port in switch["ports"]}
    lines = []
    for number, port in ports.items():
        if port["pvid"] is not None:
            tag = f"push_vlan:0x8100,set_field:{PRESENT | port['pvid']}->vlan_vid"
            lines.append(f"priority=1,in_port={number},vlan_vid=0x0 actions={tag},goto_table:1")
        for vlan in (*port["untagged"], *port["tagged"]):
            match = f"priority=1,in_port={number},vlan_vid={PRESENT | vlan:#x}"
            lines.append(f"{match} actions=goto_table:1")
    for entry in switch["macs"]:
        match = f"vlan_vid={PRESENT | entry['vlan']:#x},eth_dst={entry['mac']}"
        out = _sent(ports[entry["port"]], entry["vlan"])
        lines.append(f"table=1,priority=2,{match} actions={','.join(out) or 'drop'}")
    for vlan in switch["vlans"]:
        tagged = [f"output:{number}" for number, port in ports.items() if vlan in port["tagged"]]
        untagged = [f"output:{n}" for n, port in ports.items() if vlan in port["untagged"]]
        out = [*tagged, "pop_vlan", *untagged]
        lines.append(f"table=1,priority=1,vlan_vid={PRESENT | vlan:#x} actions={','.join(out)}")
    return "\n".join(_with_table(line) for line in lines) + "\n"


def _sent(port: dict[str, Any], vlan: int) -> list[str]:
    if vlan in port["untagged"]:
        return ["pop_vlan", f"output:{port['port']}"]
    return [f"output:{port['port']}"] if vlan in port["tagged"] else []


def _with_table(line: str) -> str:
    return line if line.startswith("table=") else f"table=0,{line}"
