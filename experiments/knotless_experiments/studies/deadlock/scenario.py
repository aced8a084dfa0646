"""The fabric and flows of a case, with their predictions by theory and by the static check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from knotless.base.flow_control import FlowControl
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.forwarding.openflow.rules import FabricRules
from knotless.forwarding.state import ForwardingState
from knotless.routing.graphs.channels import VCS_PER_CHANNEL
from knotless.routing.graphs.dependencies import Edges, cycle_names, find_cycle, waiting
from knotless.routing.plan import Plan
from knotless.topologies.fabric import Fabric
from knotless.traffic import theory
from knotless.traffic.flows import Flow, fair_mbps, flows_of
from knotless.verification.dependencies import edges_of_pairs
from knotless_experiments.framework.routed import Routed
from knotless_experiments.studies.deadlock import transfers
from knotless_experiments.studies.deadlock.matrix import Case


@dataclass(frozen=True)
class Scenario:
    """Transfers on one kind of routes, planned and compiled."""

    routed: Routed
    pairs: transfers.Pairs

    @property
    def fabric(self) -> Fabric:
        """The fabric."""
        return self.routed.fabric

    @property
    def plan(self) -> Plan:
        """The plan."""
        return self.routed.plan

    @cached_property
    def rules(self) -> FabricRules:
        """The rules of the switches."""
        return compile_rules(self.plan)

    @cached_property
    def flows(self) -> tuple[Flow, ...]:
        """The flows, with their channels."""
        return flows_of(self.plan, self.pairs)

    def dependencies(
        self, protocol: theory.Protocol, flow_control: FlowControl
    ) -> set[tuple[str, str]]:
        """Return which channel waits for which, as ``SWITCH:PORT/PRIORITY``.

        Found by tracing the frames of these flows, and TCP's acknowledgements, through the
        rules. Only links that pause create dependencies, so the graph depends on
        ``flow_control``.
        """
        name = self.plan.channels.name
        return {
            (name(*divmod(a, VCS_PER_CHANNEL)), name(*divmod(b, VCS_PER_CHANNEL)))
            for a, b in self._waiting(protocol, flow_control).tolist()
        }

    def predicted_cycle(self, protocol: theory.Protocol, flow_control: FlowControl) -> list[str]:
        """Return the shortest cycle of those dependencies, or an empty list."""
        return cycle_names(self.plan.channels, find_cycle(self._waiting(protocol, flow_control)))

    def as_predicted(
        self, cycle: Sequence[str], protocol: theory.Protocol, flow_control: FlowControl
    ) -> bool:
        """Tell whether a knot (an empty list: none) is possible according to the static check."""
        steps = zip(cycle, [*cycle[1:], *cycle[:1]], strict=True)
        return set(steps) <= self.dependencies(protocol, flow_control)

    def theory_mbps(self, protocol: theory.Protocol) -> list[float]:
        """Return each flow's max-min fair share, as goodput in Mbit/s."""
        return fair_mbps(self.plan, self.flows, protocol)

    @cached_property
    def state(self) -> ForwardingState:
        """The forwarding state defined by the rules."""
        return state_of_rules(self.fabric, self.rules, tags=self.plan.host_tags())

    def _waiting(self, protocol: theory.Protocol, flow_control: FlowControl) -> Edges:
        """Return the dependencies of the flows' frames."""
        pairs = list(self.pairs)
        if protocol == "tcp":
            pairs += [(target, source) for source, target in self.pairs]
        return waiting(edges_of_pairs(self.state, pairs), flow_control)


@cache
def make(pattern: str, routed: Routed) -> Scenario:
    """Return the scenario of transfers on routes; cached."""
    return Scenario(routed, transfers.named(pattern).pairs)


def for_case(case: Case) -> Scenario:
    """Return the scenario of a case."""
    return make(case.pattern, case.routed)
