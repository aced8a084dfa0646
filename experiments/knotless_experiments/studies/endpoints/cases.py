"""The cases of the endpoints experiment: one fabric and its requests, and kinds of hosts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from knotless.base.name_lists import names_in
from knotless.routing.request import PlanRequest
from knotless.simulation import Load, Scenario
from knotless.traffic.endpoint_presets import endpoints_named
from knotless.traffic.endpoints import EndpointModel
from knotless.traffic.patterns.pattern import pattern_of
from knotless.verification.checked_plan import CheckedPlan
from knotless.verification.endpoint_verdict import EndpointVerdict
from knotless_experiments.framework.experiment import Common, ExperimentError
from knotless_experiments.framework.routed import Routed, with_options

FABRIC = "fattree2,4"
FLOWS = (("h2", "h7"), ("h8", "h14"), ("h9", "h14"), ("h15", "h1"))
"""Who sends requests to whom: what ``plan --endpoints request-reply --freeze`` finds for it."""
TOGETHER, APART = "replies-together", "replies-apart"
"""Clients and servers that answer from no reserve, all on a virtual channel, and with replies on
another one: up*/down* routes with two give each of two hosts of a switch one for what it sends."""
VCS = {TOGETHER: 1, APART: 2}
LINE = "mesh,3,hosts=2"
LINE_FLOWS = (("h1", "h4"), ("h3", "h4"), ("h5", "h2"))
"""What ``plan --freeze`` finds for replies on the virtual channel of requests."""
DEFAULT_ENDPOINTS = ("sink", "rdma-read", "request-reply", TOGETHER, APART)
RATE_MBPS, DELAY_US = 10.0, 1000.0
"""Slow and long enough for virtual time to pass about as fast as real time on a small machine."""


@dataclass(frozen=True)
class Case:
    """A fabric and its routes, whose hosts have these message classes, and send requests."""

    routed: Routed
    endpoints: EndpointModel
    flows: tuple[tuple[str, str], ...] = FLOWS
    repeat: int = 1

    def __str__(self) -> str:
        """Describe the case for progress bars."""
        return f"{self.routed.name}, {self.endpoints.name}, run {self.repeat}"

    @cached_property
    def scenario(self) -> Scenario:
        """The plan and its hosts, whose flows always have a request to send."""
        index = self.routed.fabric.host_index
        pairs = [(index[source], index[to]) for source, to in self.flows]
        return Scenario(
            self.routed.plan,
            pattern_of("requests", "flows of requests", pairs),
            Load("saturate"),
            duration_us=1.0,
            messages=self.endpoints,
        )

    @cached_property
    def verdict(self) -> EndpointVerdict:
        """The verdict on the plan with these hosts."""
        verdict = CheckedPlan(self.routed.plan, endpoints=self.endpoints).endpoint_verdict
        assert verdict is not None  # noqa: S101 - there are end points
        return verdict


def cases(common: Common, endpoints: str | None) -> list[Case]:
    """List the cases. Raises KnotlessError for end points that do not exist or cannot be run."""
    rate_mbps = RATE_MBPS if common.rate_mbps is None else common.rate_mbps
    runs = [
        replace(_case(name, rate_mbps), repeat=repeat)
        for name in names_in(endpoints, DEFAULT_ENDPOINTS)
        for repeat in range(1, common.repeats + 1)
    ]
    for case in runs:
        if len(case.endpoints.priorities) > 1:
            raise ExperimentError(
                f"--endpoints: {case.endpoints.name} has messages of several priorities, and rules"
                " of switches give all frames of hosts one: give all the same"
            )
        _ = case.scenario  # Raises SimulationError if it is not possible.
    return runs


def _case(name: str, rate_mbps: float) -> Case:
    settings = (("pause_share", 1.0),)
    if name not in VCS:
        spec = with_options(FABRIC, rate=rate_mbps, delay=DELAY_US)
        return Case(Routed(spec, settings=settings), endpoints_named(name))
    spec = with_options(LINE, rate=rate_mbps, delay=DELAY_US)
    request = PlanRequest.from_options(engine="updown", vcs=VCS[name], flow_control="pfc")
    routed = Routed(spec, request, settings)
    hosts = [host.name for host in routed.fabric.hosts]
    classes = {"request": {"sends_before_taking": ["reply"]}, "reply": {}}
    roles = {"clients": hosts[::2], "servers": hosts[1::2]}
    return Case(
        routed, EndpointModel.from_values({"classes": classes, "roles": roles}, name), LINE_FLOWS
    )
