"""Random small fabrics and end points, and overloads of them in simulation."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

from knotless.base.flow_control import FlowControl
from knotless.routing.plan import Plan, make_plan
from knotless.routing.request import PlanRequest
from knotless.simulation import Buffers, Scenario, simulate
from knotless.simulation.traffic import Load
from knotless.traffic.endpoints import EndpointModel
from knotless.verification.checked_plan import CheckedPlan
from knotless.verification.endpoint_verdict import EndpointVerdict
from tests.support.random_fabrics import small_fabric

ONE_PACKET = Buffers(xoff=1_000, xon=500)
"""A packet pauses its sender, so that every cycle that can close closes soon."""
DURATION_US = 400_000.0


@dataclass(frozen=True)
class Answering:
    """A plan, the message classes of its hosts, and their values."""

    plan: Plan
    values: dict[str, dict[str, Any]]
    control: FlowControl

    @property
    def model(self) -> EndpointModel:
        """The message classes."""
        return EndpointModel.from_values({"classes": self.values}, "random")

    @property
    def checked(self) -> CheckedPlan:
        """The plan with these hosts."""
        return CheckedPlan(self.plan, endpoints=self.model)

    @property
    def verdict(self) -> EndpointVerdict:
        """The verdict on the plan with these hosts."""
        verdict = self.checked.endpoint_verdict
        assert verdict is not None
        return verdict

    def with_reserve(self, reserve_per_host: int) -> Answering:
        """Return the same with another reserve for each sender."""
        request = {**self.values["request"], "reserve_per_host": reserve_per_host}
        return replace(self, values={**self.values, "request": request})

    @property
    def reserve(self) -> int:
        """The reserve of a host for each sender."""
        return int(self.values["request"].get("reserve_per_host", 0))

    def knot(self, seed: int) -> list[str]:
        """Return the channels that freeze while hosts send more than their lines carry, if any."""
        result = simulate(
            Scenario(
                self.plan,
                "uniform",
                Load("poisson", 1.0),
                flow_control=self.control,
                buffers=ONE_PACKET,
                duration_us=DURATION_US,
                take_turns=True,
                seed=seed,
                messages=self.model,
            )
        )
        assert not result.report.flow_lost.sum()
        assert result.report.flow_packets.sum() > 0
        return result.knot


def random_answering(rng: random.Random) -> Answering:
    """Return a random fabric without a cycle of its own, and random hosts."""
    fabric = small_fabric(rng, most_switches=5, most_hosts=5)
    control = rng.choice([FlowControl.PAUSE, FlowControl.PAUSE, FlowControl.PFC])
    plan = make_plan(fabric, PlanRequest.from_options(engine="updown", flow_control=control.value))
    request: dict[str, Any] = {"sends_before_taking": ["reply"]}
    if rng.random() < 0.5:
        request["outstanding"] = rng.choice([1, 2, 4])
        request["reserve_per_host"] = request["outstanding"]
    elif rng.random() < 0.3:
        request["reserve"] = rng.choice([1, 5])
    reply = {"priority": rng.choice([0, 0, 1])}
    return Answering(plan, {"request": request, "reply": reply}, control)
