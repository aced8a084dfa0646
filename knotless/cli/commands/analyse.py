"""``knotless analyse``: path-level analysis of a traffic pattern on a plan."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

import click
import numpy as np

from knotless.base.errors import PlanError
from knotless.base.files import write_whole
from knotless.cli import complete
from knotless.cli.commands._plan_options import plan_options
from knotless.cli.options import (
    fabric_of,
    json_option,
    print_json,
    print_table,
    spec_argument,
)
from knotless.routing.plan import make_plan
from knotless.routing.request import PlanRequest
from knotless.traffic.analysis import analyse
from knotless.traffic.contention import Contention, Lines
from knotless.traffic.multipath import MultipathAnalysis, analyse_multipath
from knotless.traffic.patterns import pattern_named, patterns

_BUSIEST = 10


@click.command(name="analyse")
@spec_argument
@plan_options()
@click.option(
    "--pattern",
    "pattern_name",
    required=True,
    shell_complete=complete.patterns,
    help=f"Pattern: {', '.join(patterns())}, or shift:K.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Seed of random patterns.",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1, max=10_000),
    default=100,
    show_default=True,
    help="Seeds of the hash of --multipath ecmp and layers, from 0 on.",
)
@click.option("--plot", metavar="F.svg", help="Draw loads and fair rates (SVG, PNG or PDF).")
@click.option("--out", metavar="F.json", help="Write the load of every channel to this file.")
@json_option
def command(
    spec: str,
    request: PlanRequest,
    pattern_name: str,
    seed: int,
    seeds: int,
    plot: str | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Send a pattern's flows over the plan of SPEC and count how many share each channel.

    throughput_ratio is the mean of 1 / (flows on the most loaded channel of a flow's path), links
    to hosts included; 1 means no contention. max_channel_load is the largest number of
    simultaneous flows on a channel between switches. Fair rates are max-min fair, in Mbit/s.

    With --multipath or adaptive routing, loads and rates are those of flows that are split equally,
    and with ecmp and layers those of hashed flows: the median, the 99th percentile and the worst of
    many seeds of the hash, which are those of --hash-seed. With ugal, they are those of flows that
    all take their minimal path, that all go over intermediates, and half and half.

    Example: knotless analyse torus,4,4 --engine dor --pattern bit-reversal

    Example: knotless analyse lsft,3 --engine lsft --pattern shift --json

    Example: knotless analyse fattree2,4 --pattern permutation --multipath ecmp
    """
    pattern = pattern_named(pattern_name)
    fabric = fabric_of(spec)
    began = time.perf_counter()
    values: dict[str, object]
    plan = make_plan(fabric, request)
    if plan.has_choices:
        if plot is not None:
            raise PlanError("--plot is for plans with one path for each pair; omit it")
        found = analyse_multipath(plan, pattern, seed, seeds)
        values = {
            "fabric": fabric.name,
            "engine": plan.engine,
            "multipath": plan.multipath,
            "pattern": pattern.name,
            **found.metrics(),
            "seconds": round(time.perf_counter() - began, 3),
        }
        _show_multipath(values, found, out, as_json=as_json)
        return
    analysis = analyse(plan, pattern, seed)
    lines, contention = analysis.lines, analysis.contention
    values = {
        "fabric": fabric.name,
        "engine": plan.engine,
        "pattern": pattern.name,
        **analysis.metrics(),
        "seconds": round(time.perf_counter() - began, 3),
    }
    if plot is not None:
        from knotless.cli.histogram import draw_histogram  # Matplotlib takes a second to load

        title = f"{pattern.name} on {fabric.name}, {plan.engine}"
        draw_histogram(title, contention.peaks[: lines.switch_lines], analysis.rates, plot)
    loads = dict(zip(lines.names(), contention.peaks.tolist(), strict=True))
    if out is not None:
        write_whole(out, json.dumps({**values, "loads": loads}) + "\n")
    if as_json:
        print_json({**values, "channels_by_load": _channels_by_load(lines, contention)})
    else:
        busiest = sorted(list(loads)[: lines.switch_lines], key=lambda name: -loads[name])
        shown = [f"{name} ({loads[name]})" for name in busiest[:_BUSIEST] if loads[name] > 1]
        print_table(f"{pattern.name} on {fabric.name}", {**values, "busiest_channels": shown})


def _show_multipath(
    values: Mapping[str, object],
    found: MultipathAnalysis,
    out: str | None,
    *,
    as_json: bool,
) -> None:
    if out is not None:
        loads = found.default_loads.round(6).tolist()
        named = dict(zip(found.lines.names(), loads, strict=True))
        write_whole(out, json.dumps({**values, "loads": named}) + "\n")
    if as_json:
        print_json(values)
    else:
        print_table(f"{values['pattern']} on {values['fabric']}", values)


def _channels_by_load(lines: Lines, contention: Contention) -> dict[int, int]:
    """Return the number of channels between switches for each load."""
    counts = np.bincount(contention.peaks[: lines.switch_lines]).tolist()
    return {load: count for load, count in enumerate(counts) if count}
