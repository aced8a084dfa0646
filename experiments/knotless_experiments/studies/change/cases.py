"""The cases of the change experiment: a fabric, two safe plans, and how one replaces the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from knotless.base.flow_control import FlowControl
from knotless.base.name_lists import choice
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.reader import Generation
from knotless.forwarding.openflow.rules import FabricRules
from knotless.routing.plan import Plan, make_plan
from knotless.routing.request import PlanRequest
from knotless.topologies.fabric import Fabric
from knotless.verification.changes.change import Change, Installed
from knotless.verification.changes.planner import plan_change
from knotless.verification.changes.proof import ProofContext, StepVerdict
from knotless.verification.changes.record import described
from knotless_experiments.framework.experiment import EMULATION, Common, ExperimentError
from knotless_experiments.framework.routed import Routed, with_options

NAIVE, PROVEN = "naive", "proven"
WAYS = (NAIVE, PROVEN)
FLOW_CONTROLS = (FlowControl.PAUSE, FlowControl.PFC)
RATE_MBPS = 10.0


@dataclass(frozen=True)
class Swap:
    """Two plans of a fabric of which neither can deadlock.

    ``pairs`` are the traffic: each host's destination, by index.
    """

    name: str
    spec: str
    old: Mapping[str, Any]
    new: Mapping[str, Any]
    ahead: int

    def pairs(self, fabric: Fabric) -> list[tuple[int, int]]:
        """Return (source, destination): every host sends to the one ``ahead`` hosts further on."""
        count = len(fabric.hosts)
        return [(source, (source + self.ahead) % count) for source in range(count)]


SWAPS = (
    Swap("ring-4", "ring,4", {"root": "s1"}, {"root": "s3"}, 2),
    Swap("ring-6", "ring,6", {"root": "s1"}, {"root": "s4"}, 2),
    Swap("torus-4x4", "torus,4,4", {"engine": "dor"}, {"engine": "updown"}, 10),
)


def named(name: str) -> Swap:
    """Return the swap called ``name``; raises ExperimentError."""
    for swap in SWAPS:
        if swap.name == name:
            return swap
    raise ExperimentError(f"change {name[:40]!r}: there are {', '.join(s.name for s in SWAPS)}")


@dataclass(frozen=True)
class Case:
    """One run."""

    swap: str
    flow_control: FlowControl
    way: str
    repeat: int = 1
    rate_mbps: float = RATE_MBPS

    @property
    def routed(self) -> Routed:
        """The fabric and its routes before the change; naive runs have one of their own.

        A deadlock ends when all frames are removed, which the controller's counters would miss.
        """
        spec = with_options(named(self.swap).spec, rate=self.rate_mbps)
        own = (("allow_deadlock", self.way == NAIVE),)
        return Routed(spec, self._request(named(self.swap).old), own)

    @property
    def key(self) -> tuple[str, str, float]:
        """The fields that determine the rules before and after."""
        return self.swap, self.flow_control, self.rate_mbps

    @property
    def new_plan(self) -> Plan:
        """The routes after the change."""
        return _plan(self.routed.spec, self._request(named(self.swap).new))

    def _request(self, options: Mapping[str, Any]) -> PlanRequest:
        return PlanRequest.from_options(
            **{"engine": "updown", **options}, flow_control=self.flow_control
        )

    def __str__(self) -> str:
        """Describe the case for progress bars."""
        return f"{self.swap}, {self.flow_control}, {self.way}, run {self.repeat}"


@cache
def _plan(spec: str, request: PlanRequest) -> Plan:
    return make_plan(Routed(spec, request).fabric, request)


@cache
def proven_change(swap: str, flow_control: FlowControl, rate_mbps: float) -> Change:
    """Return the proven steps of a swap."""
    case = Case(swap, flow_control, PROVEN, rate_mbps=rate_mbps)
    old = case.routed
    before = Installed(old.fabric, naive_rules(swap, flow_control, rate_mbps)[0], flow_control)
    return plan_change(before, case.new_plan)


@cache
def naive_rules(
    swap: str, flow_control: FlowControl, rate_mbps: float
) -> tuple[FabricRules, FabricRules]:
    """Return the rules before and after, as both plans are compiled."""
    case = Case(swap, flow_control, NAIVE, rate_mbps=rate_mbps)
    return compile_rules(case.routed.plan), compile_rules(case.new_plan)


@cache
def naive_verdict(swap: str, flow_control: FlowControl, rate_mbps: float) -> StepVerdict:
    """Return the verdict on all mixtures of the old and the new rules."""
    case = Case(swap, flow_control, NAIVE, rate_mbps=rate_mbps)
    both = [Generation(rules) for rules in naive_rules(swap, flow_control, rate_mbps)]
    return ProofContext(case.routed.fabric, flow_control).judge(both)


def predicted(case: Case) -> dict[str, Any]:
    """Return what is known before the run.

    ``tier``, ``steps``, ``predicted_cycle``, and what is dropped: ``dropped_pairs`` and
    ``estimated_drop_s``, as ``knotless change --dry-run`` says.
    """
    key = case.key
    if case.way == NAIVE:
        cycle = naive_verdict(*key).outcome.cycle
        nothing = {"dropped_pairs": 0, "estimated_drop_s": 0.0}
        return {"tier": None, "steps": 1, "predicted_cycle": cycle, **nothing}
    change = proven_change(*key)
    cycles = [channel for step in change.steps for channel in step.proof.mixed.outcome.cycle]
    description = described(change)
    drops = {name: description[name] for name in ("dropped_pairs", "estimated_drop_s")}
    return {"tier": change.tier, "steps": len(change.steps), "predicted_cycle": cycles, **drops}


def cases(common: Common, options: Mapping[str, Any]) -> list[Case]:
    """List the cases in running order; raises ExperimentError for unknown names."""
    swaps = choice(options.get("fabric"), [s.name for s in SWAPS], "--fabric", (SWAPS[0].name,))
    default = FLOW_CONTROLS[:1] if common.on == EMULATION or common.quick else None
    controls = choice(options.get("flow_control"), FLOW_CONTROLS, "--flow-control", default)
    ways = choice(options.get("way"), WAYS, "--way")
    rate_mbps = common.rate_mbps or RATE_MBPS
    return [
        Case(swap, FlowControl(control), way, repeat, rate_mbps)
        for swap in swaps
        for control in controls
        for way in ways
        for repeat in range(1, common.repeats + 1)
    ]
