"""A fabric of links that delay, pause and lose frames, as the decisions about probes see it.

Time advances in ticks. Frames of a channel arrive in order, after a random delay; a paused channel
keeps them; a cut one loses them after they have left the port, and so counts them as sent.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field

from knotless.controller.observed import Observed, Port
from knotless.controller.probes.cables import Wiring
from knotless.controller.probes.paths import Path, PathMonitor, Reading
from knotless.topologies.fabric import Fabric

INTERVAL_S = 0.1


@dataclass
class Frame:
    """A probe, or traffic (``path`` is None), and when it arrives on the clock of the links."""

    path: Path | None
    reflected: bool = False
    number: int = 0
    due_s: float = 0.0


@dataclass
class Wire:
    """One channel."""

    queue: deque[Frame] = field(default_factory=deque)
    flying: deque[Frame] = field(default_factory=deque)
    sent: int = 0
    received: int = 0
    paused: bool = False
    paused_us: int = 0
    lost: bool = False


class ProbedFabric:
    """The wires of a fabric and the probes that cross them; ``cables`` is what they really join."""

    def __init__(self, fabric: Fabric, seed: int = 0, *, pauses: bool = True) -> None:
        self.rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
        self.fabric, self.observed = fabric, Observed(fabric)
        self.probing = PathMonitor(Wiring(fabric), INTERVAL_S, pauses)
        self.cables: dict[Port, Port] = dict(self.probing.wiring.declared)
        self.wires = {port: Wire() for port in self.cables}
        self.now_s = 100.0
        self.ticks = 0
        self.links_s = 0.0
        """Time on the clock of the links."""
        self.stretch = 1.0
        self.traffic = 0.0
        """Share of ticks in which a channel carries a frame of hosts."""
        self.dead: set[str] = set()
        self.mute: set[str] = set()
        """Switches that send none of the probes that they are given."""
        self.faults: list[dict[str, str]] = []
        """All that was ever reported, one entry per change."""
        for switch in self.observed.switches.values():
            switch.connect(dict.fromkeys(switch.needs, True))

    def set_port(self, port: Port, *, up: bool) -> None:
        switch = self.observed.by_name[port[0]]
        switch.see_ports({**(switch.ports or {}), port[1]: up})

    def disconnect(self, name: str) -> None:
        self.observed.by_name[name].disconnect()

    def run(self, seconds: float) -> None:
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            self.tick()

    def run_until(self, faults: dict[str, str], limit_s: float = 5.0) -> float:
        """Run until exactly these faults are reported; return after how long."""
        began_s = self.now_s
        while self.probing.faults() != faults:
            assert self.now_s - began_s < limit_s, self.probing.faults()
            self.tick()
        return self.now_s - began_s

    def tick(self) -> None:
        tick_s = self.probing.tick_s
        self.now_s += tick_s
        self.ticks += 1
        self.links_s += tick_s / self.stretch
        self.probing.observe(self.observed, self.now_s)
        for path in list(self.probing.due(self.now_s, self.ticks)):
            if path.sender[0] in self.mute:
                continue
            self.wires[path.sender].queue.append(Frame(path, path.mode == "reflected", self.ticks))
        for port, wire in self.wires.items():
            if self.rng.random() < self.traffic and port[0] not in self.dead:
                wire.queue.append(Frame(None))
            wire.paused_us += int(wire.paused * tick_s * 1e6)
            while wire.queue and not wire.paused:
                self._transmit(port, wire.queue.popleft())
        for port, wire in self.wires.items():
            while wire.flying and wire.flying[0].due_s <= self.links_s:
                self._arrive(port, wire.flying.popleft())
        suspects = self.probing.suspects(self.now_s)
        # Any switch may answer late.
        self.probing.read(
            suspects,
            {p.sender: self._reading(p) for p in suspects if self.rng.random() < 0.8},
            self.now_s,
        )
        self.observed.link_faults = self.probing.faults()
        if not self.faults or self.faults[-1] != self.observed.link_faults:
            self.faults.append(dict(self.observed.link_faults))

    def _transmit(self, port: Port, frame: Frame) -> None:
        wire = self.wires[port]
        wire.sent += 1
        if not wire.lost and self.cables.get(port) is not None:
            # A port counts a frame when it arrives; the controller hears of a probe later.
            frame.due_s = self.links_s + self.rng.random() * 0.01
            if wire.flying:
                frame.due_s = max(frame.due_s, wire.flying[-1].due_s)
            wire.flying.append(frame)

    def _arrive(self, port: Port, frame: Frame) -> None:
        peer = self.cables[port]
        self.wires[port].received += 1
        if frame.path is None or peer[0] in self.dead:
            return
        if frame.reflected and port == frame.path.sender:
            self.wires[peer].queue.append(frame)
        elif self.observed.by_name[peer[0]].connected:
            self.probing.arrived(
                frame.path.sender,
                peer,
                frame.number,
                reflected=frame.reflected,
                now_s=self.now_s,
            )

    def _reading(self, path: Path) -> Reading:
        counting = path.sender if path.mode == "reflected" else path.receiver
        senders = [port for port, peer in self.cables.items() if peer == counting]
        received = sum(self.wires[port].received for port in senders)
        back = self.wires[path.receiver].paused_us
        time_us = int(self.links_s * 1e6)
        return Reading(received, self.wires[path.sender].sent, time_us, back)
