"""Proof files that claim a cycle of waits, written from frames that are followed one by one."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tests.support.proofs import file_lines
from tests.support.reference import Node
from tests.support.reference_rules import RuleReference


class Wait(NamedTuple):
    """A frame from ``host`` to ``destination``, and the channels that it takes one after another.

    It is in the last but one of these, and waits for the last.
    """

    host: str
    destination: str
    channels: tuple[Node, ...]


def waits_of(walker: RuleReference) -> dict[tuple[Node, Node], Wait]:
    """Return one wait for each dependency of frames between hosts."""
    waits: dict[tuple[Node, Node], Wait] = {}
    for source, target in walker.pairs():
        place = (walker.hosts[source]["switch"], walker.hosts[source]["port"])
        [frame] = walker.frames(source, walker.hosts[target]["mac"])
        for channels in walker.walks(place, frame):
            for end in range(2, len(channels) + 1):
                wait = Wait(source, walker.hosts[target]["mac"], channels[:end])
                waits.setdefault((channels[end - 2], channels[end - 1]), wait)
    return waits


def shortest_cycle(edges: set[tuple[Node, Node]]) -> list[Node]:
    """Return a shortest cycle; empty if there is none."""
    after: dict[Node, list[Node]] = {}
    for a, b in sorted(edges):
        after.setdefault(a, []).append(b)
    best: list[Node] = []
    for start in sorted(after):
        paths, seen = [[start]], {start}
        for path in paths:
            for node in after.get(path[-1], ()):
                if node == start and (not best or len(path) < len(best)):
                    best = path
                if node not in seen:
                    seen.add(node)
                    paths.append([*path, node])
    return best


def proof_of_cycle(folder: Path, flow_control: str) -> str:
    """Return a proof file with a shortest cycle; the rules have to deliver everything."""
    walker = RuleReference(folder)
    waits = waits_of(walker)

    def queue(node: Node) -> Node:
        return node if flow_control == "pfc" else (*node[:2], 0)

    by_queue = {(queue(a), queue(b)): wait for (a, b), wait in waits.items()}
    cycle = shortest_cycle({*by_queue})
    lines = ["knotless-proof 1", f"flow-control {flow_control}", *file_lines(folder)]
    lines.append("claim cycle")
    for held, requested in zip(cycle, [*cycle[1:], *cycle[:1]], strict=True):
        wait = by_queue[held, requested]
        names = ["{}:{}/{}".format(*node) for node in (held, requested)]
        source = walker.hosts[wait.host]["mac"]
        lines.append(f"wait {names[0]} {names[1]} {wait.host} {wait.destination} {source}")
        via = [f"{switch}:{port}" for switch, port, _ in wait.channels]
        lines.append(" ".join(["via", wait.host, *via]))
    return "\n".join(lines) + "\n"
