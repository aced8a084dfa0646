"""Figures of a plan, from its compiled rules."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from knotless.experiments.framework.experiment import ANALYSIS
from knotless.experiments.framework.routed import Measured, in_simulation
from knotless.experiments.studies.paths.cases import Case
from knotless.verification.checked_plan import CheckedPlan

SAMPLE_TYPES = {"row": "int32", "switch": "string", "rules": "int32"}
"""Columns of samples.parquet: one sample per switch of each row."""


@dataclass(frozen=True)
class Row:
    """Figures of the rules of a plan.

    ``mean_switches`` and ``max_switches`` are over the paths of all ordered pairs of hosts; a
    host to itself counts as one switch. ``max_channel_load`` is the largest number of paths on a
    channel between switches. ``minimal``: all paths are shortest paths. ``undelivered`` counts
    pairs whose frames do not arrive as they should. ``cycle`` is a cycle of channel dependencies
    under PFC.
    """

    on: str
    fabric: str
    engine: str
    vcs: int
    select: str
    routes: str
    vlan_assignment: str
    repeat: int
    hosts: int
    switches: int
    links: int
    vlans: int
    mean_switches: float
    max_switches: int
    max_channel_load: int
    rules_max_switch: int
    minimal: bool
    acyclic: bool
    cycle: list[str]
    undelivered: int


def analysed(case: Case) -> Measured:
    """Trace the rules of a case."""
    plan, routed = case.routed.plan, case.routed
    checked = CheckedPlan(plan)
    verdict = checked.rules_verdict
    counts = {name: len(of_switch.rules) for name, of_switch in checked.rules.items()}
    row = Row(
        on=ANALYSIS,
        fabric=routed.name,
        engine=plan.engine,
        vcs=plan.vcs,
        select=routed.request.select,
        routes=routed.routes,
        vlan_assignment=routed.request.vlans,
        repeat=case.repeat,
        hosts=len(plan.fabric.hosts),
        switches=len(plan.fabric.switches),
        links=len(plan.fabric.links),
        vlans=plan.vlan_count,
        mean_switches=round(verdict.mean_switches, 6),
        max_switches=verdict.max_switches,
        max_channel_load=int(verdict.max_channel_load),
        rules_max_switch=max(counts.values()),
        minimal=checked.is_minimal,
        acyclic=verdict.acyclic,
        cycle=verdict.cycle,
        undelivered=verdict.undelivered,
    )
    return in_simulation(asdict(row)), [{"switch": name, "rules": n} for name, n in counts.items()]
