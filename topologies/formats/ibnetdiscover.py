"""Fabrics from the output of ``ibnetdiscover`` (InfiniBand diagnostics).

Read are the blocks of nodes, of which these lines matter::

    switchguid=0x5442ba00003080(5442ba00003080)
    Switch  24 "S-005442ba00003080"     # "ISR9024" base port 0 lid 6 lmc 0
    [22]    "H-0008f10403961354"[1](8f10403961355)      # "host" lid 4 4xSDR

Switches become s1, s2.. and channel adapters h1, h2.. in the order of their blocks (an adapter
with several linked ports becomes as many hosts); a switch's dpid is its GUID, and switch
ports keep their numbers. Rates are not taken over: a link has the default rate and delay.
"""

from __future__ import annotations

import re

from common.errors import FabricError
from topologies.fabric import Fabric
from topologies.partial_fabric import DraftHost, DraftLink, DraftSwitch, complete

_BLOCK = re.compile(r'(Switch|Ca|Rt)\s+(\d{1,3})\s+"([SHR]-[0-9A-Fa-f]{1,16})"')
_PORT = re.compile(
    r"\[(\d{1,3})\](?:\[[^\]\s]{1,20}\])?(?:\([0-9A-Fa-f]{1,16}\))?\s+"
    r'"([SHR]-[0-9A-Fa-f]{1,16})"\[(\d{1,3})\]'
)
_ATTRIBUTE = re.compile(r"[a-z]{1,20}=")
_KINDS = {"Switch": "S", "Ca": "H", "Rt": "R"}

End = tuple[str, int]
"""A node's id and its port."""


def from_ibnetdiscover(text: str, name: str) -> Fabric:
    """Return the fabric called ``name`` that ``ibnetdiscover`` printed as ``text``, validated.

    Raises
    ------
    FabricError
        A line cannot be understood, or contradicts another; the line is told.

    """
    order, ends = _read(text)
    switches = [node for node in order if node.startswith("S")]
    if not switches:
        raise FabricError("not ibnetdiscover output: it has no line that begins with Switch")
    index = {node: i for i, node in enumerate(switches)}
    place = {node: i for i, node in enumerate(order)}
    links = []
    adapters: list[tuple[End, End]] = []
    for near, far in sorted(ends.items(), key=lambda pair: (place[pair[0][0]], pair[0][1])):
        if near[0] in index and far[0] in index:
            # Both ends tell of a link; it is taken from the earlier one.
            if ends[far] == near and (place[near[0]], near[1]) < (place[far[0]], far[1]):
                links.append(DraftLink(index[near[0]], index[far[0]], near[1], far[1]))
        elif far[0] in index:
            adapters.append((near, far))
    if not adapters:
        raise FabricError("no channel adapter is linked to a switch, so there would be no host")
    hosts = [DraftHost(f"h{i}", index[far[0]], far[1]) for i, (_, far) in enumerate(adapters, 1)]
    drafts = [DraftSwitch(f"s{i}", int(node[2:], 16)) for i, node in enumerate(switches, 1)]
    return complete(name, drafts, hosts, links)


def _read(text: str) -> tuple[list[str], dict[End, End]]:
    """Return the nodes in order, and for each linked port, from both ends, its far end."""
    order: dict[str, int] = {}
    ends: dict[End, End] = {}
    lines: dict[End, int] = {}
    node = ""
    # Not splitlines(): it also splits at control characters that may stand in descriptions.
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        where = f"line {number}"
        if not line or line.startswith("#") or _ATTRIBUTE.match(line):
            continue
        if block := _BLOCK.match(line):
            kind, _, node = block.groups()
            if not node.startswith(_KINDS[kind]):
                raise FabricError(f"{where}: a {kind} cannot have the id {node}")
            if node in order:
                raise FabricError(f"{where}: {node} is there twice")
            order[node] = number
        elif port := _PORT.match(line):
            if not node:
                raise FabricError(f"{where}: a port before any Switch, Ca or Rt line")
            near, far = (node, int(port[1])), (port[2], int(port[3]))
            if near in lines and lines[near] > order[node]:
                raise FabricError(f"{where}: port {near[1]} of {node} is there twice")
            if near == far:
                raise FabricError(f"{where}: port {near[1]} of {node} is linked to itself")
            lines[near] = number
            _agree(ends, near, far, where)
            _agree(ends, far, near, where)
        else:
            shown = line if len(line) <= 60 else line[:57] + "..."
            raise FabricError(f"{where}: not a line of ibnetdiscover output: {shown!r}")
    for known, _ in ends:  # adapters that only their switch tells of come last
        order.setdefault(known, 0)
    return list(order), ends


def _agree(ends: dict[End, End], near: End, far: End, where: str) -> None:
    known = ends.setdefault(near, far)
    if known != far:
        raise FabricError(
            f"{where}: port {near[1]} of {near[0]} goes to port {far[1]} of {far[0]},"
            f" but elsewhere to port {known[1]} of {known[0]}"
        )
