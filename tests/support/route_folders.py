"""Folders of routes as proofs are about them, followed with the addresses of Python's library."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.support.cycles import has_cycle
from tests.support.proofs import file_lines, ranks

End = tuple[str, str]
IPV4_HIGH = 0xFFFF << 32


class Line(NamedTuple):
    """A line of a file of routes."""

    network: ipaddress.IPv4Network
    does: str
    ports: list[str]


class RouteFolder:
    """The fabric of a folder, and where its routes send each packet."""

    def __init__(self, folder: Path) -> None:
        fabric = json.loads((folder / "fabric.json").read_text())
        self.peer: dict[End, End] = {}
        for link in fabric["links"]:
            a, b = (link["a"], link["a_port"]), (link["b"], link["b_port"])
            self.peer |= {a: b, b: a}
        self.hosts: dict[str, End] = {h["name"]: (h["router"], h["port"]) for h in fabric["hosts"]}
        self.addresses = {
            h["name"]: ipaddress.IPv4Address(h["address"])
            for h in fabric["hosts"]
            if "address" in h
        }
        self.behind = {end: name for name, end in self.hosts.items()}
        self.lines = {
            router: [_line(text) for text in (folder / f"{router}.routes").read_text().splitlines()]
            for router in fabric["routers"]
        }

    def next_ends(self, end: End, address: ipaddress.IPv4Address) -> list[End]:
        """Return the ports by which a packet that entered at ``end`` may leave its router."""
        router, entered = end
        lines = [line for line in self.lines[router] if address in line.network]
        longest = max(lines, key=lambda line: line.network.prefixlen, default=None)
        if longest is None or longest.does in ("local", "drop"):
            return []
        if longest.does == "link" and entered in longest.ports:
            return []
        return [(router, port) for port in longest.ports]

    def parts(self) -> list[ipaddress.IPv4Address]:
        """Return an address of each part of the address space that no route divides."""
        networks = {line.network for lines in self.lines.values() for line in lines}
        firsts = {0, *(int(network[0]) for network in networks)}
        firsts |= {int(network[-1]) + 1 for network in networks}
        return [ipaddress.IPv4Address(first) for first in sorted(firsts - {1 << 32})]

    def steps(self, start: End, address: ipaddress.IPv4Address) -> Iterator[tuple[End, End]]:
        """Yield (port where a packet enters, port where it leaves) for all that can happen."""
        seen, waiting = {start}, [start]
        while waiting:
            end = waiting.pop()
            for out in self.next_ends(end, address):
                yield end, out
                far = self.peer.get(out)
                if far is not None and far not in seen:
                    seen.add(far)
                    waiting.append(far)

    def waits(self) -> set[tuple[str, str]]:
        """Return which channel can wait for which, both called by the port where they begin."""
        return {
            (_name(self.peer[end]), _name(out))
            for address in self.parts()
            for start in self.hosts.values()
            for end, out in self.steps(start, address)
            if end in self.peer and out in self.peer
        }

    def received(self, start: End, address: ipaddress.IPv4Address) -> set[str]:
        """Return which hosts may receive a packet; ``lost``: somebody drops it, or it leaves."""
        steps = [*self.steps(start, address)]
        ends = {start, *(self.peer[out] for _, out in steps if out in self.peer)}
        outcomes = {self.behind[out] for _, out in steps if out not in self.peer}
        known = {name if name in self.addresses else "lost" for name in outcomes}
        if any(not self.next_ends(end, address) for end in ends):
            known.add("lost")
        return known

    def fault(self) -> str:
        """Return what is wrong, or nothing: a cycle of waits, or an address of a host."""
        if has_cycle(self.waits()):
            return "a cycle"
        for host, address in self.addresses.items():
            for other, start in self.hosts.items():
                if other != host and self.received(start, address) != {host}:
                    return f"{other} to {host}: {self.received(start, address)}"
        return ""


def _line(text: str) -> Line:
    prefix, does, *ports = text.split()
    return Line(ipaddress.IPv4Network(prefix), does, ports)


def _name(end: End) -> str:
    return ":".join(end)


def head_of(folder: Path, proof: str) -> list[str]:
    """Return the lines before the claim of a proof, with the sums of the files of a folder."""
    head = proof.partition("\nclaim ")[0].splitlines()
    return [*(line for line in head if not line.startswith("file ")), *file_lines(folder)]


def classes(fabric: RouteFolder) -> list[str]:
    """Return lines of classes: each part of the address space that no route divides is in one."""
    firsts = [*map(int, fabric.parts()), 1 << 32]
    for address in fabric.addresses.values():
        firsts += [int(address), int(address) + 1]
    firsts = sorted({*firsts})
    return [
        f"class {network}"
        for first, end in pairwise(firsts)
        for network in ipaddress.summarize_address_range(
            ipaddress.IPv4Address(first), ipaddress.IPv4Address(end - 1)
        )
    ]


def proof_of_routes(folder: Path, proof: str) -> str:
    """Return a proof that claims that no deadlock is possible, as good as it can be.

    It has the flow control of another proof. Waits on a cycle have the ranks that are left.
    """
    fabric = RouteFolder(folder)
    rank = ranks(fabric.waits())
    suffix = priority_of(proof)
    lines = ["claim safe", f"bound {max(rank.values(), default=1)}"]
    lines += [f"rank {name}{suffix} {number}" for name, number in sorted(rank.items())]
    return "\n".join([*head_of(folder, proof), *lines, *classes(fabric)]) + "\n"


def priority_of(proof: str) -> str:
    """Return how the names of queues end: ``/0`` under PAUSE, else with a lossless priority."""
    lossless = [line for line in proof.splitlines() if line.startswith("lossless ")]
    return f"/{lossless[0].split()[1]}" if lossless else "/0"
