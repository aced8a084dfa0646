"""The fabric of a case, who sends to whom, and what theory and the static check say of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from experiments.framework.routed import Routed
from experiments.studies.deadlock import transfers
from experiments.studies.deadlock.matrix import Case
from forwarding.openflow.compiler import compile_rules
from forwarding.openflow.reader import state_of_rules
from forwarding.openflow.rules import FabricRules
from forwarding.state import ForwardingState
from routing.flow_control import Edges, waiting
from routing.graphs.channels import PRIORITIES
from routing.graphs.dependencies import cycle_names, find_cycle
from routing.plan import Plan
from topologies.fabric import Fabric
from traffic import theory
from traffic.flows import Flow, fair_mbps, flows_of
from verification.dependencies import edges_of_pairs


@dataclass(frozen=True)
class Scenario:
    """Transfers by one kind of routes, planned and compiled."""

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
        """What the switches are given."""
        return compile_rules(self.plan)

    @cached_property
    def flows(self) -> tuple[Flow, ...]:
        """The flows, with the channels that they take."""
        return flows_of(self.plan, self.pairs)

    def dependencies(self, protocol: theory.Protocol, flow_control: str) -> set[tuple[str, str]]:
        """Return which channel waits for which, as ``SWITCH:PORT/PRIORITY``.

        It is what frames of these flows, and TCP's acknowledgements on their way back, show
        when they are sent through the rules. Only links that pause
        make channels wait: the graph is that of ``flow_control``.
        """
        name = self.plan.channels.name
        return {
            (name(*divmod(a, PRIORITIES)), name(*divmod(b, PRIORITIES)))
            for a, b in self._waiting(protocol, flow_control).tolist()
        }

    def predicted_cycle(self, protocol: theory.Protocol, flow_control: str) -> list[str]:
        """Return the shortest cycle of those dependencies, or an empty list."""
        return cycle_names(self.plan.channels, find_cycle(self._waiting(protocol, flow_control)))

    def as_predicted(
        self, cycle: Sequence[str], protocol: theory.Protocol, flow_control: str
    ) -> bool:
        """Say whether a knot (none: an empty list) is one that the static check allows."""
        steps = zip(cycle, [*cycle[1:], *cycle[:1]], strict=True)
        return set(steps) <= self.dependencies(protocol, flow_control)

    def theory_mbps(self, protocol: theory.Protocol) -> list[float]:
        """Return each flow's max-min fair share, as goodput in Mbit/s."""
        return fair_mbps(self.plan, self.flows, protocol)

    @cached_property
    def state(self) -> ForwardingState:
        """What the switches do by their rules."""
        return state_of_rules(self.fabric, self.rules, tags=self.plan.host_tags())

    def _waiting(self, protocol: theory.Protocol, flow_control: str) -> Edges:
        """Return the dependencies of the flows' frames."""
        pairs = list(self.pairs)
        if protocol == "tcp":
            pairs += [(target, source) for source, target in self.pairs]
        return waiting(edges_of_pairs(self.state, pairs), flow_control)


@cache
def make(pattern: str, routed: Routed) -> Scenario:
    """Return the scenario of transfers by routes; of equal ones always the same."""
    return Scenario(routed, transfers.named(pattern).pairs)


def of(case: Case) -> Scenario:
    """Return the scenario of a case."""
    return make(case.pattern, case.routed)
