"""The time that it takes to compute repairs of large fabrics.

Links of the fabric fail, one in each repair. ``repair_s`` is the time for the repaired plan alone:
the paths through the link move, within the existing virtual channels. ``steps_s`` is the time for
all that a controller computes if nothing was planned ahead: also rules, proven steps, and what each
switch has to add and delete. Nothing is sent to switches; see :mod:`bench.repair` for that.
"""

from __future__ import annotations

import random
import statistics
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import click

from bench.support.entry import about, as_stored, machine_line, run_benchmark, table_option
from knotless.controller.config import Config
from knotless.controller.desired import DesiredState
from knotless.controller.updates.planning import Goal, UpdateTask, plan_update
from knotless.forwarding.openflow.reader import Generation
from knotless.routing.repair import repair
from knotless.topologies import load
from knotless.topologies.failures import Failures

CASES = (
    ("torus,10,10", "dor", 2),
    ("torus,32,32", "dor", 2),
    ("fattree3,32", "fattree", 1),
    ("random,1000,degree=4,seed=1", "updown", 1),
)
"""Fabric, engine and virtual channels."""


def measure(spec: str, engine: str, vcs: int, cuts: int, seed: int) -> dict[str, Any]:
    """Repair the plan of a fabric for this many links, and return the figures."""
    fabric = load(spec)
    config = Config.model_validate({"fabric": spec, "engine": engine, "vcs": vcs})
    desired = DesiredState.compute(config, fabric)
    held = Generation(desired.rules, desired.routed.host_tags())
    dice = random.Random(seed)  # noqa: S311 - repeatable, not secret
    repairs_s, steps_s, kinds, tiers = list[float](), list[float](), Counter[str](), Counter[str]()
    for link in dice.sample(fabric.links, cuts):
        failures = Failures.from_names(fabric, [link.name])
        began = time.perf_counter()
        repair(desired.plan, failures)
        repairs_s.append(time.perf_counter() - began)
        task = UpdateTask(
            Goal(desired, failures), held, (), desired.plan.flow_control, desired.routed
        )
        began = time.perf_counter()
        update = plan_update(task)
        steps_s.append(time.perf_counter() - began)
        kinds[update.kind] += 1
        tiers[str(update.change.tier)] += 1
    return {
        "fabric": spec,
        "engine": engine,
        "vcs": vcs,
        "switches": len(fabric.switches),
        "hosts": len(fabric.hosts),
        "links": len(fabric.links),
        "cuts": cuts,
        "kinds": dict(kinds),
        "tiers": dict(tiers),
        "repair_s": spread(repairs_s),
        "steps_s": spread(steps_s),
    }


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Return median and maximum."""
    return {"median": round(statistics.median(seconds), 3), "max": round(max(seconds), 3)}


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the table in docs/performance.md."""
    lines = [
        "| fabric | engine | switches | hosts | links cut | repaired plan, median | longest"
        " | with proven steps, median | longest |",
        "|" + "---|" * 9,
    ]
    for row in run["rows"]:
        repairs, steps = row["repair_s"], row["steps_s"]
        lines.append(
            f"| `{row['fabric']}` | {row['engine']} | {row['switches']:,} | {row['hosts']:,}"
            f" | {row['cuts']} | {repairs['median']:.3f} s | {repairs['max']:.3f} s"
            f" | {steps['median']:.2f} s | {steps['max']:.2f} s |"
        )
    return [*lines, "", machine_line(run)]


@click.command()
@click.option("--only", multiple=True, metavar="TEXT", help="Fabrics with TEXT in their spec.")
@click.option("--cuts", type=click.IntRange(1, 100), default=3, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@table_option(table_of)
def main(only: tuple[str, ...], cuts: int, seed: int, as_json: bool) -> None:
    """Time the computation of repairs.

    Example: python -m bench.large_repairs --only torus
    """
    begun, rows = about(), []
    for spec, engine, vcs in CASES:
        if not only or any(part in spec for part in only):
            click.echo(f"{spec}, {engine}", err=True)
            rows.append(measure(spec, engine, vcs, cuts, seed))
    click.echo(
        as_stored(begun, rows=rows) if as_json else "\n".join(table_of({**begun, "rows": rows}))
    )


if __name__ == "__main__":
    run_benchmark(main)
