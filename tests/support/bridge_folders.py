"""Folders with the scripts of 802.1Q switches, with frames followed one by one."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from knotless.verification.proof_file import VERSION
from tests.support.cycles import has_cycle
from tests.support.proofs import file_lines, ranks

End = tuple[str, int]
BROADCAST = "ff:ff:ff:ff:ff:ff"
TAGS = "tags any"
"""The line of a proof that is about frames with any tags."""
NOBODY = "06:00:00:00:00:77"
"""An address that no test gives to anybody."""

_MEMBER = re.compile(r"vlan add dev \S+-eth(\d+) vid (\d+)( pvid)?( untagged)?")
_STATIC = re.compile(r"fdb replace (\S+) dev \S+-eth(\d+) master static vlan (\d+)")


class Frame(NamedTuple):
    """A frame that has entered a switch by a port, on a channel, with the VLANs of its tags."""

    end: End
    channel: str
    tags: tuple[int, ...]


class BridgeFolder:
    """The fabric of a folder, and where its switches send each frame."""

    def __init__(self, folder: Path) -> None:
        fabric = json.loads((folder / "fabric.json").read_text())
        self.peer: dict[End, End] = {}
        for link in fabric["links"]:
            a, b = (link["a"], link["a_port"]), (link["b"], link["b_port"])
            self.peer |= {a: b, b: a}
        self.hosts: dict[str, End] = {h["name"]: (h["switch"], h["port"]) for h in fabric["hosts"]}
        self.address: dict[str, str] = {h["name"]: h["mac"] for h in fabric["hosts"]}
        self.behind = {end: name for name, end in self.hosts.items()}
        self.pvid: dict[End, int] = {}
        self.members: dict[tuple[str, int], dict[int, bool]] = defaultdict(dict)
        self.static: dict[tuple[str, int, str], int] = {}
        for switch in fabric["switches"]:
            name = switch["name"]
            text = (folder / f"{name}.bridge").read_text()
            for port, vlan, pvid, untagged in _MEMBER.findall(text):
                self.members[name, int(vlan)][int(port)] = bool(untagged)
                if pvid:
                    self.pvid[name, int(port)] = int(vlan)
            for mac, port, vlan in _STATIC.findall(text):
                self.static[name, int(vlan), mac] = int(port)
        self.addresses = sorted(
            {NOBODY, BROADCAST, *self.address.values(), *(mac for _, _, mac in self.static)}
        )

    def onward(self, frame: Frame, address: str) -> list[Frame | str]:
        """Return the copies of a frame: where each enters next, who receives it, or ``tagged``."""
        switch, entered = frame.end
        vlan = (frame.tags[0] if frame.tags else 0) or self.pvid.get(frame.end, 0)
        members = self.members.get((switch, vlan), {})
        if entered not in members:
            return []
        only = self.static.get((switch, vlan, address))
        copies: list[Frame | str] = []
        for port, untagged in members.items():
            if port == entered or only not in (None, port):
                continue
            tags = frame.tags[1:] if untagged else (vlan, *frame.tags[1:])
            if far := self.peer.get((switch, port)):
                copies.append(Frame(far, f"{switch}:{port}", tags))
            else:
                copies.append("tagged" if tags else self.behind[switch, port])
        return copies

    @property
    def pops_on_links(self) -> bool:
        """Whether frames leave on links without their tag, so that tags below it count there."""
        return any(
            untagged and (switch, port) in self.peer
            for (switch, _), members in self.members.items()
            for port, untagged in members.items()
        )

    def waits(self, *, tagged: bool = False) -> set[tuple[str, str]]:
        """Return which channel can wait for which; ``tagged``: hosts put up to two tags on."""
        edges = set()
        vlans = sorted({vlan for _, vlan in self.members}) if tagged else []
        tags: list[tuple[int, ...]] = [(), *((vlan,) for vlan in (0, *vlans) if tagged)]
        tags += [(outer, inner) for outer in vlans for inner in vlans]
        for address in self.addresses:
            seen = {Frame(start, "", each) for start in self.hosts.values() for each in tags}
            waiting = [*seen]
            while waiting:
                frame = waiting.pop()
                for copy in self.onward(frame, address):
                    if not isinstance(copy, Frame):
                        continue
                    if frame.channel:
                        edges.add((frame.channel, copy.channel))
                    if copy not in seen:
                        seen.add(copy)
                        waiting.append(copy)
        return edges

    def received(self, host: str, address: str) -> Counter[str]:
        """Return how often whom a frame reaches, if no frame goes round."""

        def receipts(frame: Frame) -> Iterator[str]:
            for copy in self.onward(frame, address):
                if isinstance(copy, Frame):
                    yield from receipts(copy)
                else:
                    yield copy

        return Counter(receipts(Frame(self.hosts[host], "", ())))

    def fault(self) -> str:
        """Return what is wrong, or nothing: a cycle of waits, or who receives something."""
        if has_cycle(self.waits()):
            return "a cycle"
        for host in self.hosts:
            others = self.hosts.keys() - {host}
            for other in others:
                received = self.received(host, self.address[other])
                if received != Counter([other]):
                    return f"{host} to {other}: {received}"
            received = self.received(host, BROADCAST)
            if received != Counter(others):
                return f"{host} to all: {received}"
        return ""


def head_of(folder: Path) -> list[str]:
    """Return the lines before the claim of a proof."""
    return [VERSION, "flow-control pause", *file_lines(folder)]


def classes(fabric: BridgeFolder) -> list[str]:
    """Return lines of classes: each address that a switch or a host has, and all others."""
    exact = [f"{mac}/{BROADCAST}" for mac in fabric.addresses if mac not in (NOBODY, BROADCAST)]
    every = "00:00:00:00:00:00/00:00:00:00:00:00"
    return [f"class {every} but {' '.join(exact)}", *(f"class {one}" for one in exact)]


def rank_lines(rank: dict[str, int]) -> list[str]:
    """Return the claim that a fabric is safe with these ranks of channels."""
    lines = [f"rank {name}/0 {number}" for name, number in sorted(rank.items())]
    return ["claim safe", f"bound {max(rank.values(), default=1)}", *lines]


def proof_of_bridges(folder: Path, *, tagged: bool = False) -> str:
    """Return a proof that claims that no deadlock is possible, as good as it can be.

    Waits on a cycle have the ranks that are left. ``tagged``: it is about frames with any tags.
    """
    fabric = BridgeFolder(folder)
    first, *head = head_of(folder)
    claim = rank_lines(ranks(fabric.waits(tagged=tagged)))
    lines = [first, *[TAGS] * tagged, *head, *claim, *classes(fabric)]
    return "\n".join(lines) + "\n"
