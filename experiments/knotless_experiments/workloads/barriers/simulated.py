"""Barriers on the simulator: the machines of the crate barrier, with processors as in LogP."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from knotless._core import programs, simulator
from knotless.base.flow_control import refuse_bubbles
from knotless.forwarding.from_plan import state_of_plan
from knotless.forwarding.state import ForwardingState
from knotless.routing.plan import Plan
from knotless.simulation.channels import ChannelTable, channel_table
from knotless.simulation.dual_plane import dual_plane
from knotless.simulation.run import FOREVER_PS
from knotless.simulation.settings import Switching
from knotless.simulation.tables import tables_of, trees_of
from knotless.simulation.traffic import line_bytes
from knotless.simulation.units import PICOSECONDS_PER_US, picoseconds
from knotless_experiments.framework.experiment import ExperimentError
from knotless_experiments.messages.logp import LogP
from knotless_experiments.workloads.barriers.case import Case, Settings, Testbed, members
from knotless_experiments.workloads.barriers.passages import WARM_UP, Passages, by_process, together

EVENTS_AT_ONCE = 1 << 18
RETRY_NS, PATIENCE_NS = 10**9, 10**11
"""Nothing is lost with flow control on every link, so no retransmission is ever needed."""


@dataclass
class SimulatedTestbed:
    """A fabric whose simulations share their tables; a context manager like the emulated one."""

    testbed: Testbed
    settings: Settings
    plan: Plan
    state: ForwardingState
    groups: dict[int | None, int]
    """The multicast group by number of hosts."""
    table: ChannelTable
    tables: simulator.Tables
    pairs: int = 64

    @classmethod
    def build(
        cls, testbed: Testbed, settings: Settings, cases: list[Case], _say: Callable[[str], None]
    ) -> SimulatedTestbed:
        """Plan the fabric and fill the tables; raises KnotlessError."""
        fabric = testbed.fabric(settings)
        counts = dict.fromkeys(case.hosts for case in cases)
        groups = {count: number for number, count in enumerate(counts, 1)}
        wanted = {number: members(fabric, count) for count, number in groups.items()}
        return cls.from_plan(testbed, settings, testbed.plan(settings, wanted), groups)

    @classmethod
    def from_plan(
        cls, testbed: Testbed, settings: Settings, plan: Plan, groups: dict[int | None, int]
    ) -> SimulatedTestbed:
        """Fill the tables of ``plan``, and those of the second network; raises KnotlessError."""
        refuse_bubbles(plan.flow_control, "simulated barriers")
        state = state_of_plan(plan)
        table = channel_table(plan.fabric, Switching(plan.flow_control))
        tables = tables_of(state, table)
        if testbed.networks == 2:
            table = dual_plane(table, len(plan.fabric.switches))
            tables = tables.repeated(2)
        return cls(testbed, settings, plan, state, groups, table, tables)

    def __enter__(self) -> SimulatedTestbed:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """End."""

    def pace(self) -> tuple[float | None, list[str]]:
        """Return no stretch and no problems: only emulated time is stretched."""
        return None, []

    def watched(self) -> AbstractContextManager[list[str]]:
        """Return a context manager for no programs: there are no hosts."""
        return nullcontext([])

    def run(self, case: Case) -> tuple[Passages | None, int]:
        """Return the passages of a case, and the number of retransmissions."""
        names = members(self.plan.fabric, case.hosts)
        trees = trees_of(self.state, self.table, [(names[0], self.groups[case.hosts])])
        if case.algorithm != "unicast" or self.settings.lists == 0:
            return self._passages(case.algorithm, None, names, trees)
        parts, asked = [], 0
        for number in range(self.settings.lists):
            order = programs.random_order(len(names), self.settings.seed + number)
            part, more = self._passages(case.algorithm, order, names, trees)
            asked += more
            if part is None:
                return None, asked
            parts.append(part)
        return together(parts), asked

    def pair(self, source: str, target: str) -> LogP:
        """Return the processors' costs with L measured between two hosts.

        A barrier of two processes is one message each way at the same time: it takes
        exactly o_s + L + o_r.
        """
        costs = self.settings.costs
        passages, _ = self._passages("shuffle", None, [source, target], [])
        if passages is None:
            raise ExperimentError(f"{source} and {target} cannot reach each other")
        one_way_us = float(passages.durations_us.mean())
        latency_us = one_way_us - costs.send_us - costs.receive_us
        return replace(costs, latency_us=latency_us, line_us=self._line_us(target))

    def _line_us(self, host: str) -> float:
        """Return the time that a message occupies a host's line: frame, preamble and gap."""
        fabric = self.plan.fabric
        frame_bytes = line_bytes(self.settings.message_bytes, self.settings.message_bytes)
        return frame_bytes * 8 / fabric.hosts[fabric.host_index[host]].rate_mbps

    def _passages(
        self,
        algorithm: str,
        order: list[int] | None,
        names: list[str],
        trees: list[NDArray[np.uint32]],
    ) -> tuple[Passages | None, int]:
        fabric, settings = self.plan.fabric, self.settings
        costs = settings.costs
        traffic, outcome = programs.barrier_traffic(
            algorithm,
            order,
            [fabric.host_index[name] for name in names],
            len(fabric.hosts),
            self.testbed.networks,
            send_ps=picoseconds(costs.send_us),
            receive_ps=picoseconds(costs.receive_us),
            gap_ps=picoseconds(costs.gap_us),
            interrupt_ps=picoseconds(costs.interrupt_us),
            barriers=settings.barriers + WARM_UP,
            computing_ps=picoseconds(settings.computing_us),
            message_bytes=settings.message_bytes,
            retry_ns=RETRY_NS,
            patience_ns=PATIENCE_NS,
        )
        try:
            simulation = simulator.Simulation(
                len(fabric.switches) * self.testbed.networks,
                len(fabric.hosts) * self.testbed.networks,
                self.table,
                self.tables,
                trees,
                traffic,
                seed=settings.seed,
                warm_up_ps=0,
                end_ps=FOREVER_PS,
                packet_bytes=1500,
                header_bytes=settings.cut_through,
                link_changes=[],
            )
        except ValueError as error:
            raise ExperimentError(f"{fabric.name}: {error}") from None
        while simulation.run(EVENTS_AT_ONCE):
            pass
        ranks, entered, left = outcome.passages()
        passages = by_process(
            ranks, entered / PICOSECONDS_PER_US, left / PICOSECONDS_PER_US, len(names)
        )
        if passages is None or len(passages.left_us) != settings.barriers + WARM_UP:
            return None, outcome.asked
        return passages.without_warm_up(), outcome.asked
