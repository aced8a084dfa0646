"""Time and memory of planning, compiling and checking large fabrics.

Each case runs in its own process, so that peak memory is measured per case. Times are wall-clock
seconds of one run, for: loading the fabric; routes and VLANs; the forwarding state and its verdict;
compilation to OpenFlow; reading those rules back, and their verdict. The last three cases check
1,024 switches that hold no rules, half of the rules, or rules of two engines.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from bench.support.entry import (
    Run,
    benchmark,
    case_option,
    in_its_own_process,
    machine_line,
    run_benchmark,
)
from knotless.forwarding.openflow.rules import FabricRules
from knotless.routing.plan import Plan, make_plan
from knotless.topologies import load
from knotless.verification.check import check
from knotless.verification.checked_plan import CheckedPlan


@dataclass(frozen=True)
class Case:
    """One row. ``rules``, ``seconds`` and ``gb`` are targets.

    ``rules`` is for the switch with the most rules; ``seconds`` and ``gb`` are for the whole case,
    with dfsssp for planning and compiling only.
    """

    spec: str
    engine: str
    rules: int | None = None
    seconds: float | None = None
    gb: float | None = None
    damage: str | None = None


CASES = (
    Case("torus,16,16,hosts=4", "dor", rules=100),
    Case("random,128,degree=4,hosts=4", "dl", rules=180),
    Case("lsft,17", "lsft", rules=400),
    Case("torus,8,8,8", "dfsssp", seconds=2.0),
    Case("fattree3,32", "fattree", rules=200),
    Case("torus,16,16,16", "dor", rules=160, seconds=20.0, gb=3.0),
    Case("fattree3,48", "fattree", seconds=60.0, gb=6.0),
    Case("torus,32,32,10", "dor", seconds=180.0, gb=6.0),
    Case("mesh,32,32", "dor", seconds=10.0, damage="no rules"),
    Case("mesh,32,32", "dor", seconds=10.0, damage="half of the switches"),
    Case("mesh,32,32", "dor", seconds=10.0, damage="rules of two engines"),
)


def damaged(plan: Plan, rules: FabricRules, damage: str) -> FabricRules:
    """Return ``rules`` with the damage."""
    if damage == "no rules":
        return {}
    if damage == "half of the switches":
        return {name: rules[name] for place, name in enumerate(rules) if place % 2}
    others = CheckedPlan(make_plan(plan.fabric, "updown")).rules
    return {name: (rules, others)[place % 2][name] for place, name in enumerate(rules)}


def measure(case: Case) -> dict[str, Any]:
    """Run one case in this process, and return its figures."""
    marks = [time.perf_counter()]

    def mark() -> None:
        marks.append(time.perf_counter())

    fabric = load(case.spec)
    mark()
    plan = make_plan(fabric, case.engine)
    mark()
    checked = CheckedPlan(plan)
    verdict = checked.verdict
    mark()
    rules = checked.rules
    mark()
    if case.damage is None:
        read = checked.rules_verdict
    else:
        left = damaged(plan, rules, case.damage)
        mark()
        read = check(fabric, left)
    mark()
    took = [round(b - a, 2) for a, b in pairwise(marks)]
    stages = ["load_s", "routes_s", "state_s", "compile_s", "check_s"]
    if case.damage is not None:
        stages[-1:] = ["damage_s", "check_s"]
    return {
        "fabric": case.spec,
        "engine": case.engine,
        "damage": case.damage,
        "hosts": len(fabric.hosts),
        "switches": len(fabric.switches),
        **dict(zip(stages, took, strict=True)),
        "total_s": round(marks[-1] - marks[0], 2),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
        "vcs": plan.vcs,
        "vlans": plan.vlan_count,
        "rules": rules.total,
        "rules_max_switch": int(rules.counts.max()),
        "flow_control": read.flow_control,
        "acyclic": read.acyclic,
        "undelivered": read.undelivered + read.broadcasts_undelivered,
        "problems": len(read.problems),
        "agrees": case.damage is not None or asdict(read) == asdict(verdict),
        "targets": {"rules": case.rules, "seconds": case.seconds, "gb": case.gb},
    }


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the table in docs/performance.md, of the cases without damage."""
    return [
        "| fabric, engine | switches | hosts | routes | state | compile | check | GB"
        " | rules, largest switch |",
        "|---" * 9 + "|",
        *(
            "| {fabric}, {engine} | {switches:,} | {hosts:,} | {routes_s:g} | {state_s:g}"
            " | {compile_s:g} | {check_s:g} | {peak_gb:g} | {rules_max_switch} |".format(**row)
            for row in run["rows"]
            if row["damage"] is None
        ),
        "",
        " ".join([*_aims(run["rows"]), machine_line(run)]),
    ]


def _aims(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each case of dfsssp, whose aim is for planning and compiling."""
    for row in rows:
        if row["engine"] == "dfsssp":
            planned_s = row["routes_s"] + row["state_s"] + row["compile_s"]
            yield (
                f"`{row['fabric']}` with `dfsssp` takes {planned_s:.1f} s for routes, state and"
                f" rules (aim: {row['targets']['seconds']:g} s), and {row['vlans']} VLANs."
            )


@benchmark(table_of)
@case_option(lambda number: measure(CASES[number]))
def main(run: Run) -> None:
    """Measure planning, compiling and checking of large fabrics (takes minutes).

    Example: python -m bench.plan --json; python -m bench.plan --table docs/benchmarks/plan.json
    """
    for number in range(len(CASES)):
        run.add(in_its_own_process("bench.plan", number, 3600))


if __name__ == "__main__":
    run_benchmark(main)
