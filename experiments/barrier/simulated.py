"""Barriers on the simulator: the state machines of core/barrier on processors after LogP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from experiments.barrier.case import Case, Ground, Settings, members
from experiments.barrier.passages import WARM_UP, Passages, by_process, together
from experiments.experiment import ExperimentError
from experiments.logp.formulas import LogP, mean_of
from knotless_core import programs, simulator
from routing.plan import Plan
from simulation.channels import Buffers, ChannelTable, channel_table
from simulation.dual_plane import dual_plane
from simulation.tables import Forwarding, forwarding
from simulation.traffic import line_bytes
from simulation.trees import multicast_tree

PS_PER_US = 1_000_000
FOREVER_PS = 2**64 - 1
EVENTS_AT_ONCE = 1 << 18
PAIRS = 64
"""Pairs of hosts between which L is measured."""
RETRY_NS, PATIENCE_NS = 10**9, 10**11
"""Nothing is lost in a fabric with flow control on every link: nobody should ever ask."""


@dataclass
class SimulatedGround:
    """A fabric whose simulations share their tables. A context, as the emulated one is."""

    ground: Ground
    settings: Settings
    plan: Plan
    table: ChannelTable
    tables: Forwarding

    @classmethod
    def build(
        cls, ground: Ground, settings: Settings, _cases: list[Case], _say: Callable[[str], None]
    ) -> SimulatedGround:
        """Plan the fabric and fill the tables; raises KnotlessError."""
        plan = ground.plan(settings)
        table = channel_table(plan.fabric, plan.flow_control, Buffers())
        return cls(ground, settings, plan, table, forwarding(plan, table))

    def __enter__(self) -> SimulatedGround:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """End."""

    def lateness(self) -> tuple[float | None, list[str]]:
        """Return (lateness, problems): virtual time is never late."""
        return None, []

    def run(self, case: Case) -> tuple[Passages | None, int]:
        """Return the passages of a case, and how many messages were asked for."""
        names = members(self.plan.fabric, case.hosts)
        if case.algorithm != "unicast" or self.settings.lists == 0:
            return self._passages(case.algorithm, None, names)
        parts, asked = [], 0
        for number in range(self.settings.lists):
            order = programs.random_order(len(names), self.settings.seed + number)
            part, more = self._passages(case.algorithm, order, names)
            asked += more
            if part is None:
                return None, asked
            parts.append(part)
        return together(parts), asked

    def costs(self, case: Case) -> LogP:
        """Return the processors' costs with the L that is measured, averaged over pairs."""
        names = members(self.plan.fabric, case.hosts)
        random = Random(self.settings.seed)  # noqa: S311 - a sample, repeatable, not a secret
        pairs = [random.sample(names, 2) for _ in range(PAIRS)]
        return mean_of([self.pair(source, target) for source, target in pairs])

    def pair(self, source: str, target: str) -> LogP:
        """Return the processors' costs with the L that is measured between two hosts.

        A barrier of two processes is one message each way at the same time: it takes
        exactly o_s + L + o_r.
        """
        costs = self.settings.costs
        passages, _ = self._passages("shuffle", None, [source, target])
        if passages is None:
            raise ExperimentError(f"{source} and {target} do not reach each other")
        one_way_us = float(passages.durations_us.mean())
        latency_us = one_way_us - costs.send_us - costs.receive_us
        return replace(costs, latency_us=latency_us, line_us=self._line_us(target))

    def _line_us(self, host: str) -> float:
        """Return how long a message occupies a host's line: frame, preamble and gap."""
        fabric = self.plan.fabric
        frame_bytes = line_bytes(self.settings.message_bytes, self.settings.message_bytes)
        return frame_bytes * 8 / fabric.hosts[fabric.host_index[host]].rate_mbps

    def _passages(
        self, algorithm: str, order: list[int] | None, names: list[str]
    ) -> tuple[Passages | None, int]:
        fabric, settings = self.plan.fabric, self.settings
        costs = settings.costs
        traffic, outcome = programs.barrier_traffic(
            algorithm,
            order,
            [fabric.host_index[name] for name in names],
            len(fabric.hosts),
            self.ground.networks,
            send_ps=_ps(costs.send_us),
            receive_ps=_ps(costs.receive_us),
            gap_ps=_ps(costs.gap_us),
            interrupt_ps=_ps(costs.interrupt_us),
            barriers=settings.barriers + WARM_UP,
            computing_ps=_ps(settings.computing_us),
            message_bytes=settings.message_bytes,
            retry_ns=RETRY_NS,
            patience_ns=PATIENCE_NS,
        )
        tree = multicast_tree(self.plan, self.table, names[0], names)
        table, tables = self.table, replace(self.tables, trees=[tree])
        if self.ground.networks == 2:
            table, tables = dual_plane(table, tables)
        simulation = simulator.Simulation(
            len(fabric.switches) * self.ground.networks,
            len(fabric.hosts) * self.ground.networks,
            table,
            tables,
            traffic,
            seed=settings.seed,
            warm_up_ps=0,
            end_ps=FOREVER_PS,
            packet_bytes=1500,
            header_bytes=settings.cut_through,
            link_changes=[],
        )
        while simulation.run(EVENTS_AT_ONCE):
            pass
        ranks, entered, left = outcome.passages()
        passages = by_process(ranks, entered / PS_PER_US, left / PS_PER_US, len(names))
        if passages is None or len(passages.left_us) != settings.barriers + WARM_UP:
            return None, outcome.asked
        return passages.without_warm_up(), outcome.asked


def _ps(time_us: float) -> int:
    return round(time_us * PS_PER_US)
