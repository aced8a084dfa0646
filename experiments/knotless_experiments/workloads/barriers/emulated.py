"""Barriers on emulated fabrics: real processes, user-level messages, real frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from knotless._core import programs
from knotless.emulation.names import NETNS_DIRECTORY
from knotless.emulation.network import EmulatedFabric
from knotless.routing.plan import Plan
from knotless.topologies.fabric import Fabric
from knotless.topologies.numbering import group_mac, mac_text
from knotless_experiments.framework.real_time import programs_seen
from knotless_experiments.framework.routed import emulated
from knotless_experiments.messages.logp import LogP
from knotless_experiments.workloads.barriers.case import Case, Settings, Testbed, members
from knotless_experiments.workloads.barriers.passages import WARM_UP, Passages, by_process, together
from knotless_experiments.workloads.barriers.processes import outcomes, running

PORT = 7
TIMES, BURST, BYTES = 10, 16, 8
RETRY_US = 2_000_000
PATIENCE_US = 60_000_000
"""Nothing is lost with flow control on every link, so no retransmission is ever needed."""
LIMIT_S = 600.0
SAME_STRETCH = 1.05
"""Up to this ratio of their stretches, two networks have the same time."""


@dataclass
class EmulatedTestbed:
    """A running fabric, or two of them if hosts are on two networks."""

    testbed: Testbed
    settings: Settings
    plan: Plan
    groups: dict[int | None, int]
    """The multicast group by number of hosts."""
    labs: list[EmulatedFabric] = field(default_factory=list)
    pairs: int = 8
    _stack: ExitStack = field(default_factory=ExitStack)

    @classmethod
    def build(
        cls,
        testbed: Testbed,
        settings: Settings,
        cases: Sequence[Case],
        say: Callable[[str], None],
    ) -> EmulatedTestbed:
        """Describe the fabrics; they are started on entering."""
        fabric = testbed.fabric(settings)
        counts = dict.fromkeys(case.hosts for case in cases)
        groups = {count: number for number, count in enumerate(counts, 1)}
        wanted = {number: members(fabric, count) for count, number in groups.items()}
        plan = testbed.plan(settings, wanted)
        built = cls(testbed, settings, plan, groups)
        for _ in range(testbed.networks):
            built.labs.append(emulated(plan, progress=say))
        return built

    def __enter__(self) -> EmulatedTestbed:
        """Start the fabrics."""
        with ExitStack() as stack:
            for lab in self.labs:
                stack.enter_context(lab)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop them."""
        self._stack.close()

    def watched(self) -> AbstractContextManager[list[str]]:
        """Return a context manager for the programs on hosts without virtual time."""
        return programs_seen(*self.labs)

    def run(self, case: Case) -> tuple[Passages | None, int]:
        """Return the passages of a case, and the number of retransmissions."""
        barriers = self.settings.barriers + WARM_UP
        reports = self._run_barriers(case, barriers)
        asked = sum(outcome["asked"] for outcome in reports)
        parts = []
        for number in range(len(self._orders(case.algorithm, len(reports)))):
            part = _passages([outcome["rounds"][number:] for outcome in reports], barriers)
            if part is None:
                return None, asked
            parts.append(part.without_warm_up())
        return together(parts), asked

    def _run_barriers(self, case: Case, barriers: int) -> list[dict[str, Any]]:
        """Run barriers with each visiting list; return the reports of the processes."""
        names = members(self.plan.fabric, case.hosts)
        rounds = [
            {"algorithm": case.algorithm, "order": order, "barriers": barriers}
            for order in self._orders(case.algorithm, len(names))
        ]
        work = {
            "barrier": {
                "rounds": rounds,
                "computing_us": round(self.settings.computing_us),
                "retry_us": RETRY_US,
                "patience_us": PATIENCE_US,
            }
        }
        jobs = [self._job(rank, names, case.hosts, work) for rank in range(len(names))]
        with running(jobs, self.labs[0].program_environment()) as processes:
            return outcomes(processes, LIMIT_S * self.labs[0].slow_down)

    def pair(self, source: str, target: str) -> LogP:
        """Return the costs of messages between two hosts: medians."""
        work = {"logp": {"times": TIMES, "burst": BURST, "bytes": BYTES}}
        group = next(iter(self.groups))
        jobs = [self._job(rank, [source, target], group, work) for rank in range(2)]
        with running(jobs, self.labs[0].program_environment()) as processes:
            return logp_of(outcomes(processes[:1], LIMIT_S * self.labs[0].slow_down)[0])

    def pace(self) -> tuple[float | None, list[str]]:
        """Return the largest stretch since the last call, and problems."""
        stretches, problems = [], []
        for lab in self.labs:
            status = lab.daemon.status()
            stretches.append(status["stretch"] or 1.0)
            problems += status["problems"]
            lab.daemon.reset()
        if max(stretches) > SAME_STRETCH * min(stretches):
            first, second = stretches
            problems.append(
                "processes follow the virtual time of the first network, which was "
                f"{first} times slower than real time, and the second {second} times"
            )
        return max(stretches), problems

    def _orders(self, algorithm: str, size: int) -> list[list[int] | None]:
        if algorithm != "unicast" or self.settings.lists == 0:
            return [None]
        seed = self.settings.seed
        return [programs.random_order(size, seed + number) for number in range(self.settings.lists)]

    def _job(
        self, rank: int, names: Sequence[str], count: int | None, work: dict[str, Any]
    ) -> dict[str, Any]:
        fabric: Fabric = self.plan.fabric
        hosts = [fabric.hosts[fabric.host_index[name]] for name in names]
        networks = [
            {
                "namespace": str(NETNS_DIRECTORY / lab.names.host_namespace(names[rank])),
                "interface": lab.host(names[rank]).defaultIntf().name,
                "members": [host.mac for host in hosts],
                "group": mac_text(group_mac(self.groups[count])),
            }
            for lab in self.labs
        ]
        return {"rank": rank, "port": PORT, "networks": networks, "work": work}


def logp_of(reports: dict[str, list[int]]) -> LogP:
    """Return LogP's parameters from the measurements of process 0 of a pair: medians.

    L is what is left of half a round trip, and nothing where the overheads, measured one
    by one, are already more. A burst is spaced out by its line, and so is what comes together.
    """
    micro = {key: float(np.median(times)) / 1000 for key, times in reports.items()}
    send_us, receive_us = micro["send_ns"], micro["receive_ns"]
    half_us = micro["round_trip_ns"] / 2
    latency_us = max(0.0, half_us - send_us - receive_us)
    return LogP(send_us, latency_us, receive_us, micro["gap_ns"], line_us=micro["gap_ns"])


def _passages(rounds: list[list[dict[str, list[int]]]], barriers: int) -> Passages | None:
    """Return the passages of the processes, without warm-up rounds."""
    if any(not passages or len(passages[0]["left_ns"]) != barriers for passages in rounds):
        return None
    ranks = np.repeat(np.arange(len(rounds), dtype=np.uint32), barriers)
    entered = np.concatenate([passages[0]["entered_ns"] for passages in rounds]) / 1000
    left = np.concatenate([passages[0]["left_ns"] for passages in rounds]) / 1000
    return by_process(ranks, entered, left, len(rounds))
