"""The file ``/etc/network/interfaces`` of ifupdown: addresses, bonds, bridges and VRFs.

Read only if routes are computed. The result has the form of SONiC's CONFIG_DB, as that of ``ip -j
addr``. See interfaces(5) of Debian, and the options of ifupdown2 for bonds, bridges and VRFs.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field

from knotless.importers.file_kinds import Content, FileKind
from knotless.importers.sonic.database import SonicTables

_IS_INTERFACES = re.compile(r"^(?:iface \S+|auto \S+$)", re.MULTILINE)
_WITHOUT_EFFECT = {
    "alias": "a description",
    "mtu": "the longest frame",
    "hwaddress": "the Ethernet address",
    "link-speed": "the rate",
    "link-duplex": "the rate",
    "link-autoneg": "the rate",
    "link-fec": "the rate",
    "dns-nameservers": "names",
    "dns-search": "names",
    "broadcast": "follows from the address",
    "network": "follows from the address",
    "bond-mode": "which member a packet takes",
    "bond-miimon": "when a member is seen down",
    "bond-lacp-rate": "when a member is seen down",
    "bond-lacp-bypass-allow": "members without a partner, which are none here",
    "bond-xmit-hash-policy": "which member a packet takes",
    "bridge-vlan-aware": "how VLANs are stored",
    "bridge-vids": "VLANs of bridges",
    "bridge-pvid": "VLANs of bridges",
    "bridge-access": "VLANs of bridges",
    "bridge-stp": "spanning tree, of which cables between bridges ask",
    "vrf-table": "where routes are stored",
}
"""Options that change no address and no link, each with what it is about."""
_METHODS = ("static", "manual", "loopback")
_MANAGEMENT = "mgmt"


@dataclass
class NetworkInterfaces:
    """The tables, and what the file says that is not followed."""

    tables: SonicTables = field(default_factory=SonicTables)
    unclear: list[str] = field(default_factory=list)

    def row(self, table: str, key: str, **fields: str) -> None:
        """Add a row, or fields of it."""
        self.tables.tables.setdefault(table, {}).setdefault(key, {}).update(fields)


def _read(content: Content) -> NetworkInterfaces:
    stanzas: dict[str, dict[str, list[str]]] = {}
    interfaces = NetworkInterfaces()
    current: dict[str, list[str]] = {}
    for number, line in enumerate(content.text.replace("\\\n", " ").split("\n"), 1):
        match line.partition("#")[0].split():
            case []:
                pass
            case ["auto" | "allow-hotplug" | "allow-auto", *names]:
                for name in names:
                    stanzas.setdefault(name, {})
            case ["iface", name, *rest]:
                current = stanzas.setdefault(name, {})
                method = rest[1:2] if rest[:1] in (["inet"], ["inet6"]) else rest[:1]
                if method and method[0] not in _METHODS:
                    text = f"line {number}, {' '.join(line.split())[:80]}"
                    current.setdefault("iface", []).append(text)
            case ["source" | "source-directory", *_]:
                interfaces.unclear.append(
                    f"{' '.join(line.split())[:80]} (name its files, or remove it)"
                )
            case [option, *values]:
                current.setdefault(option.replace("_", "-"), []).append(" ".join(values))
    for name, options in stanzas.items():
        _add(interfaces, name, options)
    return interfaces


def _add(interfaces: NetworkInterfaces, name: str, options: dict[str, list[str]]) -> None:
    is_virtual = name == "lo" or "." in name or "vlan-raw-device" in options
    vrf = options.get("vrf", [""])[-1]
    for option, values in options.items():
        text = " ".join(values)
        match option:
            case "address":
                masks = options.get("netmask", [])
                for value in values:
                    whole = value if "/" in value or not masks else f"{value}/{masks[0]}"
                    _address(interfaces, name, whole)
            case "netmask":
                pass
            case "gateway" | "iface" if vrf == _MANAGEMENT:
                pass
            case "vrf":
                interfaces.row("INTERFACE", name, vrf_name=vrf)
            case "bond-slaves" | "bridge-ports":
                is_virtual = True
                is_bond = option == "bond-slaves"
                table = "PORTCHANNEL_MEMBER" if is_bond else "BRIDGE_MEMBER"
                interfaces.row(*(("PORTCHANNEL", name) if is_bond else ("BRIDGE", name)))
                for port in text.split():
                    interfaces.row(table, f"{name}|{port}")
            case "bond-min-links":
                interfaces.row("PORTCHANNEL", name, min_links=text)
            case "vrf-table":
                is_virtual = True
            case "link-down":
                if text in ("yes", "on", "1"):
                    interfaces.row("PORT", name, admin_status="down")
            case _ if option not in _WITHOUT_EFFECT:
                interfaces.unclear.append(f"{name}: {option} {text}"[:100])
    if not is_virtual:
        interfaces.row("PORT", name)


def _address(interfaces: NetworkInterfaces, name: str, text: str) -> None:
    try:
        address = ipaddress.ip_interface(text)
    except ValueError:
        interfaces.unclear.append(f"{name}: address {text[:60]}")
        return
    interfaces.row("LOOPBACK_INTERFACE" if name == "lo" else "INTERFACE", f"{name}|{address}")


KIND = FileKind(
    "ifupdown interfaces",
    "routers",
    _IS_INTERFACES,
    _read,
    lambda content: content.text[:1] not in ("{", "["),
)
