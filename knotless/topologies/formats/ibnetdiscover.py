"""Fabrics from the output of ``ibnetdiscover`` (InfiniBand diagnostics).

The blocks of nodes are read; these are the relevant lines::

    switchguid=0x5442ba00003080(5442ba00003080)
    Switch  24 "S-005442ba00003080"     # "ISR9024" base port 0 lid 6 lmc 0
    [22]    "H-0008f10403961354"[1](8f10403961355)      # "host" lid 4 4xSDR

Switches become s1, s2.. and channel adapters h1, h2.., in file order; an adapter with several
linked ports becomes several hosts. A switch's dpid is its GUID, and switch ports keep their
numbers. Rates are not read: links have the default rate and delay.

:func:`discovered` also returns what the comments say: descriptions, LIDs and LMCs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from knotless.base.errors import FabricError
from knotless.topologies.fabric import Fabric
from knotless.topologies.partial_fabric import PartialHost, PartialLink, PartialSwitch, complete

_BLOCK = re.compile(r'(Switch|Ca|Rt)\s+(\d{1,3})\s+"([SHR]-[0-9A-Fa-f]{1,16})"')
_PORT = re.compile(
    r"\[(\d{1,3})\](?:\[[^\]\s]{1,20}\])?(?:\([0-9A-Fa-f]{1,16}\))?\s+"
    r'"([SHR]-[0-9A-Fa-f]{1,16})"\[(\d{1,3})\]'
)
_ATTRIBUTE = re.compile(r"[a-z]{1,20}=")
_DEVICE = re.compile(r"devid=0x([0-9A-Fa-f]{1,8})$")
_GUID = re.compile(r"\(([0-9A-Fa-f]{1,16})\)")
_DESCRIPTION = re.compile(r'#\s*"(.*)"')
_LID = re.compile(r"\blid (\d{1,5})(?: lmc ([0-7]))?(?!.*\")")
_OWN_LID = re.compile(r"#\s*lid (\d{1,5})(?: lmc ([0-7]))? ")
_KINDS = {"Switch": "S", "Ca": "H", "Rt": "R"}

End = tuple[str, int]
"""A node id and a port."""


@dataclass(frozen=True)
class PortIds:
    """The identifiers of a port in the subnet; it owns the LIDs ``lid`` to ``lid + 2**lmc - 1``."""

    lid: int
    lmc: int = 0
    guid: int = 0


@dataclass
class Discovered:
    """The nodes of a subnet: switches ``S-GUID``, channel adapters ``H-GUID``, routers ``R-GUID``.

    ``descriptions`` are by node, in file order. ``ends`` are the far ends of the linked ports,
    listed from both ends. ``ids`` are by port, of switches for port 0; a port is missing if the
    output does not tell. ``devices`` are the device numbers (``devid``) of nodes.
    """

    descriptions: dict[str, str] = field(default_factory=dict)
    ends: dict[End, End] = field(default_factory=dict)
    ids: dict[End, PortIds] = field(default_factory=dict)
    devices: dict[str, int] = field(default_factory=dict)

    @property
    def switches(self) -> list[str]:
        """The ids of the switches, in file order."""
        return [node for node in self.descriptions if node.startswith("S")]

    def links(self) -> list[tuple[End, End]]:
        """Return each link between two switches once, from the end that comes first."""
        place = {node: i for i, node in enumerate(self.descriptions)}
        both = [(a, b) for a, b in self.ends.items() if a[0][0] == b[0][0] == "S"]
        first = ((a, b) for a, b in both if (place[a[0]], a[1]) < (place[b[0]], b[1]))
        return sorted(first, key=lambda ends: (place[ends[0][0]], ends[0][1]))

    def adapters(self) -> list[tuple[End, End]]:
        """Return the ports of channel adapters and routers that are linked to a switch."""
        place = {node: i for i, node in enumerate(self.descriptions)}
        of_hosts = [(a, b) for a, b in self.ends.items() if a[0][0] != "S" and b[0][0] == "S"]
        return sorted(of_hosts, key=lambda ends: (place[ends[0][0]], ends[0][1]))


def from_ibnetdiscover(text: str, name: str) -> Fabric:
    """Return the validated fabric called ``name`` in the ibnetdiscover output ``text``.

    Raises
    ------
    FabricError
        A line cannot be parsed or contradicts another; the message names it.

    """
    subnet = discovered(text)
    switches, adapters = subnet.switches, subnet.adapters()
    index = {node: i for i, node in enumerate(switches)}
    if not adapters:
        raise FabricError("no channel adapter is linked to a switch, so there are no hosts")
    links = [PartialLink(index[a[0]], index[b[0]], a[1], b[1]) for a, b in subnet.links()]
    hosts = [PartialHost(f"h{i}", index[end[0]], end[1]) for i, (_, end) in enumerate(adapters, 1)]
    partial = [PartialSwitch(f"s{i}", int(node[2:], 16)) for i, node in enumerate(switches, 1)]
    return complete(name, partial, hosts, links)


def discovered(text: str) -> Discovered:
    """Return the nodes and links in the ibnetdiscover output ``text``.

    Raises
    ------
    FabricError
        A line cannot be parsed or contradicts another, or there is no switch.

    """
    subnet = Discovered()
    lines: dict[End, int] = {}
    opened: dict[str, int] = {}
    node = ""
    device: re.Match[str] | None = None
    # Not splitlines(): it also splits at control characters, which descriptions may contain.
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        where = f"line {number}"
        if not line or line.startswith("#") or _ATTRIBUTE.match(line):
            device = _DEVICE.match(line) or device
            continue
        if block := _BLOCK.match(line):
            kind, _, node = block.groups()
            if not node.startswith(_KINDS[kind]):
                raise FabricError(f"{where}: a {kind} must not have the id {node}")
            if node in opened:
                raise FabricError(f"{where}: {node} occurs twice")
            opened[node] = number
            if device:
                subnet.devices[node], device = int(device[1], 16), None
            _note_node(subnet, node, line[block.end() :])
        elif port := _PORT.match(line):
            if not node:
                raise FabricError(f"{where}: a port before any Switch, Ca or Rt line")
            end, peer = (node, int(port[1])), (port[2], int(port[3]))
            if end in lines and lines[end] > opened[node]:
                raise FabricError(f"{where}: port {end[1]} of {node} occurs twice")
            if end == peer:
                raise FabricError(f"{where}: port {end[1]} of {node} is linked to itself")
            lines[end] = number
            _agree(subnet.ends, end, peer, where)
            _agree(subnet.ends, peer, end, where)
            _note_port(subnet, end, peer, line)
        else:
            shown = line if len(line) <= 60 else line[:57] + "..."
            raise FabricError(f"{where}: not a line of ibnetdiscover output: {shown!r}")
    if not subnet.switches:
        raise FabricError("not ibnetdiscover output: no line starts with Switch")
    for node, _ in subnet.ends:  # adapters that occur only in the block of their switch come last
        subnet.descriptions.setdefault(node, "")
    return subnet


def _note_node(subnet: Discovered, node: str, rest: str) -> None:
    """Keep the description of a node, and of a switch its LID."""
    description = _DESCRIPTION.search(rest)
    subnet.descriptions[node] = description[1] if description else ""
    if (lid := _LID.search(rest)) and node.startswith("S"):
        guid = int(node[2:], 16)
        subnet.ids[node, 0] = PortIds(int(lid[1]), int(lid[2] or 0), guid)


def _note_port(subnet: Discovered, end: End, peer: End, line: str) -> None:
    """Keep the LIDs and the GUID of an adapter's port; its own block knows more."""
    port, _, comment = line.partition("#")
    guids = _GUID.findall(port)
    guid = int(guids[0], 16) if guids else 0
    if not end[0].startswith("S"):
        if own := _OWN_LID.match(f"#{comment} "):
            subnet.ids[end] = PortIds(int(own[1]), int(own[2] or 0), guid)
    elif not peer[0].startswith("S") and (lid := _LID.search(comment)):
        subnet.ids.setdefault(peer, PortIds(int(lid[1]), 0, guid))


def _agree(ends: dict[End, End], end: End, peer: End, where: str) -> None:
    previous = ends.setdefault(end, peer)
    if previous != peer:
        raise FabricError(
            f"{where}: port {end[1]} of {end[0]} is linked to port {peer[1]} of {peer[0]},"
            f" but elsewhere to port {previous[1]} of {previous[0]}"
        )
