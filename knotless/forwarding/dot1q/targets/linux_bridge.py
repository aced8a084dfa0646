"""NAME.bridge: the tables of a switch as a shell script for a Linux bridge with VLAN filtering.

The bridge has the switch's name, and port N of it is NAME-ethN. Both must exist, the ports must be
in the bridge, and the bridge must be new. A bridge that is down forwards nothing. The script keeps
it down until everything is applied, because a bridge in its default VLAN floods in every loop of
the fabric.
"""

from __future__ import annotations

from knotless.forwarding.dot1q.model import L2Port, L2Switch
from knotless.forwarding.dot1q.target import Target
from knotless.forwarding.dot1q.targets._bridge_script import read_script
from knotless.topologies.fabric import Fabric

BEGIN, END = "-batch - <<'END'", "END"


def device_of(switch: str, port: int) -> str:
    """Return the name of a port's network device."""
    return f"{switch}-eth{port}"


def _write(_fabric: Fabric, switch: L2Switch) -> str:
    """Return the script, for ``sh -e``; commands are in batches, because a process each is slow."""
    devices = [device_of(switch.name, port.port) for port in switch.ports]
    lines = [
        "# Everything is applied first; only then do the ports come up.",
        f"ip link set dev {switch.name} down",
        f"ip link set dev {switch.name} type bridge vlan_filtering 1 stp_state 0 mcast_snooping 0",
        f"bridge {BEGIN}",
        f"vlan del dev {switch.name} vid 1 self",
    ]
    for port, device in zip(switch.ports, devices, strict=True):
        lines += _port(port, device)
    for vlan, of_vlan in switch.macs.items():
        lines += [
            f"fdb replace {mac} dev {device_of(switch.name, port)} master static vlan {vlan}"
            for mac, port in of_vlan.items()
        ]
    lines += [END, f"ip {BEGIN}"]
    lines += [f"link set dev {device} up" for device in [*devices, switch.name]]
    return "\n".join([*lines, END]) + "\n"


def _port(port: L2Port, device: str) -> list[str]:
    lines = [f"link set dev {device} learning off", f"vlan del dev {device} vid 1"]
    for vlan in port.vlans:
        flags = " pvid" if vlan == port.pvid else ""
        flags += " untagged" if vlan in port.untagged else ""
        lines.append(f"vlan add dev {device} vid {vlan}{flags}")
    return lines


def _read(_fabric: Fabric, name: str, text: str) -> L2Switch:
    return read_script(name, text)


LINUX_BRIDGE = Target("linux-bridge", ".bridge", _write, _read)
