"""Coverage of fast failover on ten fabrics.

For every link and every switch that fails, (pair of hosts, failure) combinations are counted whose
path uses the failed part although the pair is still connected; and those of them that backups
deliver. Rules are those of all switches, without and with backups.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import click

from bench.support.entry import about, as_stored, machine_line, run_benchmark, table_option
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.verification.checked_plan import CheckedPlan

FABRICS = (
    "ring,4",
    "mesh,4,4,hosts=2",
    "torus,4,4,hosts=4",
    "torus,6,6",
    "fattree,2,4,2",
    "fattree3,4",
    "lsft,3",
    "irregular-a",
    "irregular-b",
    "random,24,degree=4,hosts=2,seed=1",
)


def measure(spec: str, flow_control: str) -> dict[str, Any]:
    """Return the figures of a fabric with its default engine."""
    fabric = load(spec)
    plain = CheckedPlan(make_plan(fabric, flow_control=flow_control))
    plan = make_plan(fabric, flow_control=flow_control, protection="fast-failover")
    protected = CheckedPlan(plan)
    began = time.perf_counter()
    backups = protected.rules.total
    chosen_s = time.perf_counter() - began
    coverage = protected.coverage
    proven_s = time.perf_counter() - began - chosen_s
    if coverage is None or not coverage.acyclic:
        raise AssertionError(f"{spec}: a failure can deadlock")
    return {
        "fabric": spec,
        "engine": plan.engine,
        "flow_control": plan.flow_control,
        "failures": len(coverage.failures),
        "affected": coverage.affected,
        "coverage": coverage.share,
        "rules": plain.rules.total,
        "rules_with_backups": backups,
        "groups": protected.rules.groups - plain.rules.groups,
        "choice_s": chosen_s,
        "proof_s": proven_s,
    }


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the table in docs/failures.md."""
    lines = [
        "| fabric | engine | flow control | failures | affected | protected | rules | with backups"
        " | groups | choice | proof |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in run["rows"]:
        lines.append(
            f"| `{row['fabric']}` | {row['engine']} | {row['flow_control']} | {row['failures']}"
            f" | {row['affected']} | {100 * row['coverage']:.1f} % | {row['rules']}"
            f" | {row['rules_with_backups']} | {row['groups']} | {row['choice_s']:.1f} s"
            f" | {row['proof_s']:.1f} s |"
        )
    return [*lines, "", machine_line(run)]


@click.command()
@click.argument("specs", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@table_option(table_of)
def main(specs: tuple[str, ...], as_json: bool) -> None:
    """Measure SPECS, by default ten fabrics, under their own flow control and under PFC.

    Example: python -m bench.failover --json > docs/benchmarks/failover.json
    """
    begun = about()
    rows = [
        measure(spec, flow_control) for flow_control in ("auto", "pfc") for spec in specs or FABRICS
    ]
    click.echo(
        as_stored(begun, rows=rows) if as_json else "\n".join(table_of({**begun, "rows": rows}))
    )


if __name__ == "__main__":
    run_benchmark(main)
