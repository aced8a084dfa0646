"""``knotless check``: walk rules, ours or not, and say whether they deliver and can deadlock."""

from __future__ import annotations

import sys

import click

from knotless.commands._options import json_option, print_json, print_table
from knotless.commands._plan_options import flow_control_option
from routing.flow_control import AUTO, accepted
from routing.flowdir import read_dir, read_multicast, read_tags
from routing.live import RUN_DIRECTORY, live_multicast, read_live
from topologies.errors import KnotlessError
from verification.check import Verdict, check


@click.command(name="check")
@click.argument("directory", required=False)
@click.option("--live", is_flag=True, help="Check what the switches of a running fabric hold.")
@click.option("--name", default="default", show_default=True, help="The running fabric's name.")
@flow_control_option
@json_option
def command(directory: str | None, live: bool, name: str, flow_control: str, as_json: bool) -> None:
    """Walk the rules in DIRECTORY (as knotless flows writes it) for every pair of hosts.

    Exit status 0 only if all is delivered and no cycle of channel dependencies is left, 1 if not.

    Example: knotless check rules --flow-control pause
    """
    if live == (directory is not None):
        raise KnotlessError("check needs either a directory of rules or --live")
    in_use: str = AUTO
    if directory is None:
        fabric, rules, in_use = read_live(name)
        groups = live_multicast(fabric, name)
        tags = read_tags(fabric, RUN_DIRECTORY / name)
    else:
        fabric, rules = read_dir(directory)
        groups = read_multicast(fabric, directory)
        tags = read_tags(fabric, directory)
    chosen = str(accepted(flow_control))
    if chosen == AUTO:
        chosen = in_use
    verdict = check(fabric, rules, flow_control=chosen, multicast=groups, tags=tags)
    if as_json:
        print_json(verdict.as_json())
    else:
        _print(verdict)
    sys.exit(0 if verdict.good else 1)


def _print(verdict: Verdict) -> None:
    values = verdict.as_json()
    problems = verdict.problems
    values.pop("fabric")
    values.pop("problems")
    print_table(f"check of {verdict.fabric}", values)
    for problem in problems:
        click.echo(problem)
    click.echo("not all is delivered" if verdict.failed else "all is delivered")
    click.echo(verdict.text)
