"""Messages between two hosts of a simulated fabric, with LogP's processor overheads.

A processor is busy for o_s with each message that it sends and for o_r with each that it
receives; the network is simulated frame by frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from knotless.routing.plan import Plan
from knotless.simulation.replay import replay
from knotless.topologies.fabric import Host
from knotless_experiments.framework.routed import in_simulation
from knotless_experiments.messages.logp import LogP

FRAME_BYTES = 1500
HEADER_BYTES = {"message": 32, "acknowledged": 64, "udp": 28}
"""Header bytes per frame after the Ethernet header: wire/mod.rs of the crate endpoint; IP, UDP."""
REQUEST_BYTES, ANSWER_BYTES = 30, 10
"""Bytes of an operation in addition to its data: core/messages/endpoint/src/operation.rs."""
AHEAD = 64
"""Limit of unanswered messages when the rate is measured, as in knotless-pingpong."""
ASKER, SERVER = 0, 1


@dataclass(frozen=True)
class Step:
    """One step of a process; see :class:`knotless.simulation.replay.Step`."""

    process: int
    kind: str
    peer: int = -1
    bytes: int = 0
    seconds: float = 0.0


def wire_bytes(kind: str, size: int) -> int:
    """Return the total payload of the Ethernet frames of a message."""
    header = HEADER_BYTES[kind]
    return size + header * max(1, -(-size // (FRAME_BYTES - header)))


@dataclass(frozen=True)
class SimulatedPair:
    """Two hosts of a fabric, with the methods of :class:`.pair.Pair`."""

    plan: Plan
    client: Host
    server: Host
    costs: LogP

    def settle(self) -> None:
        """Do nothing: every exchange starts on an idle fabric."""

    def judge(self) -> dict[str, Any]:
        """Return the verdict: PAUSE on every link loses nothing."""
        return in_simulation({"lost_frames": 0})

    def exchange(self, kind: str, size: int, count: int, mode: str = "latency") -> tuple[Any, Any]:
        """Return what ``knotless-pingpong`` would print at the client and at the server."""
        if kind == "stages":
            return self._stages(size)
        if kind in ("push", "pull"):
            there, back = self._operation(kind, size)
            us = self._seconds(count, self._round_trips(there, back, count)) * 1e6
            return {"bytes": size, "median_us": us, "p99_us": None}, None
        payload = wire_bytes(kind, size)
        if mode == "latency":
            us = self._seconds(count, self._round_trips(payload, payload, count)) * 1e6 / 2
            return {"bytes": size, "median_us": us, "p99_us": None}, None
        answer = wire_bytes(kind, 1)
        rate = 1 / self._seconds(count, self._stream(payload, answer, count))
        return {"messages_per_s": rate, "mbit_per_s": rate * size * 8e-6}, None

    def _operation(self, kind: str, size: int) -> tuple[int, int]:
        """Return the payloads of a request and of its answer."""
        with_data, without = (size, 0) if kind == "push" else (0, size)
        there = wire_bytes("acknowledged", REQUEST_BYTES + with_data)
        return there, wire_bytes("acknowledged", ANSWER_BYTES + without)

    def _seconds(self, count: int, steps: Callable[[], Iterator[Step]]) -> float:
        """Replay; return the seconds of each of ``count`` repetitions."""
        index = self.plan.fabric.host_index
        places = [index[self.client.name], index[self.server.name]]
        done = replay(self.plan, steps(), places=places, computing=1.0)
        return done.seconds / count

    def _send(self, process: int, size: int) -> Iterator[Step]:
        yield Step(process, "compute", seconds=self.costs.send_us * 1e-6)
        yield Step(process, "send", peer=1 - process, bytes=size)

    def _receive(self, process: int) -> Iterator[Step]:
        yield Step(process, "recv", peer=1 - process)
        yield Step(process, "compute", seconds=self.costs.receive_us * 1e-6)

    def _round_trips(self, there: int, back: int, count: int) -> Callable[[], Iterator[Step]]:
        def steps() -> Iterator[Step]:
            for _ in range(count):
                yield from self._send(ASKER, there)
                yield from self._receive(SERVER)
                yield from self._send(SERVER, back)
                yield from self._receive(ASKER)

        return steps

    def _stream(self, payload: int, answer: int, count: int) -> Callable[[], Iterator[Step]]:
        """Send in one direction, with an answer after each half window."""

        def steps() -> Iterator[Step]:
            answered = 0
            for number in range(count):
                if number - answered >= AHEAD:
                    yield from self._receive(ASKER)
                    answered += AHEAD // 2
                yield from self._send(ASKER, payload)
                yield from self._receive(SERVER)
                if (number + 1) % (AHEAD // 2) == 0 or number + 1 == count:
                    yield from self._send(SERVER, answer)
            while answered < count:
                yield from self._receive(ASKER)
                answered += AHEAD // 2

        return steps

    def _one_way_us(self, payload: int) -> float:
        """Return L for a message of this size between these hosts."""

        def steps() -> Iterator[Step]:
            yield Step(ASKER, "send", peer=SERVER, bytes=payload)
            yield Step(SERVER, "recv", peer=ASKER)

        return self._seconds(1, steps) * 1e6

    def _stages(self, size: int) -> tuple[list[list[float]], list[list[float]]]:
        """Return the times of a push's stages, in ns, at the client and at the server.

        Posting takes no separate time here: o_s lasts until the kernel has the frame, o_r until
        the received message is processed.
        """
        there, back = self._operation("push", size)
        send, receive = self.costs.send_us, self.costs.receive_us
        taken = send + self._one_way_us(there)
        answered = taken + receive + send
        back_us = answered + self._one_way_us(back)
        own = [0.0, 0.0, send, send, back_us, back_us + receive, back_us + receive]
        served = [taken, taken + receive, answered, answered]
        return [[us * 1000 for us in own]], [[us * 1000 for us in served]]
