"""A plan with all that is derived from it, each worked out once: state, verdict, rules, figures."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from common.errors import PlanError
from forwarding.from_plan import state_of_plan
from forwarding.openflow.compiled import CompiledRules
from forwarding.openflow.compiler import compile_state
from forwarding.openflow.reader import state_of_rules
from forwarding.state import ForwardingState
from routing.flow_control import verdict_text
from routing.plan import Plan
from verification.check import Verdict, verdict_of


@dataclass(frozen=True)
class CheckedPlan:
    """A plan, and what follows from it when it is first asked for."""

    plan: Plan

    @cached_property
    def state(self) -> ForwardingState:
        """What every switch is to do. Raises PlanError where no switch can."""
        return state_of_plan(self.plan)

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict on the state under the plan's flow control."""
        return verdict_of(self.state, self.plan.flow_control)

    @cached_property
    def _compiled(self) -> tuple[CompiledRules, float]:
        state = self.state
        began = time.perf_counter()
        rules = compile_state(state, tagging=self.plan.tagging)
        return rules, 1000 * (time.perf_counter() - began)

    @property
    def rules(self) -> CompiledRules:
        """The OpenFlow rules of every switch."""
        return self._compiled[0]

    @cached_property
    def rules_verdict(self) -> Verdict:
        """The verdict on the rules, read back, under the plan's flow control."""
        plan = self.plan
        state = state_of_rules(plan.fabric, self.rules, plan.multicast, plan.host_tags())
        return verdict_of(state, plan.flow_control)

    @property
    def loads(self) -> NDArray[np.int64]:
        """(channels,) the paths between hosts that take each channel."""
        return self.state.loads.astype(np.int64)

    @property
    def cycle(self) -> list[str]:
        """A cycle of dependencies under the plan's flow control (``s1:2/0`` ..), or []."""
        return self.verdict.cycle

    @cached_property
    def _shortest_hops(self) -> int:
        """The channels of shortest paths between all pairs of hosts together."""
        receivers = self.plan.receivers
        return self.plan.channels.core.total_hops(receivers, receivers)

    @property
    def is_minimal(self) -> bool:
        """Whether all paths between hosts are shortest paths."""
        return int(self.loads.sum()) == self._shortest_hops

    def refuse_deadlock(self) -> None:
        """Raise PlanError if the plan can deadlock under its flow control."""
        refuse_deadlock(self.plan, self.cycle)

    def summary(self) -> dict[str, object]:
        """Return the plan's figures, as ``knotless plan --json`` prints them.

        The mean number of switches counts all ordered pairs of hosts, a host to itself included,
        as Table 1 of Otsuka et al. does; ``load_bound`` is the mean load of a channel when all
        pairs take shortest paths, which no plan's greatest load can be under.
        """
        plan, verdict = self.plan, self.verdict
        rules, compile_ms = self._compiled
        return {
            "fabric": plan.fabric.name,
            "engine": plan.engine,
            "select": plan.request.select,
            "vcs": plan.vcs,
            "vlans": plan.vlan_count,
            "flow_control": plan.flow_control,
            "mean_switches": verdict.mean_switches,
            "max_switches": verdict.max_switches,
            "max_channel_load": verdict.max_channel_load,
            "load_bound": self._shortest_hops / max(1, len(plan.channels)),
            "minimal": self.is_minimal,
            "acyclic": verdict.acyclic,
            "cycle": verdict.cycle,
            "routing_ms": round(plan.routing_ms, 3),
            "compile_ms": round(compile_ms, 3),
            "rules": rules.total,
            "rules_max_switch": int(rules.counts.max()),
        }


def refuse_deadlock(plan: Plan, cycle: Sequence[str]) -> None:
    """Refuse a plan whose channels wait for each other in a ``cycle`` under its flow control.

    Raises
    ------
    PlanError
        There is one: it is named, and what would be right.

    """
    if cycle:
        raise PlanError(
            f"{plan.engine} on {plan.fabric.name} {verdict_text(plan.flow_control, cycle)};"
            " choose another flow control, engine or number of virtual channels, or allow it with"
            " --allow-deadlock (knotless.yaml: allow_deadlock: true)"
        )
