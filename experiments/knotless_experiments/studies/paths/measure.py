"""Figures of a plan, from its compiled rules."""

from __future__ import annotations

from knotless.verification.checked_plan import CheckedPlan
from knotless_experiments.framework.experiment import ANALYSIS
from knotless_experiments.framework.routed import Measured, in_simulation
from knotless_experiments.studies.paths.cases import Case
from knotless_experiments.studies.paths.columns import COLUMNS


def analysed(case: Case) -> Measured:
    """Trace the rules of a case."""
    plan, routed = case.routed.plan, case.routed
    checked = CheckedPlan(plan)
    verdict = checked.rules_verdict
    counts = {name: len(of_switch.rules) for name, of_switch in checked.rules.items()}
    row = COLUMNS.row(
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
    return in_simulation(row), [{"switch": name, "rules": n} for name, n in counts.items()]
