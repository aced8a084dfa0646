"""A second search for cycles through pools of switches, frame by frame through rule files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.support.cycles import has_cycle
from tests.support.independent import Packet, RuleTracer

Buffer = tuple[str, int, int]
"""A switch, an input port and a priority."""


class PoolWalker(RuleTracer):
    """Notes of each pass through a switch what the frame holds there, and what it waits for.

    ``pool`` is that of each ingress buffer, ``reserved`` the buffers with a reserve. Frames of
    hosts may be in any pool of the ingress buffers of their port. ``lossless`` are the priorities
    for which links pause.
    """

    def __init__(
        self,
        files: Any,
        pool: Mapping[Buffer, str],
        reserved: set[Buffer],
        lossless: set[int],
    ) -> None:
        super().__init__(files)
        self.pool, self.reserved, self.lossless = pool, reserved, lossless
        self.edges: set[tuple[Any, Any]] = set()

    def switch(self, name: str, in_port: int, packet: Packet) -> list[tuple[int, Packet]]:
        """Note all that the copies of a frame wait for."""
        copies = super().switch(name, in_port, packet)
        there, there_port = self.peer[name, in_port]
        own = there_port is None
        inputs = range(8) if own else [packet["pcp"]]
        pools = {self.pool.get((name, in_port, priority)) for priority in inputs} - {None}
        for out_port, copy in copies:
            far, far_port = self.peer[name, out_port]
            if far_port is None or copy["pcp"] not in self.lossless:
                continue
            requested = ("channel", name, out_port, copy["pcp"])
            for pool in pools:
                self.edges.add((("pool", name, pool), requested))
            if not own and packet["pcp"] in self.lossless:
                self.edges.add((("channel", there, there_port, packet["pcp"]), requested))
            buffer = (far, far_port, copy["pcp"])
            if buffer in self.pool and buffer not in self.reserved:
                self.edges.add((requested, ("pool", far, self.pool[buffer])))
        return copies

    def has_cycle(self) -> bool:
        """Return whether channels and pools wait for each other."""
        return has_cycle(self.edges)
