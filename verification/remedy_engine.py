"""A remedy that replaces all routes: those of one of our engines, in k priorities."""

from __future__ import annotations

from collections.abc import Iterator

from common.errors import PlanError
from routing.plan import make_plan
from routing.request import PlanRequest
from topologies.fabric import Fabric
from verification.check import verdict_of
from verification.checked_plan import CheckedPlan

ENGINES = ("updown", "dfsssp", "lash")
"""Engines that route any fabric; OpenSM has them as updn, dfsssp and lash."""
OPENSM = {"updown": "updn", "dfsssp": "dfsssp", "lash": "lash"}
MOST_HOSTS = 2_000
"""Larger fabrics are not planned for a remedy."""


def other_engines(fabric: Fabric, flow_control: str) -> Iterator[CheckedPlan]:
    """Yield the plans of engines whose routes are proven safe under a flow control."""
    if len(fabric.hosts) > MOST_HOSTS:
        return
    for engine in ENGINES:
        try:
            checked = CheckedPlan(make_plan(fabric, PlanRequest.of(engine=engine)))
            verdict = verdict_of(checked.state, flow_control)
        except PlanError:
            continue
        if verdict.good:
            yield checked


def opensm_options(engine: str, vcs: int) -> str:
    """Return options of OpenSM with which it routes by the same algorithm."""
    lines = [f"routing_engine {OPENSM[engine]}"]
    if vcs > 1:
        lines += ["qos TRUE", "lash_start_vl 0"] if engine == "lash" else ["qos TRUE"]
    return "\n".join(lines) + "\n"
