"""The verdicts on failures of a fabric whose routes one of our engines recomputes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from knotless.base.errors import PlanError
from knotless.routing.graphs.channels import channels_of
from knotless.routing.plan import Plan, make_plan
from knotless.routing.plan_of_parts import new_plan
from knotless.routing.request import PlanRequest
from knotless.topologies.fabric import Fabric
from knotless.topologies.failures import host_parts
from knotless.verification.checked_plan import CheckedPlan
from knotless.verification.failures import (
    MOST_SETS,
    Certificate,
    Failure,
    FailureVerdict,
    sets_of,
    single_failures,
)


def engine_failures(
    fabric: Fabric, request: PlanRequest, most: int, seed: int, limit: int = MOST_SETS
) -> tuple[Certificate, Iterable[Failure], Callable[[Failure], FailureVerdict]]:
    """Return an empty certificate, the failures to evaluate, and how one is evaluated.

    The routes of the parts that are left are planned as the controller does: by the same engine,
    or by ``updown`` where it cannot route them.

    Raises
    ------
    PlanError
        The engine does not exist, or cannot route the intact fabric.

    """
    plan = make_plan(fabric, request)
    singles = single_failures(fabric, channels_of(fabric))
    total, planned, failures = sets_of(singles, most, seed, limit)
    intact = _verdict(plan, ())
    made = Certificate(f"engine {plan.engine}", most, total, planned, seed, limit, intact)
    return made, failures, lambda failure: _evaluate(plan, failure)


def _evaluate(plan: Plan, failure: Failure) -> FailureVerdict:
    try:
        _, now = new_plan(plan, failure.of(plan.fabric), plan.flow_control)
        return _verdict(now, failure.names)
    except PlanError:
        return FailureVerdict(failure.names, None, [], 0)


def _verdict(plan: Plan, failed: tuple[str, ...]) -> FailureVerdict:
    found = CheckedPlan(plan).verdict
    of_host = host_parts(plan.fabric, plan.failures)
    dead = set(plan.failures.switches)
    parts = [
        part
        for part, host in zip(of_host, plan.fabric.hosts, strict=True)
        if host.switch not in dead
    ]
    apart = len(parts) ** 2 - sum(count**2 for count in Counter(parts).values())
    undelivered = found.undelivered + apart
    return FailureVerdict(failed, found.acyclic, found.cycle, undelivered, found.witnesses)
