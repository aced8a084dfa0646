"""The cases of the clos-failure experiment: links that have failed, routes, and traffic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from knotless.base.flow_control import FlowControl
from knotless.base.name_lists import choice
from knotless.forwarding.from_plan import state_of_plan
from knotless.forwarding.state import ForwardingState
from knotless.routing.graphs.channels import VCS_PER_CHANNEL
from knotless.routing.graphs.dependencies import waiting
from knotless.routing.plan import Plan
from knotless.routing.repair import repair
from knotless.routing.request import PlanRequest
from knotless.topologies.failures import Failures
from knotless.traffic.patterns import Pattern, pattern_named
from knotless.traffic.patterns.pattern import pattern_of
from knotless.verification.check import verdict_of
from knotless.verification.dependencies import edges_of
from knotless_experiments.framework.experiment import Common, ExperimentError
from knotless_experiments.framework.routed import Routed, with_options
from knotless_experiments.studies.clos_failure.bounces import BOUNCED, ROUTES, TAGGED, bounced_plan

FABRIC = "fattree,2,4,2"
WITHOUT = ("s9-s3", "s9-s3,s10-s4")
"""One link down from a middle switch of a pod, then one of its other middle switch as well."""
PERMUTATION, PERMUTATIONS = "permutation", "3-permutations"
TRAFFIC: Mapping[str, int] = {PERMUTATION: 1, PERMUTATIONS: 3}
"""Name -> permutations of the hosts at once."""
RATE_MBPS = 10_000.0
LIMITS_MBPS = (1.0, 1e6)
REQUEST = PlanRequest(engine="fattree", flow_control=FlowControl.PFC)


@dataclass(frozen=True)
class Case:
    """A fat-tree without some links, its routes, and traffic."""

    spec: str
    without: str
    routes: str
    traffic: str = PERMUTATION
    repeat: int = 1

    @property
    def routed(self) -> Routed:
        """The fabric with its routes before the failures."""
        return Routed(self.spec, REQUEST)

    @property
    def plan(self) -> Plan:
        """The routes after the failures. Raises KnotlessError if there are none."""
        return _plan(self.spec, self.without, self.routes)

    @property
    def state(self) -> ForwardingState:
        """Their forwarding state."""
        return _state(self.spec, self.without, self.routes)

    @property
    def predicted_cycle(self) -> list[str]:
        """A shortest cycle of channel dependencies under PFC; empty if there is none."""
        return _predicted(self.spec, self.without, self.routes)[0]

    def as_predicted(self, knot: list[str]) -> bool:
        """Tell whether a knot is a cycle of the channel dependencies."""
        edges = _predicted(self.spec, self.without, self.routes)[1]
        return set(zip(knot, [*knot[1:], *knot[:1]], strict=True)) <= edges

    def pattern(self, seed: int) -> Pattern:
        """Return the traffic of a seed: each host sends all it can to as many hosts at random."""
        permutation, fabric = pattern_named("permutation"), self.routed.fabric
        permutations = range(TRAFFIC[self.traffic])
        pairs = {
            pair
            for number in permutations
            for pair in permutation.flows(fabric, len(permutations) * seed + number)
        }
        return pattern_of(self.traffic, "flows of the clos-failure experiment", sorted(pairs))

    def __str__(self) -> str:
        """Describe the case for progress bars."""
        return f"{self.routed.name} without {self.without}, {self.routes}, {self.traffic}"


@cache
def _intact(spec: str) -> Plan:
    return Routed(spec, REQUEST).plan


@cache
def _plan(spec: str, without: str, routes: str) -> Plan:
    plan = _intact(spec)
    failures = Failures.from_names(plan.fabric, [name.strip() for name in without.split(",")])
    repaired = repair(plan, failures).plan
    if routes in (BOUNCED, TAGGED):
        return bounced_plan(plan, repaired, tagged=routes == TAGGED)
    return repaired


@cache
def _state(spec: str, without: str, routes: str) -> ForwardingState:
    return state_of_plan(_plan(spec, without, routes))


@cache
def _predicted(spec: str, without: str, routes: str) -> tuple[list[str], set[tuple[str, str]]]:
    state, plan = _state(spec, without, routes), _plan(spec, without, routes)
    name, control = plan.channels.name, plan.flow_control
    edges = waiting(edges_of(state), control).tolist()
    return verdict_of(state, control).cycle, {
        (name(*divmod(a, VCS_PER_CHANNEL)), name(*divmod(b, VCS_PER_CHANNEL))) for a, b in edges
    }


def cases(common: Common, options: Mapping[str, Any], delay_us: float) -> list[Case]:
    """List the cases; all routes are made, so that none fails later. Raises KnotlessError."""
    spec, without = options.get("fabric"), options.get("without")
    if spec is not None and not without:
        raise ExperimentError(f"--fabric {spec[:40]}: name the links that have failed, --without")
    routes = choice(options.get("routes"), ROUTES, "--routes")
    traffics = choice(options.get("traffic"), tuple(TRAFFIC), "--traffic")
    rate_mbps = RATE_MBPS if common.rate_mbps is None else common.rate_mbps
    if not LIMITS_MBPS[0] <= rate_mbps <= LIMITS_MBPS[1]:
        raise ExperimentError(
            f"--rate: {rate_mbps:g} is not within {LIMITS_MBPS[0]:g}..{LIMITS_MBPS[1]:g} Mbit/s"
        )
    full = with_options(spec or FABRIC, rate=rate_mbps, delay=delay_us)
    runs = [
        Case(full, links, name, traffic, repeat)
        for links in without or WITHOUT
        for name in routes
        for traffic in traffics
        for repeat in range(1, common.repeats + 1)
    ]
    for case in runs:
        _ = case.predicted_cycle
        if case.state.failures and verdict_of(case.state, case.plan.flow_control).unreachable:
            raise ExperimentError(f"--without {case.without[:60]}: some hosts are not connected")
    return runs
