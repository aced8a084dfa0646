"""The ring, its routes, who sends to whom, and what theory and the static check say of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments import theory
from experiments.deadlock.matrix import Case
from experiments.experiment import ExperimentError
from experiments.flows import Flow, fair_mbps, flows_of, paths_on_channels
from routing import FabricRules, Plan, check, compile_rules, make_plan
from topologies import load
from topologies.fabric import Fabric

SWITCHES = 4
HOPS_ROUND = 2
"""Each host sends this many switches round the ring, as in Otsuka et al., Fig. 8 (a)."""
MAX_PATHS_ON_A_CHANNEL = 2
"""As in the paper, so that the routes of a pair differ in nothing but their cycle."""
DEFAULT_RATE_MBPS = 10.0

ROUTING: Mapping[str, Mapping[str, Any]] = {
    "cyclic": {"engine": "dor", "vcs": 1, "select": "low-port"},
    "acyclic": {"engine": "prefix", "select": "spread"},
    "dateline": {"engine": "dor", "vcs": 2, "select": "low-port"},
}
"""What :func:`routing.make_plan` is asked for. With low-port every tie goes the same way
round, and with one virtual channel the ring of channels is then a cycle of dependencies."""


@dataclass(frozen=True)
class Scenario:
    """A fabric with one kind of routes, planned and compiled."""

    routes: str
    fabric: Fabric
    plan: Plan
    rules: FabricRules
    flows: tuple[Flow, ...]

    def predicted_cycle(self, flow_control: str) -> list[str]:
        """Return the cycle of channels that the static check finds in the rules.

        802.3x PAUSE stops all priorities of a link, PFC one: so the channels of the graph
        are those of ``flow_control``. The cycle is the routes' own, whether or not that
        flow control lets it freeze.
        """
        kind = "pfc" if flow_control == "pfc" else "pause"
        return list(check(self.fabric, self.rules, flow_control=kind).cycle)

    def theory_mbps(self, protocol: theory.Protocol) -> list[float]:
        """Return each flow's max-min fair share, as goodput in Mbit/s."""
        return fair_mbps(self.plan, self.flows, protocol)


def make(routes: str, rate_mbps: float = DEFAULT_RATE_MBPS) -> Scenario:
    """Plan the ring with these routes.

    Raises ExperimentError when a channel carries more than two flows, or the flows do not
    all have the same fair share: then a comparison of routes would compare loads.
    """
    fabric = load(f"ring,{SWITCHES},rate={rate_mbps:g}")
    plan = make_plan(fabric, **ROUTING[routes])
    names = [host.name for host in fabric.hosts]
    pairs = [(name, names[(i + HOPS_ROUND) % SWITCHES]) for i, name in enumerate(names)]
    flows = flows_of(plan, pairs)
    most = max(paths_on_channels(flows).values())
    if most != MAX_PATHS_ON_A_CHANNEL:
        raise ExperimentError(
            f"{routes} routes put {most} flows on one channel, not {MAX_PATHS_ON_A_CHANNEL}"
        )
    scenario = Scenario(routes, fabric, plan, compile_rules(plan), flows)
    shares = scenario.theory_mbps("udp")
    if max(shares) - min(shares) > 1e-6 * max(shares):
        raise ExperimentError(f"{routes} routes give the flows unequal fair shares: {shares}")
    return scenario


def scenarios(cases: Sequence[Case], rate_mbps: float) -> dict[str, Scenario]:
    """Plan the ring for every kind of routes that the cases need."""
    return {r: make(r, rate_mbps) for r in dict.fromkeys(case.routes for case in cases)}
