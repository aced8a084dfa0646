"""Folders of InfiniBand subnets as proofs are about them, with packets followed one by one."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from knotless.verification.proof_file import VERSION
from tests.support.cycles import has_cycle
from tests.support.proofs import file_lines, ranks

End = tuple[str, int]
SLS = range(16)
DROPPED = 15
NOBODY = 0xBFFE
"""A LID that no test gives to anybody."""

_ENTRY = re.compile(r"0x([0-9a-f]{4}) port ([\d ]+)")
_LANES = re.compile(r"sl2vl (\d+) (\d+) : ([\d ]+)")
_LEVEL = re.compile(r"from (\d+) sl (\d+) to ([0-9a-fx ]+)")


class Packet(NamedTuple):
    """A packet that has entered a switch by a port, in a queue; empty: from a host."""

    end: End
    queue: str


class SubnetFolder:
    """The subnet of a folder, and where its tables send each packet."""

    def __init__(self, folder: Path) -> None:
        fabric = json.loads((folder / "fabric.json").read_text())
        self.peer: dict[End, End] = {}
        for link in fabric["links"]:
            a, b = (link["a"], link["a_port"]), (link["b"], link["b_port"])
            self.peer |= {a: b, b: a}
        self.hosts: dict[str, End] = {h["name"]: (h["switch"], h["port"]) for h in fabric["hosts"]}
        self.lids = {
            h["name"]: range(h["lid"], h["lid"] + (1 << h["lmc"])) for h in fabric["hosts"]
        }
        self.behind = {end: name for name, end in self.hosts.items()}
        self.entries: dict[str, dict[int, list[int]]] = {}
        self.lanes: dict[tuple[str, int, int], list[int]] = {}
        self.level: dict[tuple[str, int, int], int] = {}
        for switch in fabric["switches"]:
            text = (folder / f"{switch}.lft").read_text()
            self.entries[switch] = {
                int(lid, 16): [*map(int, ports.split())] for lid, ports in _ENTRY.findall(text)
            }
            for enters, leaves, lanes in _LANES.findall(text):
                self.lanes[switch, int(enters), int(leaves)] = [*map(int, lanes.split())]
            for port, sl, lids in _LEVEL.findall(text):
                for lid in lids.split():
                    self.level[switch, int(port), int(lid, 16)] = int(sl)
        self.tested = sorted({lid for entries in self.entries.values() for lid in entries})

    def sls(self, start: End, lid: int) -> list[int]:
        """Return the SLs that a packet from a port of a host may have."""
        known = self.level.get((*start, lid))
        return [known] if known is not None else [*SLS] if self.lanes else [0]

    def onward(self, packet: Packet, lid: int, sl: int) -> Iterator[Packet | str]:
        """Yield what becomes of a packet: where it may enter next, who receives it, or ``lost``."""
        switch, enters = packet.end
        for port in self.entries[switch].get(lid) or [0]:
            lane = 0
            if self.lanes and (switch, port) in self.peer | self.behind:
                lane = self.lanes[switch, enters, port][sl]
            if lane == DROPPED:
                yield "lost"
            elif far := self.peer.get((switch, port)):
                yield Packet(far, f"{switch}:{port}/{lane}")
            else:
                host = self.behind.get((switch, port), "")
                yield host if host and lid in self.lids[host] else "lost"

    def steps(self, start: End, lid: int, sl: int) -> Iterator[tuple[Packet, Packet | str]]:
        """Yield each step that a packet from a port of a host may take, if it leaves that host."""
        if lid in self.lids[self.behind[start]]:
            return
        first = Packet(start, "")
        seen, waiting = {first}, [first]
        while waiting:
            packet = waiting.pop()
            for onward in self.onward(packet, lid, sl):
                yield packet, onward
                if isinstance(onward, Packet) and onward not in seen:
                    seen.add(onward)
                    waiting.append(onward)

    def waits(self) -> set[tuple[str, str]]:
        """Return which queue can wait for which."""
        lids = {*self.tested, NOBODY, *(lid for lids in self.lids.values() for lid in lids)}
        return {
            (packet.queue, onward.queue)
            for lid in lids
            for start in self.hosts.values()
            for sl in self.sls(start, lid)
            for packet, onward in self.steps(start, lid, sl)
            if packet.queue and isinstance(onward, Packet)
        }

    def received(self, start: End, lid: int) -> set[str]:
        """Return which hosts may receive a packet; ``lost``: it is dropped."""
        return {
            onward
            for sl in self.sls(start, lid)
            for _, onward in self.steps(start, lid, sl)
            if isinstance(onward, str)
        }

    def fault(self) -> str:
        """Return what is wrong, or nothing: a cycle of waits, or a LID of a host."""
        if has_cycle(self.waits()):
            return "a cycle"
        for host, lids in self.lids.items():
            for other, start in self.hosts.items():
                for lid in lids if other != host else ():
                    if self.received(start, lid) != {host}:
                        return f"{other} to {host}, LID {lid}: {self.received(start, lid)}"
        return ""


def head_of(folder: Path) -> list[str]:
    """Return the lines before the claim of a proof."""
    return [VERSION, "flow-control credits", *file_lines(folder)]


def classes(fabric: SubnetFolder) -> list[str]:
    """Return lines of classes: each LID that an entry or a host has, and all others."""
    lids = sorted({*fabric.tested, *(lid for lids in fabric.lids.values() for lid in lids)})
    exact = [f"0x{lid:04x}" for lid in lids]
    return [f"class 0x0000/0x0000 but {' '.join(exact)}", *(f"class {lid}" for lid in exact)]


def rank_lines(rank: dict[str, int]) -> list[str]:
    """Return the claim that a fabric is safe with these ranks."""
    lines = [f"rank {name} {number}" for name, number in sorted(rank.items())]
    return ["claim safe", f"bound {max(rank.values(), default=1)}", *lines]


def proof_of_subnet(folder: Path) -> str:
    """Return a proof that claims that no deadlock is possible, as good as it can be.

    Waits on a cycle have the ranks that are left.
    """
    fabric = SubnetFolder(folder)
    rank = defaultdict(int, ranks(fabric.waits()))
    return "\n".join([*head_of(folder), *rank_lines(rank), *classes(fabric)]) + "\n"
