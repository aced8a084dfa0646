"""``knotless schedule``: in which phase each host sends to which other."""

from __future__ import annotations

import json

import click

from knotless.commands._options import json_option, print_table
from knotless.commands._routing import Choices, optional_routing_options
from routing.contention import Lines, contention
from routing.latin_square import LatinSquare, latin_square_of
from routing.schedule import Schedule, ScheduleError, shift, triple, vector_table
from topologies import load
from topologies.fabric import Fabric


@click.command(name="schedule")
@click.argument("spec")
@click.option(
    "--lattice",
    metavar="K,M",
    help="Only M hosts on each of the leaves P(c,r) with c < K, of an LSFT.",
)
@click.option("--shift", "as_shift", is_flag=True, help="Phase i: host S sends to S + i, mod N.")
@optional_routing_options
@json_option
def command(
    spec: str, lattice: str | None, as_shift: bool, choices: Choices, as_json: bool
) -> None:
    """Make an all-to-all schedule for the hosts of the fabric SPEC.

    A Latin-square fat-tree gets the schedule that is free of contention; any other fabric the
    shift. Destinations are places in the list of hosts. throughput_ratio is the mean share of
    the line rate that a flow gets on the engine's routes.

    Example: knotless schedule lsft,3 --lattice 2,2 --json
    """
    fabric = load(spec)
    square = latin_square_of(fabric)
    schedule = _schedule(fabric, square, lattice, as_shift)
    plan = choices.plan(fabric)
    found = contention(Lines(plan), schedule.flows())
    values: dict[str, object] = {
        "fabric": fabric.name,
        "engine": plan.engine,
        "kind": schedule.kind,
        "throughput_ratio": found.throughput_ratio,
        "max_channel_load": found.max_channel_load,
    }
    if as_json:
        _print_phases(fabric, schedule, values)
        return
    count = len(schedule.hosts)
    print_table(fabric.name, {**values, "hosts": count, "phases": count})


def _schedule(
    fabric: Fabric, square: LatinSquare | None, lattice: str | None, as_shift: bool
) -> Schedule:
    if lattice is not None and as_shift:
        raise ScheduleError("--lattice and --shift exclude each other")
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


def _print_phases(fabric: Fabric, schedule: Schedule, values: dict[str, object]) -> None:
    """Print JSON phase by phase: 5,526 hosts have 30 million destinations."""
    hosts = [fabric.hosts[i].name for i in schedule.hosts.tolist()]
    click.echo(json.dumps({**values, "hosts": hosts})[:-1] + ', "phases": [', nl=False)
    for number, phase in enumerate(schedule.phases()):
        click.echo((",\n" if number else "\n") + json.dumps(phase.tolist()), nl=False)
    click.echo("\n]}")
