"""A plan with its forwarding state, verdict, rules and metrics, each computed once."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from knotless.base.errors import PlanError
from knotless.base.flow_control import FlowControl, resolved
from knotless.forwarding.from_plan import state_of_plan
from knotless.forwarding.openflow.compiled import CompiledRules
from knotless.forwarding.openflow.compiler import compile_state, with_backups
from knotless.forwarding.openflow.failover import ProtectedRules
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.forwarding.state import ForwardingState
from knotless.routing.choices.choice import Binding
from knotless.routing.graphs.channels import Channels, channels_of
from knotless.routing.plan import Plan, refuse_adaptive
from knotless.verification.check import Verdict, verdict_of
from knotless.verification.failover import Coverage, coverage
from knotless.verification.switch_verdict import verdict_with_switches

if TYPE_CHECKING:
    from knotless.base.switch_settings import SwitchFile
    from knotless.traffic.endpoints import EndpointModel
    from knotless.verification.endpoint_verdict import EndpointVerdict


@dataclass(frozen=True)
class CheckedPlan:
    """A plan and what is derived from it, computed on first use.

    ``switches`` are the settings of its switches, which the verdict then judges for packets of up
    to ``packet_bytes``; None: each has a reserve and enough headroom. ``endpoints`` are the message
    classes of its hosts, which the verdict judges without settings of switches; None: hosts take
    all that arrives.
    """

    plan: Plan
    switches: SwitchFile | None = None
    packet_bytes: int = 1500
    endpoints: EndpointModel | None = None

    @cached_property
    def state(self) -> ForwardingState:
        """The forwarding state. Raises PlanError if switches cannot implement the plan."""
        return state_of_plan(self.plan)

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict on the state under the plan's flow control."""
        state, control = self.state, self.plan.flow_control
        if self.endpoint_verdict is not None:
            return self.endpoint_verdict
        if self.switches is None:
            return verdict_of(state, control)
        return verdict_with_switches(state, self.switches, control, packet_bytes=self.packet_bytes)

    @cached_property
    def endpoint_verdict(self) -> EndpointVerdict | None:
        """The verdict with the end points; None without these. Raises EndpointError."""
        if self.endpoints is None:
            return None
        from knotless.verification.endpoint_verdict import verdict_with_endpoints  # pydantic

        plan = self.plan
        priorities = plan.vcs * len(self.endpoints.priorities)
        control = resolved(plan.request.flow_control, priorities)
        return verdict_with_endpoints(self.state, self.endpoints, control)

    @cached_property
    def _compiled(self) -> tuple[CompiledRules, float]:
        plan, state = self.plan, self.state
        refuse_adaptive(plan)
        began = time.perf_counter()
        rules = compile_state(
            state,
            tagging=plan.tagging,
            source_check=plan.source_check,
            hash_seed=plan.request.hash_seed,
        )
        rules = with_backups(plan, rules)
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
        return verdict_of(replace(state, failures=plan.failures), plan.flow_control)

    @cached_property
    def coverage(self) -> Coverage | None:
        """The failover of every single failure by the plan's backups; None if it has none."""
        plan = self.plan
        if not isinstance(self.rules, ProtectedRules):
            return None
        return coverage(
            plan.fabric, self.rules, plan.flow_control, plan.multicast, plan.host_tags()
        )

    def refuse_unproven_backups(self) -> None:
        """Raise PlanError if the plan can deadlock while switches divert packets to backups."""
        for failover in self.coverage.failures if self.coverage else ():
            if failover.cycle:
                raise PlanError(
                    f"{self.plan.engine} on {self.plan.fabric.name}: backup paths for"
                    f" {failover.failed} can deadlock:"
                    f" {' -> '.join(failover.cycle)}; use protection none"
                )

    @property
    def loads(self) -> NDArray[np.int64]:
        """(channels,) the number of paths between hosts on each channel, one for each pair."""
        return self.state.loads.astype(np.int64)

    @property
    def _hops(self) -> float:
        """The channels on all paths between hosts; several paths of a pair count as their mean."""
        return round(float(self.state.loads.sum()), 6)  # a sum of equal shares

    @property
    def cycle(self) -> list[str]:
        """A cycle of dependencies under the plan's flow control (``s1:2/0`` ..), or [].

        An adaptive plan with a cycle can be safe.
        """
        return self.verdict.cycle

    @cached_property
    def _shortest_hops(self) -> int:
        """The total number of channels on shortest paths between all pairs of hosts."""
        receivers = self.plan.receivers
        return self._working_channels.core.total_hops(receivers, receivers)

    @cached_property
    def _working_channels(self) -> Channels:
        """The channels that can carry frames."""
        plan = self.plan
        if not plan.failures:
            return plan.channels
        dead = plan.failures.dead_links(plan.fabric)
        links = tuple(link for link in plan.fabric.links if link not in dead)
        return channels_of(replace(plan.fabric, links=links))

    @property
    def is_minimal(self) -> bool:
        """Return whether all paths between hosts are shortest paths."""
        return self._hops == self._shortest_hops

    @property
    def hops_over_shortest(self) -> float:
        """The channels on all paths between hosts, divided by those on shortest paths."""
        return self._hops / max(1, self._shortest_hops)

    def refuse_deadlock(self) -> None:
        """Raise PlanError if the plan can deadlock under its flow control."""
        refuse_deadlock(self.plan, self.verdict)

    def summary(self) -> dict[str, object]:
        """Return the plan's metrics, which ``knotless plan --json`` prints.

        The mean number of switches is over all ordered pairs of hosts, including a host to itself,
        as in Table 1 of Otsuka et al. ``load_bound`` is the mean load of a channel if all pairs
        take shortest paths: a lower bound of the largest load of any plan. With multipath, loads
        are those if each of several next hops takes an equal share; no rules spray frames or route
        adaptively. ``safe`` tells whether no deadlock is possible, by ``theorem``.
        """
        plan, verdict = self.plan, self.verdict
        waits_for_first_free = plan.choice.binding is Binding.FIRST_FREE
        return {
            "fabric": plan.fabric.name,
            "engine": plan.engine,
            "select": plan.request.select,
            "vcs": plan.vcs,
            "vlans": plan.vlan_count,
            "flow_control": verdict.flow_control,
            "mean_switches": verdict.mean_switches,
            "max_switches": verdict.max_switches,
            "max_channel_load": verdict.max_channel_load,
            "load_bound": self._shortest_hops / max(1, len(self._working_channels)),
            "minimal": self.is_minimal,
            "acyclic": verdict.acyclic,
            "cycle": verdict.cycle,
            "safe": verdict.safe,
            "theorem": verdict.theorem,
            "routing_ms": round(plan.routing_ms, 3),
            **plan.choice.summary(),
            **({"blocked": verdict.blocked} if waits_for_first_free else {}),
            **self._rules_summary(),
            **({} if self.switches is None else {"losses": verdict.losses}),
            **self._about_bubbles,
            **(self.endpoint_verdict.about_endpoints if self.endpoint_verdict else {}),
            **(self.coverage.as_json() if plan.choice.has_rules and self.coverage else {}),
        }

    @property
    def _about_bubbles(self) -> dict[str, object]:
        verdict = self.verdict
        if verdict.flow_control is not FlowControl.BUBBLE:
            return {}
        return {"assumes": verdict.assumes, "notes": verdict.notes}

    def _rules_summary(self) -> dict[str, object]:
        if not self.plan.choice.has_rules:
            return {}
        rules, compile_ms = self._compiled
        return {
            "compile_ms": round(compile_ms, 3),
            "rules": rules.total,
            "rules_max_switch": int(rules.counts.max()),
        }


def refuse_deadlock(plan: Plan, verdict: Verdict) -> None:
    """Refuse a plan whose ``verdict`` is that it can deadlock.

    Raises
    ------
    PlanError
        It is; the message names the channels and the remedies.

    """
    if not verdict.safe:
        raise PlanError(
            f"{plan.engine} on {plan.fabric.name} {verdict.text};"
            " choose another flow control, engine or number of virtual channels, or allow it with"
            " --allow-deadlock (knotless.yaml: allow_deadlock: true)"
        )
