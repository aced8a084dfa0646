"""Lab 9: an engine of the student's for meshes, better than up*/down*."""

from __future__ import annotations

from collections.abc import Iterator

from knotless.lab_checks.lab import Lab, Work
from knotless.lab_checks.proofs import plan_with_engine, verdict_of_plan, wrong_verdict
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.verification.checked_plan import CheckedPlan

SPECS = ("mesh,4,4", "mesh,5,3", "mesh,2,6")
ENGINE = "my_engine.py"


def engine(work: Work) -> Iterator[str]:
    """The engine is safe, takes shortest paths, and loads no channel as much as up*/down*."""
    path, shown = work.path(ENGINE), work.shown(ENGINE)
    for spec in SPECS:
        fabric = load(spec)
        plan = plan_with_engine(path, fabric)
        yield from wrong_verdict(verdict_of_plan(plan), f"{shown} on {spec}")
        if not CheckedPlan(plan).summary()["minimal"]:
            yield f"{shown} on {spec}: some paths are not shortest paths"
        own, default = (
            verdict_of_plan(one).max_channel_load for one in (plan, make_plan(fabric, "updown"))
        )
        if own >= default and spec == SPECS[0]:
            yield (
                f"{shown} on {spec}: {own} paths share the most loaded channel, and with updown"
                f" {default}: yours must be fewer"
            )


LAB = Lab(9, "write-an-engine", (engine,))
