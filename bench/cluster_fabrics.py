"""The engines on fabrics of clusters: virtual channels, hops, load and rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from bench.support.entry import about, as_stored, run_benchmark, table_option
from knotless.base.files import write_whole
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.verification.checked_plan import CheckedPlan

KIM = "Kim 2008"
SHPINER = "Shpiner 2017"
AHN = "Ahn 2009"
MCDONALD = "McDonald 2019"
BESTA = "Besta 2014"
LAKHOTIA = "Lakhotia 2022"


@dataclass(frozen=True)
class Case:
    """A fabric and an engine, and what the literature states for its family.

    vcs, hops : the virtual channels, and the most hops between switches; None: nothing is stated.
    source : author and year.
    """

    fabric: str
    engine: str
    vcs: int | None = None
    hops: int | None = None
    source: str = ""


CASES = (
    Case("dragonfly,a=4,h=2,p=2", "dragonfly", 2, 3, KIM),
    Case("dragonfly,a=4,h=2,p=2", "dragonfly-valiant", 3, 5, KIM),
    Case("dragonfly,a=4,h=2,p=2", "dl"),
    Case("dragonfly,a=4,h=2,p=2", "updown"),
    Case("dragonfly,a=8,h=4,p=4", "dragonfly", 2, 3, KIM),
    Case("dragonflyplus,l=4,s=4,h=2,p=4", "dragonflyplus", 1, 3, SHPINER),
    Case("dragonflyplus,l=4,s=4,h=2,p=4", "dragonflyplus-valiant", 2, 6, SHPINER),
    Case("dragonflyplus,l=4,s=4,h=2,p=4", "dl"),
    Case("dragonflyplus,l=4,s=4,h=2,p=4", "updown"),
    Case("hyperx,S=4x4x4", "hyperx", 1, 3, AHN),
    Case("hyperx,S=4x4x4", "dimwar", 2, 6, MCDONALD),
    Case("hyperx,S=4x4x4", "dl"),
    Case("hyperx,S=4x4x4", "updown"),
    Case("fullmesh,16", "hyperx", 1, 1, AHN),
    Case("fullmesh,16", "valiant"),
    Case("slimfly,5", "sbp", 2, 2, BESTA),
    Case("slimfly,5", "valiant", 4, 4, BESTA),
    Case("slimfly,5", "dl"),
    Case("slimfly,5", "updown"),
    Case("polarfly,7", "sbp", 2, 2, LAKHOTIA),
    Case("polarfly,7", "valiant", 4, 4, LAKHOTIA),
    Case("polarfly,7", "dl"),
    Case("polarfly,7", "updown"),
    Case("rail,32,8,8", "fattree"),
    Case("clos3,8,over=3", "fattree"),
    Case("cube,4x4x8", "dor"),
    Case("cube,4x4x8,twist", "cube"),
    Case("cube,4x4x8,twist", "dl"),
    Case("cube,4x4x8,twist", "updown"),
)


@dataclass(frozen=True)
class Row:
    """A plan. Hops are between switches, the mean over pairs of hosts on different switches."""

    fabric: str
    engine: str
    switches: int
    hosts: int
    vcs: int
    mean_hops: float
    max_hops: int
    max_channel_load: int
    load_bound: float
    rules_max_switch: int
    vlans: int
    acyclic: bool
    stated_vcs: int | None
    stated_hops: int | None
    source: str


def row_of(case: Case) -> Row:
    """Plan a case and check the plan's rules."""
    fabric = load(case.fabric)
    plan = make_plan(fabric, case.engine)
    checked = CheckedPlan(plan)
    summary = checked.summary()
    apart = len(fabric.hosts) ** 2 - int((plan.receivers.astype(int) ** 2).sum())
    return Row(
        case.fabric,
        case.engine,
        len(fabric.switches),
        len(fabric.hosts),
        plan.vcs,
        int(checked.loads.sum()) / apart,
        int((plan.routes.channels[:, plan.receivers > 0] >= 0).sum(axis=2).max()),
        int(checked.loads.max()),
        checked_number(summary["load_bound"]),
        int(checked_number(summary["rules_max_switch"])),
        plan.vlan_count,
        checked.verdict.acyclic is True,
        case.vcs,
        case.hops,
        case.source,
    )


def checked_number(value: object) -> float:
    """Return a number of a summary as a float."""
    assert isinstance(value, int | float)  # noqa: S101 - the summary's type is wider
    return float(value)


def rows(specs: Sequence[str]) -> Iterator[Row]:
    """Plan the cases of these fabrics, by default all."""
    for case in CASES:
        if not specs or case.fabric in specs:
            yield row_of(case)


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the table in docs/cluster-fabrics.md."""
    lines = [
        "| fabric | engine | VCs | stated | mean hops | most | stated | load | bound | rules |"
        " VLANs |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in run["rows"]:
        vcs, hops = (
            row[key] if row[key] is not None else "" for key in ("stated_vcs", "stated_hops")
        )
        stated = f"{vcs} ({row['source']})" if row["source"] else ""
        lines.append(
            f"| `{row['fabric']}` | `{row['engine']}` | {row['vcs']} | {stated} |"
            f" {row['mean_hops']:.2f} | {row['max_hops']} | {hops} |"
            f" {row['max_channel_load']:,} | {row['load_bound']:,.1f} |"
            f" {row['rules_max_switch']:,} | {row['vlans']:,} |"
        )
    return lines


@click.command(epilog="Example: .venv/bin/python -m bench.cluster_fabrics --only slimfly,5")
@click.option("--only", multiple=True, help="Plan these fabrics only.")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Store the run in this file."
)
@table_option(table_of)
def main(only: tuple[str, ...], out: Path | None) -> None:
    """Plan fabrics of clusters with their engines, and compare with what the literature states."""
    begun = about()
    run = as_stored(begun, rows=[asdict(row) for row in rows(only)])
    if out is not None:
        write_whole(out, f"{run}\n")
    else:
        click.echo(run)


if __name__ == "__main__":
    run_benchmark(main)
