"""Files in folders and archives that are not read: why, and the command that gives what is read.

What is in such a file is not known. It matters if its text is that of a kind that is read; a backup
copy, or a file of another vendor or purpose, does not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

_BACKUP = re.compile(
    r".+(\.(bak|old|orig|sav|save|saved|backup|swp|rej|rpmsave|dpkg-old|dpkg-dist|tmp)|~)\d*"
)
_SYSTEMS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.MULTILINE), system)
    for pattern, system in (
        (r"^! device: .*\bEOS-|^management api http-commands$|^daemon TerminAttr$", "Arista EOS"),
        (r"^!Command: show |^feature [a-z-]+$|^vdc \S+ id \d+$", "Cisco NX-OS"),
        (r"^!! IOS XR Configuration", "Cisco IOS XR"),
        (r"^Current configuration : \d+ bytes$|^boot-start-marker$|^version 1\d\.\d$", "Cisco IOS"),
        (r"\bnvue-api-version\b|^nv set |^- set:$", "NVIDIA NVUE"),
        (r"^set (?:system|interfaces|protocols|policy-options) |^system \{$", "Junos"),
        (r"^router bgp \d+|^interface \S+$", "a router without FRR's marks ('frr version')"),
    )
)
"""What configurations of systems have that are not read; the first that fits counts."""
_MINIGRAPH = re.compile(r"<DeviceMiniGraph\b")
_HEAD_BYTES = 1 << 20
_OTHERWISE = "your own script, which writes tables in JSON"
_CONFIG_DB = "sonic-db-dump -n CONFIG_DB -y > config.json"
_APPL_DB = "sonic-db-dump -n APPL_DB -y > appl.json"
COMMANDS: Mapping[str, str] = {
    "FRR configuration": "vtysh -c 'show running-config' > frr.conf",
    "ifupdown interfaces": "/etc/network/interfaces, and the files that it names",
    "FRR routes (JSON)": "vtysh -c 'show ip route vrf all json' > routes.json",
    "FRR routes (text)": "vtysh -c 'show ip route vrf all json' > routes.json",
    "InfiniBand SL to VL tables": "opensm-sl2vl.dump of OpenSM, with log_flags 0x43",
    "InfiniBand adaptive routing": "ibdiagnet, which writes ibdiagnet2.far",
    "InfiniBand forwarding tables": "dump_fts > tables",
    "InfiniBand path SLs": "saquery -p > sls",
    "Knotless tables (JSON)": "your own script: see the format",
    "LLDP neighbours": "lldpctl -f json > lldp.json",
    "LLDP neighbours (text)": "lldpctl -f json > lldp.json",
    "Linux PFC (dcb)": "dcb pfc show dev PORT, and the same with app, ets and buffer",
    "Linux bridge (bridge fdb)": "bridge -j fdb > fdb.json",
    "Linux interfaces (ip -j addr)": "ip -d -j addr > addr.json",
    "Linux routes (ip -j route)": "ip -j route > route.json",
    "Open vSwitch addresses": "ovs-appctl fdb/show BRIDGE > addresses",
    "Open vSwitch dumps of all switches": "dpctl dump-flows, in the prompt of Mininet",
    "Open vSwitch ports": "ovs-ofctl -O OpenFlow13 dump-ports-desc BRIDGE > ports",
    "Open vSwitch rules and groups": "ovs-ofctl -O OpenFlow13 dump-flows BRIDGE > flows",
    "SONiC database": _CONFIG_DB,
    "SONiC pauses (pfcwd, show pfc counters)": "pfcwd show stats > pfcwd; show pfc counters > pfc",
    "ibnetdiscover": "ibnetdiscover > net",
    "layer 1 topology": "the list of cables, layer1_topology.json",
}
"""The command that gives a file of each kind."""
_SIGNS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), command)
    for pattern, command in (
        (r'"[A-Z][A-Z0-9_]*_TABLE[:"]', _APPL_DB),
        (r'"[A-Z][A-Z0-9_]{2,63}(\||"\s*:\s*\{)', _CONFIG_DB),
        (r'"nexthops"', COMMANDS["FRR routes (JSON)"]),
        (r'"lldp"', COMMANDS["LLDP neighbours"]),
        (r'"edges"[^"]*"node1"', COMMANDS["layer 1 topology"]),
        (r'"ifname"[^}]*"addr_info"', COMMANDS["Linux interfaces (ip -j addr)"]),
        (r'"mac"[^}]*"ifname"', COMMANDS["Linux bridge (bridge fdb)"]),
        (r'"dst"[^}]*"(dev|nexthops)"', COMMANDS["Linux routes (ip -j route)"]),
        (r"(?i)\bunicast lids\b", COMMANDS["InfiniBand forwarding tables"]),
        (r'(?m)^(Switch|Ca)\s+\d+\s+"[SH]-', COMMANDS["ibnetdiscover"]),
    )
)
"""What damaged text of the kinds has that are recognised by all of it, and their commands."""


@dataclass(frozen=True)
class NotRead:
    """A file that was not read. ``matters``: it may have facts about the fabric."""

    file: str
    reason: str
    command: str = ""
    matters: bool = False

    @property
    def text(self) -> str:
        """The reason as text, with the command."""
        return f"{self.reason} (instead: {self.command})" if self.command else self.reason


def backup(path: PurePath) -> NotRead | None:
    """Return why a file is not read whose name is that of a backup copy; None for others."""
    return NotRead(str(path), "a backup copy") if _BACKUP.fullmatch(path.name) else None


def system_of(text: str) -> str | None:
    """Return whose configuration a text is that no reader recognises; None: of none known."""
    return next((system for sign, system in _SYSTEMS if sign.search(text)), None)


def unknown_kind(path: PurePath, data: bytes, *, configurations: bool = False) -> NotRead:
    """Return why a file is not read that no reader recognises.

    If ``configurations`` are to be read, those of other systems matter.
    """
    system = system_of(data[:_HEAD_BYTES].decode(errors="replace"))
    if system is not None:
        reason = f"the configuration of {system}, which is not read"
        return NotRead(str(path), reason, _OTHERWISE, matters=configurations)
    if _MINIGRAPH.search(data[:4000].decode(errors="replace")):
        command = f"sonic-cfggen -m {path.name} --print-data > config.json"
        return NotRead(str(path), "a minigraph", command)
    return NotRead(str(path), "no known kind of file")


def unreadable(path: PurePath, data: bytes, reason: str, kind: str | None) -> NotRead:
    """Return why a file is not read; ``kind`` is that of the reader that recognised it."""
    command = COMMANDS.get(kind or "", "")
    if not command:
        text = data.decode(errors="replace").replace("\0", "")  # of UTF-16 too
        command = next((command for sign, command in _SIGNS if sign.search(text)), "")
    return NotRead(str(path), reason, command, matters=bool(command))
