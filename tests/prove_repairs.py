"""``python -m tests.prove_repairs [ENGINE ...]``: repairs of every engine's plans.

Each plan of a generated fabric is repaired for every single link, and for some double failures
and switches; then for every single link of a few well-known fabrics. Every repaired plan is
compiled, and its rules are read back and checked. The test draws a few cases of the same kind.
The table of docs/decisions/repair.md is of ``--cases 200 --json``, stored in
docs/benchmarks/repairs.json.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import click
import numpy as np
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from bench.support.entry import about, as_stored, run_benchmark, table_option
from bench.support.repair_tables import table_of_proofs
from knotless.base.errors import PlanError
from knotless.base.flow_control import FlowControl
from knotless.routing.plan import make_plan
from knotless.routing.plan_of_parts import new_plan, path_changes
from knotless.routing.vlans.assignment import ASSIGNMENTS
from knotless.topologies import load
from knotless.verification.checked_plan import CheckedPlan
from tests.property.test_every_engine import PROMISES, Promise
from tests.property.test_repair import repairs_hold
from tests.support.repairs import Outcome, check_repair, single_links

KNOWN = [
    "mesh,4,4,hosts=2",
    "torus,4,4,hosts=4",
    "torus,6,6",
    "irregular-a",
    "random,32,degree=4,hosts=2",
    "fattree3,4",
    "fattree,2,4,2",
    "lsft,3",
]


class Figures:
    """Sums over repairs."""

    def __init__(self) -> None:
        """Start without any."""
        self.kinds: Counter[str] = Counter()
        self.moved: list[float] = []
        self.stretch: list[float] = []
        self.rules: list[float] = []
        self.moved_by_new_plan: list[float] = []
        self.times_ms: list[float] = []

    def add(self, outcome: Outcome, moved_by_new_plan: int | None = None) -> None:
        """Add one repair, and how many pairs a new plan in its place would move."""
        repair = outcome.repair
        pairs = max(1, len(repair.plan.fabric.hosts) * (len(repair.plan.fabric.hosts) - 1))
        self.kinds[repair.kind] += 1
        self.moved.append(repair.moved / pairs)
        if moved_by_new_plan is not None:
            self.moved_by_new_plan.append(moved_by_new_plan / pairs)
        if repair.kind in ("repaired", "extended") and repair.moved:
            self.stretch.append(repair.mean_stretch)
        self.rules.append(outcome.rules_changed)
        self.times_ms.append(repair.plan.routing_ms)

    def as_json(self) -> dict[str, Any]:
        """Return the number of repairs of each kind, and means of all of them."""
        means = {
            "moved": self.moved,
            "moved_by_new_plan": self.moved_by_new_plan,
            "stretch": self.stretch,
            "rules_changed_per_switch": self.rules,
        }
        return {
            "kinds": dict(sorted(self.kinds.items())),
            **{name: float(np.mean(values)) if values else None for name, values in means.items()},
        }

    def text(self) -> str:
        """Return one line."""
        total = self.kinds.total()
        if not total:
            return "none"
        kinds = ", ".join(f"{name} {count}" for name, count in sorted(self.kinds.items()))
        new = self.moved_by_new_plan
        by_new_plan = f" (by a new plan {np.mean(new):.1%})" if new else ""
        return (
            f"{total} repairs ({kinds}): pairs moved {np.mean(self.moved):.1%}{by_new_plan},"
            f" stretch of moved paths {np.mean(self.stretch or [1]):.2f}, rules changed per switch"
            f" {np.mean(self.rules):.1f}, {np.mean(self.times_ms):.1f} ms"
        )


def generated(promise: Promise, wanted: int) -> dict[str, Figures]:
    """Check ``wanted`` repairs or more on generated fabrics; return the figures by VLANs."""
    figures: dict[str, Figures] = {assignment: Figures() for assignment in ASSIGNMENTS}
    number = 0
    while sum(counted.kinds.total() for counted in figures.values()) < wanted:
        number += 1

        @seed(number)
        @settings(
            max_examples=20,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(data=st.data())
        def draw(data: st.DataObject) -> None:
            for outcome in repairs_hold(promise, data, None):
                figures[outcome.repair.plan.request.vlans].add(outcome)

        draw()
    return figures


def known_fabric(engine: str, spec: str, in_total: Figures) -> Figures:
    """Check the repair of every single link of a fabric, if the engine can route it.

    The repairs are added to those ``in_total`` too.
    """
    figures = Figures()
    fabric = load(spec)
    try:
        intact = CheckedPlan(make_plan(fabric, engine))
    except PlanError:
        return figures
    promise = FlowControl.NONE if intact.cycle else intact.plan.flow_control
    for failures in single_links(fabric):
        outcome = check_repair(intact, failures)
        _, new = new_plan(intact.plan, failures, promise)
        pairs, _, after = path_changes(intact.plan, new)
        for total in (figures, in_total):
            total.add(outcome, int(pairs[after > 0].sum()))
    return figures


def of_engine(promise: Promise, wanted: int) -> dict[str, Any]:
    """Check the repairs of an engine; return its row of a stored run."""
    row: dict[str, Any] = {"engine": promise.engine}
    for assignment, figures in generated(promise, wanted).items():
        _say(f"{promise.engine}, generated fabrics, {assignment} VLANs: {figures.text()}")
        row[assignment] = figures.as_json()
    in_total = Figures()
    for spec in KNOWN:
        _say(f"{promise.engine}, {spec}: {known_fabric(promise.engine, spec, in_total).text()}")
    _say(f"{promise.engine}, all known fabrics: {in_total.text()}")
    return {**row, "known": in_total.as_json()}


@click.command()
@click.argument("engines", nargs=-1)
@click.option("--cases", default=500, show_default=True, type=click.IntRange(1))
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@table_option(table_of_proofs)
def main(engines: tuple[str, ...], cases: int, as_json: bool) -> None:
    """Check the ENGINES named, or all, on CASES repairs of generated fabrics or more.

    Example: python -m tests.prove_repairs --cases 200 --json > docs/benchmarks/repairs.json
    """
    begun = about()
    rows = [
        of_engine(promise, cases)
        for promise in PROMISES
        if not engines or promise.engine in engines
    ]
    if as_json:
        click.echo(as_stored(begun, cases=cases, known=KNOWN, rows=rows))


def _say(text: str) -> None:
    click.echo(text, err=True)


if __name__ == "__main__":
    run_benchmark(main)
