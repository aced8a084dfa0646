"""Random small fabrics and end points, and overloads of them in simulation.

``python -m tests.support.endpoint_overloads --json`` counts what 1,000 overloads of those called
safe do, and overloads of the others.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, pairwise
from typing import Any

import click

from bench.support.entry import Run, benchmark, run_benchmark
from knotless.base.flow_control import FlowControl
from knotless.cli.numbers import Whole
from knotless.routing.plan import Plan, make_plan
from knotless.routing.request import PlanRequest
from knotless.simulation import Buffers, Scenario, simulate
from knotless.simulation.traffic import Load
from knotless.traffic.endpoints import EndpointModel
from knotless.verification.checked_plan import CheckedPlan
from knotless.verification.endpoint_verdict import EndpointVerdict
from knotless.verification.endpoint_waits import EndpointWaits
from tests.support.random_fabrics import seeded, small_fabric

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


def overloads_until_freeze(answering: Answering, most: int) -> tuple[int, bool]:
    """Overload hosts until they freeze; return how often, and whether they did.

    Each knot is a cycle of the waits.
    """
    waits = EndpointWaits(answering.checked.state, answering.model, answering.control)
    steps = {(waits.name_of(a), waits.name_of(b)) for a, b in waits.edges.tolist()}
    for seed in range(most):
        if knot := answering.knot(seed):
            assert {*pairwise([*knot, knot[0]])} <= steps, (answering.values, knot)
            return seed + 1, True
    return most, False


def overloads(fabrics: int, of_safe: int, each: int) -> Counter[str]:
    """Overload so many fabrics, and until there are so many overloads of those called safe.

    Each fabric has ``each`` overloads, or those until it freezes. Of those that are safe only by
    their reserve, the same are made with one place less for each sender.
    """
    counts = Counter[str]()
    for number in count():
        if number >= fabrics and counts["overloads of safe"] >= of_safe:
            return counts
        ((_, rng),) = seeded([number])
        answering = random_answering(rng)
        kind = "safe" if answering.verdict.safe else "unsafe"
        assert kind == "safe" or answering.verdict.through_hosts
        made, frozen = overloads_until_freeze(answering, each)
        assert kind == "unsafe" or not frozen, (answering.plan.fabric, answering.values)
        counts.update({kind: 1, f"overloads of {kind}": made, f"{kind}, froze": frozen})
        if kind == "safe" and answering.reserve and not answering.with_reserve(0).verdict.safe:
            less = answering.with_reserve(answering.reserve - 1)
            assert not less.verdict.safe
            made, frozen = overloads_until_freeze(less, each)
            counts.update({"by reserve": 1, "overloads of less": made, "less, froze": frozen})
    raise AssertionError


def table_of(run: Mapping[str, Any]) -> Sequence[str]:
    """Return the table of a stored run."""
    counts = run["counts"]
    rows = (
        ("called safe", "safe", "overloads of safe", "safe, froze"),
        ("called unsafe", "unsafe", "overloads of unsafe", "unsafe, froze"),
        (
            "safe only by a reserve, with a place less for each sender",
            "by reserve",
            "overloads of less",
            "less, froze",
        ),
    )
    return [
        "| end points | fabrics | overloads | fabrics that froze |",
        "|---|---|---|---|",
        *(f"| {name} | {' | '.join(f'{counts[key]:,}' for key in keys)} |" for name, *keys in rows),
    ]


@benchmark(table_of)
@click.option("--overloads", "of_safe", type=Whole(1), default=1000, show_default=True)
@click.option("--fabrics", type=Whole(1), default=200, show_default=True)
@click.option("--each", type=Whole(1), default=10, show_default=True)
def main(run: Run, of_safe: int, fabrics: int, each: int) -> None:
    """Overload random fabrics and end points; fail if one that is called safe freezes.

    Example: python -m tests.support.endpoint_overloads --json
    """
    counts = overloads(fabrics, of_safe, each)
    run.more(each=each, counts=dict(sorted(counts.items())))


if __name__ == "__main__":
    run_benchmark(main)
