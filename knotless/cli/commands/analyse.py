"""``knotless analyse``: path-level analysis of a traffic pattern on a plan."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click
import numpy as np

from knotless.base.counting import counted, number_text
from knotless.base.errors import PlanError
from knotless.base.files import write_whole
from knotless.base.printable import listed
from knotless.cli import complete
from knotless.cli.answer import (
    Answer,
    Figure,
    Group,
    Headline,
    Hint,
    Table,
    Tone,
    print_answer,
    written,
)
from knotless.cli.commands._plan_options import PLAN_OPTIONS, plan_options
from knotless.cli.commands._verdict_answer import engine_name
from knotless.cli.help import Command
from knotless.cli.numbers import Whole
from knotless.cli.options import (
    details_option,
    fabric_of,
    given_options,
    json_option,
    print_json,
    spec_argument,
)
from knotless.routing.plan import make_plan
from knotless.routing.request import PlanRequest
from knotless.traffic.analysis import analyse
from knotless.traffic.contention import Contention, Lines
from knotless.traffic.multipath import MultipathAnalysis, analyse_multipath
from knotless.traffic.patterns import pattern_named, patterns

_BUSIEST = 10
_HASHED = {
    "max_load": "flows on the busiest channel",
    "throughput_ratio": "throughput ratio",
    "fair_min_mbps": "least fair rate, Mbit/s",
    "fair_mean_mbps": "mean fair rate, Mbit/s",
}
"""What is measured for each seed: key -> title."""


@click.command(name="analyse", cls=Command)
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
    type=Whole(min=0),
    default=1,
    show_default=True,
    help="Seed of random patterns.",
)
@click.option(
    "--seeds",
    type=Whole(min=1, max=10_000),
    default=100,
    show_default=True,
    help="Seeds of the hash of --multipath ecmp and layers, from 0 on.",
)
@click.option("--plot", metavar="F.svg", help="Draw loads and fair rates (SVG, PNG or PDF).")
@click.option("--out", metavar="F.json", help="Write the load of every channel to this file.")
@details_option
@json_option
def command(
    spec: str,
    request: PlanRequest,
    pattern_name: str,
    seed: int,
    seeds: int,
    plot: str | None,
    out: str | None,
    details: bool,
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
    values: dict[str, Any]
    plan = make_plan(fabric, request)
    if plan.has_choices:
        if plot is not None:
            raise PlanError("--plot is for plans with one path for each pair; omit it")
        seeds_run = analyse_multipath(plan, pattern, seed, seeds)
        values = {
            "fabric": fabric.name,
            "engine": plan.engine,
            "multipath": plan.multipath,
            "pattern": pattern.name,
            **seeds_run.metrics(),
            "seconds": round(time.perf_counter() - began, 3),
        }
        _write(out, values, seeds_run)
        if as_json:
            print_json(values)
        else:
            print_answer(_multipath_answer(spec, values, seeds_run), details=details)
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
        answer = _answer(spec, values, loads, lines)
        remarks = [*written(figure=plot, loads=out)]
        hints = [*answer.hints, *([_drawing(spec)] if plot is None else [])]
        print_answer(replace(answer, remarks=remarks, hints=hints), details=details)


def _answer(spec: str, values: Mapping[str, Any], loads: Mapping[str, int], lines: Lines) -> Answer:
    between = dict([*loads.items()][: lines.switch_lines])
    most = max(values["max_channel_load"], values["max_host_load"])
    subject = f"{values['pattern']} on {values['fabric']} with {engine_name(values['engine'])}"
    if most > 1:
        headline = Headline(subject, f"{number_text(most)} flows share a channel", tone=Tone.OPEN)
    else:
        headline = Headline(subject, "no two flows share a channel")
    busiest = sorted(between, key=lambda name: -between[name])
    rate = max(host.rate_mbps for host in lines.plan.fabric.hosts)
    largest = values["max_channel_load"]
    full = [name for name in busiest if between[name] == largest]
    return Answer(
        headline,
        why=[f"{largest} flows each: {listed(full, _BUSIEST)}"] if largest > 1 else [],
        figures=[
            Figure("flows", values["flows"]),
            Figure("throughput ratio", values["throughput_ratio"], whole=1),
            Figure("between switches", largest, "flows on the busiest channel"),
            Figure("links of hosts", values["max_host_load"], "flows on the busiest"),
            Figure(
                "fair rate",
                values["fair_mean_mbps"],
                "Mbit/s",
                whole=rate,
                where="on average",
                also=(values["fair_min_mbps"] or 0, "the least"),
            ),
        ],
        hints=[_hint(spec)],
        details=[
            Group("analysis", values),
            Group("flows on the busiest channels", {n: between[n] for n in busiest[:_BUSIEST]}),
        ],
    )


def _drawing(spec: str) -> Hint:
    given = [spec, *given_options(*PLAN_OPTIONS, "pattern_name", "seed")]
    return Hint("draw loads and rates", ["knotless", "analyse", *given, "--plot", "loads.svg"])


def _hint(spec: str) -> Hint:
    given = [spec, *given_options(*PLAN_OPTIONS), *given_options("pattern_name", "seed")]
    return Hint("simulate its packets", ["knotless", "simulate", *given])


def _multipath_answer(spec: str, values: Mapping[str, Any], seeds_run: MultipathAnalysis) -> Answer:
    kind, engine = values["multipath"], engine_name(values["engine"])
    chosen = engine if engine == kind else f"{engine}, {kind}"
    subject = f"{values['pattern']} on {values['fabric']} with {chosen}"
    cases = [*seeds_run.loads]
    if "seeds" in values:
        usual, worst = values["hashed_max_load_p50"], values["hashed_max_load_worst"]
        word = counted(usual, "flows on the busiest channel")
        rest = f"with the median seed of the hash, {number_text(worst)} with the worst"
    else:
        word = counted(values[f"{cases[0]}_max_load"], "flows on the busiest channel")
        rest = "if choices carry equal shares"
        if len(cases) > 1:  # of what routing may do, such as no detours, or only detours
            worst = max(values[f"{case}_max_load"] for case in cases)
            rest = f"in the case {cases[0]}, {number_text(worst)} in the worst case"
    rows = [
        [title, *(values[f"hashed_{key}_{which}"] for which in ("p50", "p99", "worst"))]
        for key, title in _HASHED.items()
        if f"hashed_{key}_p50" in values
    ]
    return Answer(
        Headline(subject, word, rest, Tone.OPEN),
        figures=[
            Figure("flows", values["flows"]),
            *(
                Figure(f"{case} load", values[f"{case}_max_load"], "on the busiest channel")
                for case in cases
            ),
            *(
                Figure(f"{case} rate", values[f"{case}_fair_mbps"], "Mbit/s for each flow")
                for case in cases
            ),
        ],
        tables=[
            Table(f"of {values['seeds']} seeds of the hash", ["", "median", "p99", "worst"], rows)
        ]
        if rows
        else [],
        hints=[_hint(spec)],
        details=[Group("analysis", values)],
    )


def _write(out: str | None, values: Mapping[str, object], seeds_run: MultipathAnalysis) -> None:
    if out is not None:
        loads = seeds_run.default_loads.round(6).tolist()
        named = dict(zip(seeds_run.lines.names(), loads, strict=True))
        write_whole(out, json.dumps({**values, "loads": named}) + "\n")


def _channels_by_load(lines: Lines, contention: Contention) -> dict[int, int]:
    """Return the number of channels between switches for each load."""
    counts = np.bincount(contention.peaks[: lines.switch_lines]).tolist()
    return {load: count for load, count in enumerate(counts) if count}
