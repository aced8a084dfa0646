"""Whether cyclic plans freeze: generated plans, and the traffic that is found for them.

Fabrics are drawn with their engine until enough plans have a cycle of dependencies. With
``--emulate N`` the traffic of the first N plans that freeze is sent on emulated fabrics, and the
knot there is compared.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

import click

from bench.support.entry import about, as_stored, machine_line, run_benchmark, table_option
from knotless.routing.plan import Plan, make_plan
from knotless.routing.request import PlanRequest
from knotless.simulation.freezing import Freeze, find_freeze
from knotless.topologies import load
from knotless.verification.checked_plan import CheckedPlan

LIMIT_S = 60.0
_LOOK_EVERY_S = 0.1


def drawn(pick: random.Random) -> tuple[str, dict[str, Any]]:
    """Return a fabric and the choices of a plan that is likely to have a cycle."""
    width, height = pick.randint(3, 6), pick.randint(3, 6)
    hosts = pick.randint(1, 3)
    spec = pick.choice(
        [
            f"ring,{pick.randint(4, 12)},hosts={hosts}",
            f"mesh,{width},{height},hosts={hosts}",
            f"torus,{width},{height},hosts={hosts}",
            f"random,{2 * pick.randint(3, 12)},degree={pick.randint(3, 5)},hosts={hosts}"
            f",seed={pick.randrange(1000)}",
        ]
    )
    engine = "dor" if spec.startswith("torus") and pick.random() < 0.5 else "minimal"
    return spec, {"engine": engine, "vcs": 1, "select": pick.choice(["spread", "low-port"])}


def measure(plans: int, seed: int, emulate: int) -> list[dict[str, Any]]:
    """Return a row for each plan with a cycle."""
    pick = random.Random(seed)  # noqa: S311 - repeatable, not secret
    rows: list[dict[str, Any]] = []
    frozen: list[tuple[dict[str, Any], Plan, Freeze]] = []
    while len(rows) < plans:
        spec, choices = drawn(pick)
        plan = make_plan(load(spec), PlanRequest.from_options(**choices))
        checked = CheckedPlan(plan)
        if not checked.cycle:
            continue
        began = time.process_time()
        found = find_freeze(checked.state, plan.flow_control)
        row = {
            "fabric": spec,
            **choices,
            "freezes": found.freezes,
            "reason": found.reason,
            "tried": found.tried,
            "flows": len(found.flows),
            "after_us": found.after_us,
            "seconds": round(time.process_time() - began, 3),
            "knot": list(found.cycle),
            "emulated_knot": None,
        }
        if found.freezes:
            frozen.append((row, plan, found))
        rows.append(row)
        click.echo(f"{len(rows)}: {spec}: {found.lines[0]}", err=True)
    for row, plan, found in frozen[:emulate]:
        row["emulated_knot"] = knot_of_emulation(plan, found)
        click.echo(f"{row['fabric']}: {' -> '.join(row['emulated_knot'])}", err=True)
    return rows


def knot_of_emulation(plan: Plan, found: Freeze) -> list[str]:
    """Send the flows on an emulated fabric; return the cycle of its deadlock, empty without one."""
    from knotless.emulation import running_traffic
    from knotless.simulation.tracefile import Message
    from knotless_experiments.framework.routed import emulated

    index = plan.fabric.host_index
    messages = [
        Message(0.0, index[flow.source], index[flow.destination], flow.size_bytes)
        for flow in found.flows
    ]
    with emulated(plan, static_arp=True, allow_deadlock=True) as lab:
        running_traffic.start_messages(lab.names, plan.fabric, "freeze", messages)
        end_s = time.monotonic() + LIMIT_S
        while (deadlock := lab.daemon.deadlock()) is None and time.monotonic() < end_s:
            time.sleep(_LOOK_EVERY_S)
        return [] if deadlock is None else list(deadlock.cycle)


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the table in docs/does-it-freeze.md."""
    lines = [
        "| family | plans with a cycle | freeze | hosts close no cycle | undecided, hosts may close"
        " the cycle otherwise | undecided, nothing found | flows | sets tried, most |"
        " seconds, most |",
        "|" + "---|" * 9,
    ]
    families: dict[str, list[Mapping[str, Any]]] = {}
    for row in run["rows"]:
        families.setdefault(row["fabric"].partition(",")[0], []).append(row)
    for family, rows in sorted(families.items()):
        answers = Counter((row["freezes"], row["tried"] > 0) for row in rows)
        flows = [row["flows"] for row in rows if row["freezes"]] or [0]
        lines.append(
            f"| `{family}` | {len(rows)} | {answers[True, True]} | {answers[False, False]}"
            f" | {answers[None, False]} | {answers[None, True]} | {min(flows)} to {max(flows)}"
            f" | {max(row['tried'] for row in rows)} | {max(row['seconds'] for row in rows):.1f} |"
        )
    replayed = [row for row in run["rows"] if row["emulated_knot"] is not None]
    if replayed:
        equal = sum(row["emulated_knot"] == row["knot"] for row in replayed)
        lines += [
            "",
            f"Sent on emulated fabrics: {len(replayed)}, of which {equal} froze in the same knot.",
        ]
    return [*lines, "", machine_line(run)]


@click.command()
@click.option("--plans", type=click.IntRange(1, 10_000), default=200, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--emulate", type=click.IntRange(0, 1000), default=0, help="Send so many (root).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@table_option(table_of)
def main(plans: int, seed: int, emulate: int, as_json: bool) -> None:
    """Look for traffic that freezes generated plans whose dependencies are cyclic.

    Example: python -m bench.freezing --plans 50
    """
    begun = about()
    rows = measure(plans, seed, emulate)
    click.echo(
        as_stored(begun, rows=rows) if as_json else "\n".join(table_of({**begun, "rows": rows}))
    )


if __name__ == "__main__":
    run_benchmark(main)
