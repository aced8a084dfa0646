"""Two hosts that exchange messages: emulated, by ``knotless-pingpong``, or simulated."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from knotless.base.counting import counted
from knotless.base.package import native
from knotless.emulation import namespaces
from knotless.emulation.network import EmulatedFabric
from knotless.emulation.priority import prioritise_program
from knotless.routing.plan import Plan
from knotless.topologies import Fabric
from knotless.topologies.fabric import Host
from knotless_experiments.framework.experiment import SIMULATION, ExperimentError
from knotless_experiments.framework.real_time import programs_seen
from knotless_experiments.framework.routed import emulated, with_validity
from knotless_experiments.messages.logp import LogP
from knotless_experiments.workloads.messages.simulated import SimulatedPair

PROGRAM = native("knotless-pingpong")
LIMIT_S = 300.0


class Exchanging(Protocol):
    """Two hosts of a fabric that exchange messages."""

    @property
    def client(self) -> Host:
        """The host that starts."""

    @property
    def server(self) -> Host:
        """The host that answers."""

    def exchange(self, kind: str, size: int, count: int, mode: str = "latency") -> tuple[Any, Any]:
        """Return the reports of client and server."""

    def settle(self) -> None:
        """Reset the counters."""

    def judge(self) -> dict[str, Any]:
        """Return stretch, losses, and whether the measurement is valid."""


@dataclass(frozen=True)
class Pair:
    """A running fabric and the two hosts that exchange messages."""

    lab: EmulatedFabric
    client: Host
    server: Host
    real_time_programs: list[str] = field(default_factory=list)
    """Of hosts, since the counters were reset: those without virtual time."""

    def exchange(self, kind: str, size: int, count: int, mode: str = "latency") -> tuple[Any, Any]:
        """Return the output of client and server.

        Raises ExperimentError with the program's error if one of them fails.
        """
        with programs_seen(self.lab) as programs:
            answers = self._exchange(kind, size, count, mode)
        self.real_time_programs.extend(programs)
        return answers

    def _exchange(self, kind: str, size: int, count: int, mode: str) -> tuple[Any, Any]:
        answers = []
        with self._start("serve", self.server, self.client, kind, size, count, mode) as server:
            try:
                assert server.stdout is not None  # noqa: S101 - it was asked for
                server.stdout.readline()
                with self._start(
                    "ask", self.client, self.server, kind, size, count, mode
                ) as client:
                    for process in (client, server):
                        out, error = process.communicate(timeout=LIMIT_S * self.lab.slow_down)
                        if process.returncode != 0:
                            reason = " ".join(error.split())[:300]
                            raise ExperimentError(f"{kind}, {size} bytes: {reason}")
                        answers.append(json.loads(out) if out else None)
            finally:
                server.kill()
        return answers[0], answers[1]

    def _start(
        self, role: str, own: Host, peer: Host, kind: str, size: int, count: int, mode: str
    ) -> subprocess.Popen[str]:
        addresses = (own.ip, peer.ip) if kind == "udp" else (own.mac, peer.mac)
        interface = self.lab.host(own.name).defaultIntf().name
        words = [role, kind, interface, *addresses, str(size), str(count), mode]
        environment = {**os.environ, **self.lab.program_environment()}
        process = subprocess.Popen(
            namespaces.enter(self.lab.host(own.name).namespace, [str(PROGRAM), *words]),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        prioritise_program(process.pid, environment)
        return process

    def settle(self) -> None:
        """Set the emulator's counters to zero."""
        self.real_time_programs.clear()
        self.lab.daemon.reset()

    def judge(self) -> dict[str, Any]:
        """Return stretch, losses, and whether the measurement is valid."""
        lost = int(self.lab.daemon.counters()["lost_frames"])
        problems = [f"{counted(lost, 'frames')} lost"] if lost else []
        judged = with_validity({"lost_frames": lost}, self.lab.daemon.status(), problems)
        return judged | {"real_time_programs": [*dict.fromkeys(self.real_time_programs)]}


def chosen(fabric: Fabric, names: str | None) -> tuple[Host, Host]:
    """Return the two hosts named ``a,b``, or the first and the last.

    Raises ExperimentError if they are not two hosts of the fabric.
    """
    by_name = {host.name: host for host in fabric.hosts}
    words = names.split(",") if names else [fabric.hosts[0].name, fabric.hosts[-1].name]
    if len(set(words)) != 2 or not set(words) <= set(by_name):
        raise ExperimentError(
            f"--hosts: {','.join(words)} is not two of {fabric.hosts[0].name}..."
            f"{fabric.hosts[-1].name}: write h1,h2"
        )
    return by_name[words[0]], by_name[words[1]]


@contextmanager
def running(
    on: str, plan: Plan, hosts: str | None, costs: LogP, say: Callable[[str], None]
) -> Iterator[Exchanging]:
    """Start the fabric and remove it at the end. ``costs`` are those of simulated processors."""
    client, server = chosen(plan.fabric, hosts)
    if on == SIMULATION:
        yield SimulatedPair(plan, client, server, costs)
        return
    with emulated(plan, static_arp=True, progress=say) as lab:
        pair = Pair(lab, client, server)
        # The first frames of a flow take the switch's slow path.
        for kind in ("udp", "message"):
            pair.exchange(kind, 8, 20)
        yield pair
