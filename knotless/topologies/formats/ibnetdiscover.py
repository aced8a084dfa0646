"""Fabrics from the output of ``ibnetdiscover`` (InfiniBand diagnostics).

The blocks of nodes are read, also those of ``-g``, which groups them by chassis; these are the
relevant lines::

    devid=0x5a06
    switchguid=0x5442ba00003080(5442ba00003080)
    Switch  24 "S-005442ba00003080"     # "ISR9024" base port 0 lid 6 lmc 0
    [22][ext 7]  "H-0008f10403961354"[1](8f10403961355)      # "host" lid 4 4xSDR

and so is the report of ports, ``-p``, in which an adapter has the GUID of its port::

    SW     6 22 0x005442ba00003080 4x SDR - CA     4  1 0x0008f10403961355 ( 'ISR9024' - 'host' )

Switches become s1, s2.. and channel adapters h1, h2.., in file order; an adapter with several
linked ports becomes several hosts. A switch's dpid is its GUID, and switch ports keep their
numbers. Rates are not read: links have the default rate and delay.

Aggregation nodes, which are adapters inside switches that reduce data, are no hosts. Cables that
connect a switch to itself, or two adapters, carry no traffic between hosts. Notes say what was left
out, and which lines are errors of ibnetdiscover.

:func:`discovered` also returns what the comments say: descriptions, LIDs and LMCs.

References
----------
ibnetdiscover(8) of infiniband-diags (rdma-core).

"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from knotless.base.errors import FabricError
from knotless.base.printable import listed
from knotless.topologies.fabric import Fabric
from knotless.topologies.partial_fabric import PartialHost, PartialLink, PartialSwitch, complete

_BLOCK = re.compile(r'(Switch|Ca|Rt)\s+(\d{1,3})\s+"([SHR]-[0-9A-Fa-f]{1,16})"')
_LABEL = r"(?:\[[^\]]{1,20}\])?"
"""The number of a port on the outside of a chassis, which -g adds."""
_PORT = re.compile(
    rf"\[(\d{{1,3}})\]{_LABEL}(?:\([0-9A-Fa-f]{{1,16}}\))?\s+"
    r'"([SHR]-[0-9A-Fa-f]{1,16})"\[(\d{1,3})\]'
)
_REPORTED = r"(SW|CA|RT)\s+(\d{1,5})\s+(\d{1,3})\s+0x([0-9a-fA-F]{1,16})"
_REPORT = re.compile(
    rf"{_REPORTED}\s+\S+\s+\S+(?:\s+-\s+{_REPORTED}\s+\(\s'(.*)' - '(.*)' \)|\s+'.*')"
)
_DEVICE = re.compile(r"devid=0x([0-9A-Fa-f]{1,8})")
_ATTRIBUTE = re.compile(r"[a-z]{1,20}=")
_HEADING = re.compile(r"Chassis \d+( \(guid 0x[0-9A-Fa-f]+\))?$|Non-Chassis Nodes$|Hostname: ")
_COMPLAINT = re.compile(
    r"(ibwarn|ibdebug): \[\d+\]|\S*ibnetdiscover: |\S+/?\w+\.c:\d+; |\S+: ib(error|panic|warn): "
)
"""What ibnetdiscover and its libraries write to standard error, for example of a timeout."""
_INSIDE = re.compile(r"ib(warn|debug): \[\d+\]|\w+\.c:\d+; ")
_GUID = re.compile(r"\(([0-9A-Fa-f]{1,16})\)")
_DESCRIPTION = re.compile(r'#\s*"(.*)"')
_LID = re.compile(r"\blid (\d{1,5})(?: lmc ([0-7]))?(?!.*\")")
_OWN_LID = re.compile(r"#\s*lid (\d{1,5})(?: lmc ([0-7]))? ")
_AGGREGATION_NODE = re.compile(r"\bAggregation Node\b")
_AGGREGATION_DEVICE = 0xCF09
_KINDS = {"Switch": "S", "Ca": "H", "Rt": "R"}

_REPORTED_KINDS = {"SW": "S", "CA": "H", "RT": "R"}
_LONGEST_LINE = 1000

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
    output does not tell. ``aggregation_nodes`` are adapters inside switches. ``complaints`` are
    errors of ibnetdiscover in its output: parts of the subnet may be missing.
    """

    descriptions: dict[str, str] = field(default_factory=dict)
    ends: dict[End, End] = field(default_factory=dict)
    ids: dict[End, PortIds] = field(default_factory=dict)
    aggregation_nodes: set[str] = field(default_factory=set)
    complaints: list[str] = field(default_factory=list)

    @property
    def switches(self) -> list[str]:
        """The ids of the switches, in file order."""
        return [node for node in self.descriptions if node.startswith("S")]

    def links(self) -> list[tuple[End, End]]:
        """Return each link between two switches once, from the end that comes first."""
        return self._cables(lambda a, b: a[0] == b[0] == "S" and a != b)

    def loopbacks(self) -> list[tuple[End, End]]:
        """Return each cable that connects a switch to itself once."""
        return self._cables(lambda a, b: a[0] == "S" and a == b)

    def back_to_back(self) -> list[tuple[End, End]]:
        """Return each cable between two adapters once."""
        return self._cables(lambda a, b: a[0] != "S" != b[0])

    def _cables(self, is_wanted: Callable[[str, str], bool]) -> list[tuple[End, End]]:
        place = {node: i for i, node in enumerate(self.descriptions)}
        return sorted(
            (
                (a, b)
                for a, b in self.ends.items()
                if is_wanted(a[0], b[0]) and (place[a[0]], a[1]) <= (place[b[0]], b[1])
            ),
            key=lambda ends: (place[ends[0][0]], ends[0][1]),
        )

    def adapters(self) -> list[tuple[End, End]]:
        """Return the ports of channel adapters and routers that are linked to a switch."""
        place = {node: i for i, node in enumerate(self.descriptions)}
        of_hosts = [(a, b) for a, b in self.ends.items() if a[0][0] != "S" and b[0][0] == "S"]
        return sorted(of_hosts, key=lambda ends: (place[ends[0][0]], ends[0][1]))

    def notes(self) -> list[str]:
        """Return what a fabric of these nodes leaves out, a line for each kind."""
        notes = []
        if loops := self.loopbacks():
            cables = listed(f"{a[0]} ports {a[1]} and {b[1]}" for a, b in loops)
            notes.append(f"cables that connect a switch to itself are ignored: {cables}")
        if pairs := self.back_to_back():
            cables = listed(f"{a[0]} and {b[0]}" for a, b in pairs)
            notes.append(f"cables between two adapters are ignored: {cables}")
        return notes


def from_ibnetdiscover(text: str, name: str) -> Fabric:
    """Return the validated fabric called ``name`` in the ibnetdiscover output ``text``.

    Raises
    ------
    FabricError
        A line cannot be parsed or contradicts another; the message names it.

    """
    subnet = discovered(text)
    switches, left_out = subnet.switches, subnet.aggregation_nodes
    adapters = [(a, b) for a, b in subnet.adapters() if a[0] not in left_out]
    index = {node: i for i, node in enumerate(switches)}
    if not adapters:
        raise FabricError("no channel adapter is linked to a switch, so there are no hosts")
    links = [PartialLink(index[a[0]], index[b[0]], a[1], b[1]) for a, b in subnet.links()]
    hosts = [PartialHost(f"h{i}", index[end[0]], end[1]) for i, (_, end) in enumerate(adapters, 1)]
    partial = [PartialSwitch(f"s{i}", int(node[2:], 16)) for i, node in enumerate(switches, 1)]
    notes = subnet.notes()
    if subnet.complaints:
        notes.append(
            "parts of the subnet may be missing: the output has errors of ibnetdiscover,"
            f" {listed(subnet.complaints)}"
        )
    ports = Counter(node for (node, _), _ in adapters)
    if several := [node for node, count in ports.items() if count > 1]:
        notes.append(f"adapters with several linked ports are a host for each: {listed(several)}")
    if left_out:
        notes.append(f"aggregation nodes are not taken for hosts: {listed(sorted(left_out))}")
    return complete(name, partial, hosts, links).with_notes(notes)


def looks_like(text: str) -> bool:
    """Tell whether ``text`` has a line of a node or port as ibnetdiscover writes it."""
    return any(
        pattern.match(line.strip())
        for line in text.split("\n")
        if len(line) <= _LONGEST_LINE
        for pattern in (_BLOCK, _PORT, _REPORT)
    )


def discovered(text: str) -> Discovered:
    """Return the nodes and links in the ibnetdiscover output ``text``.

    Raises
    ------
    FabricError
        A line cannot be parsed or contradicts another, or there is no switch.

    """
    reader = _Reader()
    # Not splitlines(): it also splits at control characters, which descriptions may contain.
    for number, line in enumerate(text.split("\n"), 1):
        reader.read(number, line.strip())
    subnet = reader.subnet
    if not subnet.switches:
        raise FabricError("not ibnetdiscover output: no line starts with Switch")
    for node, _ in subnet.ends:  # adapters that occur only in the block of their switch come last
        subnet.descriptions.setdefault(node, "")
    return subnet


class _Reader:
    """Collects the nodes and links of one output, line by line."""

    def __init__(self) -> None:
        self.subnet = Discovered()
        self._lines: dict[End, int] = {}
        self._opened: dict[str, int] = {}
        self._node = ""
        self._device = 0

    def read(self, number: int, line: str) -> None:
        where = f"line {number}"
        if not line or line.startswith("#") or _HEADING.match(line):
            return
        if len(line) > _LONGEST_LINE:
            self._refuse(where, line)
        if device := _DEVICE.match(line):
            self._device = int(device[1], 16)
        elif _ATTRIBUTE.match(line):
            return
        elif block := _BLOCK.match(line):
            self._open(number, block, line[block.end() :])
        elif port := _PORT.match(line):
            if not self._node:
                raise FabricError(f"{where}: a port before any Switch, Ca or Rt line")
            end, peer = (self._node, int(port[1])), (port[2], int(port[3]))
            self._connect(number, end, peer)
            _note_port(self.subnet, end, peer, line)
        elif report := _REPORT.fullmatch(line):
            self._report(number, report)
        elif _COMPLAINT.match(line):
            self.subnet.complaints.append(f"{where}: {line[:80]!r}")
        else:
            self._refuse(where, line)

    def _refuse(self, where: str, line: str) -> None:
        if _INSIDE.search(line[:_LONGEST_LINE]):
            raise FabricError(
                f"{where}: an error of ibnetdiscover is inside a line of its output; write errors"
                " to another file: ibnetdiscover 2> errors.txt"
            )
        shown = line if len(line) <= 60 else line[:57] + "..."
        raise FabricError(f"{where}: not a line of ibnetdiscover output: {shown!r}")

    def _open(self, number: int, block: re.Match[str], rest: str) -> None:
        kind, _, node = block.groups()
        if not node.startswith(_KINDS[kind]):
            raise FabricError(f"line {number}: a {kind} must not have the id {node}")
        if node in self._opened:
            raise FabricError(f"line {number}: {node} occurs twice")
        self._opened[node] = number
        self._node = node
        _note_node(self.subnet, node, rest)
        if self._device == _AGGREGATION_DEVICE and node.startswith("H"):
            self.subnet.aggregation_nodes.add(node)
        self._device = 0

    def _report(self, number: int, report: re.Match[str]) -> None:
        """Read a line of the report of ports, which may tell that a port has no cable."""
        kind, lid, port, guid, far_kind, _, far_port, far_guid, own, far_name = report.groups()
        node = f"{_REPORTED_KINDS[kind]}-{int(guid, 16):016x}"
        self._opened.setdefault(node, 0)
        if far_kind is None:
            self.subnet.descriptions.setdefault(node, "")
            return
        end = (node, int(port))
        self.subnet.descriptions[node] = own
        _note_aggregation_node(self.subnet, node, own)
        ids_of = (node, 0) if kind == "SW" else end
        self.subnet.ids[ids_of] = PortIds(int(lid), 0, int(guid, 16))
        far = f"{_REPORTED_KINDS[far_kind]}-{int(far_guid, 16):016x}"
        _note_aggregation_node(self.subnet, far, far_name)
        self._connect(number, end, (far, int(far_port)))

    def _connect(self, number: int, end: End, peer: End) -> None:
        where = f"line {number}"
        if end in self._lines and self._lines[end] > self._opened[end[0]]:
            raise FabricError(f"{where}: port {end[1]} of {end[0]} occurs twice")
        self._lines[end] = number
        _agree(self.subnet.ends, end, peer, where)
        _agree(self.subnet.ends, peer, end, where)


def _note_node(subnet: Discovered, node: str, rest: str) -> None:
    """Keep the description of a node, and of a switch its LID."""
    description = _DESCRIPTION.search(rest)
    subnet.descriptions[node] = description[1] if description else ""
    _note_aggregation_node(subnet, node, subnet.descriptions[node])
    if (lid := _LID.search(rest)) and node.startswith("S"):
        guid = int(node[2:], 16)
        subnet.ids[node, 0] = PortIds(int(lid[1]), int(lid[2] or 0), guid)


def _note_aggregation_node(subnet: Discovered, node: str, description: str) -> None:
    if node.startswith("H") and _AGGREGATION_NODE.search(description):
        subnet.aggregation_nodes.add(node)


def _note_port(subnet: Discovered, end: End, peer: End, line: str) -> None:
    """Keep the LIDs and the GUID of an adapter's port; its own block knows more."""
    port, _, comment = line.partition("#")
    guids = _GUID.findall(port)
    guid = int(guids[0], 16) if guids else 0
    if not end[0].startswith("S"):
        if own := _OWN_LID.match(f"#{comment} "):
            subnet.ids[end] = PortIds(int(own[1]), int(own[2] or 0), guid)
    elif not peer[0].startswith("S"):
        _note_aggregation_node(subnet, peer[0], comment)
        if lid := _LID.search(comment):
            subnet.ids.setdefault(peer, PortIds(int(lid[1]), 0, guid))


def _agree(ends: dict[End, End], end: End, peer: End, where: str) -> None:
    previous = ends.setdefault(end, peer)
    if previous != peer:
        raise FabricError(
            f"{where}: port {end[1]} of {end[0]} is linked to port {peer[1]} of {peer[0]},"
            f" but elsewhere to port {previous[1]} of {previous[0]}"
        )
