"""``knotless schedule``: all-to-all schedules in phases."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import click
import numpy as np

from knotless.base.counting import number_text
from knotless.base.printable import json_text
from knotless.cli.answer import Answer, Figure, Group, Headline, Tone, print_answer
from knotless.cli.commands._plan_options import plan_options, without_option
from knotless.cli.commands._verdict_answer import engine_name
from knotless.cli.help import Command
from knotless.cli.numbers import Whole
from knotless.cli.options import details_option, fabric_of, json_option, spec_argument
from knotless.routing.graphs.channels import Ints
from knotless.routing.plan import make_plan
from knotless.routing.request import PlanRequest
from knotless.topologies.fabric import Fabric
from knotless.topologies.failures import without_links
from knotless.traffic.contention import Contention, Lines, contention
from knotless.traffic.schedules.latin_square import latin_square_of
from knotless.traffic.schedules.schedule import Schedule, ScheduleError, shift, triple, vector_table
from knotless.traffic.schedules.search import SearchResult, find_schedule, some_hosts


@click.command(name="schedule", cls=Command)
@spec_argument
@click.option(
    "--lattice",
    metavar="K,M",
    help="Only M hosts on each of the leaves P(c,r) with c < K, of an LSFT.",
)
@click.option("--shift", "as_shift", is_flag=True, help="Phase i: host S sends to S + i, mod N.")
@click.option("--hosts", metavar="LIST|COUNT", help="Only these hosts (h1,h5,..), or a number.")
@without_option
@click.option("--seed", type=Whole(min=0), default=1, show_default=True, help="Seed of the search.")
@plan_options()
@details_option
@json_option
def command(
    spec: str,
    lattice: str | None,
    as_shift: bool,
    hosts: str | None,
    without: tuple[str, ...],
    seed: int,
    request: PlanRequest,
    details: bool,
    as_json: bool,
) -> None:
    """Make an all-to-all schedule for the hosts of the fabric SPEC.

    A Latin-square fat-tree gets the contention-free schedule, any other fabric the shift. With
    --hosts or --without, a schedule with little contention is searched; a COUNT of hosts is spread
    over the switches. Destinations are indices into the list of hosts. throughput_ratio is the mean
    share of the line rate that a flow gets on the engine's routes; ratio_bound is its upper bound.

    Example: knotless schedule lsft,3 --lattice 2,2 --json

    Example: knotless schedule torus,4,4,hosts=2 --hosts 20 --json
    """
    whole = fabric_of(spec)
    fabric = without_links(whole, without)
    lines = Lines(make_plan(fabric, request))
    values: dict[str, object] = {"fabric": fabric.name, "engine": lines.plan.engine}
    if hosts is not None or without:
        if lattice is not None or as_shift:
            raise ScheduleError("--lattice and --shift exclude --hosts and --without")
        result = _search(whole, lines, hosts, seed)
        schedule, gets = result.schedule, result.contention
        bound = {"ratio_bound": result.ratio_bound}
    else:
        schedule = _named_schedule(fabric, lattice, as_shift)
        gets, bound = contention(lines, schedule.flows()), {}
    values |= {"kind": schedule.kind, **_figures(gets), **bound}
    if as_json:
        _print_phases(fabric, schedule, values)
        return
    count, best = len(schedule.hosts), bound.get("ratio_bound", 1.0)
    counts = {**values, "hosts": count, "phases": count}
    engine = engine_name(lines.plan.engine)
    subject = f"{schedule.kind} on {fabric.name} with {engine}"
    print_answer(_answer(subject, counts, count, gets, best), details=details)


def _answer(
    subject: str, values: Mapping[str, object], phases: int, gets: Contention, best: float
) -> Answer:
    if gets.max_channel_load > 1:
        word, tone = f"{number_text(gets.max_channel_load)} flows share a channel", Tone.OPEN
    else:
        word, tone = "no two flows of a phase share a channel", Tone.GOOD
    return Answer(
        Headline(subject, word, tone=tone),
        figures=[
            Figure("phases", phases),
            Figure("throughput ratio", gets.throughput_ratio, whole=best),
        ],
        details=[Group("schedule", values)],
    )


def _figures(gets: Contention) -> dict[str, object]:
    return {"throughput_ratio": gets.throughput_ratio, "max_channel_load": gets.max_channel_load}


def _named_schedule(fabric: Fabric, lattice: str | None, as_shift: bool) -> Schedule:
    if lattice is not None and as_shift:
        raise ScheduleError("--lattice and --shift exclude each other")
    square = latin_square_of(fabric)
    if lattice is not None:
        parts = lattice.split(",")
        if len(parts) != 2 or not all(p.isascii() and p.isdigit() and len(p) < 6 for p in parts):
            raise ScheduleError(f"--lattice must be two whole numbers K,M, not {lattice[:40]!r}")
        if square is None:
            raise ScheduleError(f"{fabric.name}: --lattice is for Latin-square fat-trees (lsft,N)")
        return vector_table(square, int(parts[0]), int(parts[1]))
    if as_shift or square is None:
        return shift(len(fabric.hosts))
    return triple(square)


def _search(whole: Fabric, lines: Lines, hosts: str | None, seed: int) -> SearchResult:
    """Search for a schedule; with all hosts, the intact fabric's own schedule is a start."""
    chosen = _chosen(whole, hosts)
    starts = []
    square = latin_square_of(whole)
    everybody = np.arange(len(whole.hosts), dtype=np.int32)
    if square is not None and square.hosts == square.order + 1 and set(chosen) == set(everybody):
        starts = [replace(triple(square), kind="triple")]
        chosen = everybody
    return find_schedule(lines, chosen, starts, seed)


def _chosen(fabric: Fabric, hosts: str | None) -> Ints:
    """Return the hosts that the user names or counts; by default all."""
    most = len(fabric.hosts)
    if hosts is None:
        return np.arange(most, dtype=np.int32)
    if hosts.isascii() and hosts.isdigit():
        if len(hosts) > 9 or not 1 <= int(hosts) <= most:
            raise ScheduleError(f"--hosts must be 1 to {most} on {fabric.name}, not {hosts[:20]}")
        return some_hosts(fabric, int(hosts))
    names = [name.strip() for name in hosts.split(",")]
    for name in names:
        if name not in fabric.host_index:
            raise ScheduleError(f"--hosts: {fabric.name} has no host {name[:40]!r}")
        if names.count(name) > 1:
            raise ScheduleError(f"--hosts names {name} twice")
    return np.array([fabric.host_index[name] for name in names], dtype=np.int32)


def _print_phases(fabric: Fabric, schedule: Schedule, values: dict[str, object]) -> None:
    """Print JSON phase by phase: 5,526 hosts have 30 million destinations."""
    hosts = [fabric.hosts[i].name for i in schedule.hosts.tolist()]
    click.echo(json_text({**values, "hosts": hosts})[:-1] + ', "phases": [', nl=False)
    for place, phase in enumerate(schedule.phases()):
        click.echo((",\n" if place else "\n") + json.dumps(phase.tolist()), nl=False)
    click.echo("\n]}")
