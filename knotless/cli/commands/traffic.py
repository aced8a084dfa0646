"""``knotless traffic``: start and stop traffic on a running fabric."""

from __future__ import annotations

import click

from knotless.base.counting import counted
from knotless.base.errors import KnotlessError
from knotless.base.quantities import MBPS
from knotless.cli import complete
from knotless.cli.answer import Answer, Headline, print_answer
from knotless.cli.groups import SuggestingGroup
from knotless.cli.numbers import Number, Whole
from knotless.cli.options import json_option, name_option, print_json
from knotless.emulation import running_traffic, state
from knotless.emulation.names import names_of
from knotless.emulation.requirements import require_fabrics
from knotless.emulation.running_traffic import LIMITS_MBPS, MAX_SEED, RunningTraffic

EXAMPLE = """\b
Example: knotless traffic start shift:2
         knotless traffic start permutation --rate 5 --seed 3
         knotless traffic stop
"""


@click.group("traffic", cls=SuggestingGroup, epilog=EXAMPLE)
def command() -> None:
    """Start, stop or show traffic on a running fabric."""


START_EXAMPLE = """\b
Example: knotless traffic start shift:2 --rate 5
         knotless traffic start --trace freeze.csv
"""


@command.command("start", epilog=START_EXAMPLE)
@click.argument("pattern", required=False, shell_complete=complete.patterns)
@click.option(
    "--trace",
    metavar="F.csv",
    help="Send the messages of a trace instead: time_us,source,destination,bytes.",
)
@click.option(
    "--rate",
    "rate_mbps",
    type=Number(*LIMITS_MBPS, unit=MBPS),
    help="Rate of each host, in virtual time (default: as fast as it can).",
)
@click.option("--seed", type=Whole(0, MAX_SEED), default=1, show_default=True)
@name_option
@json_option
def start(
    pattern: str | None,
    trace: str | None,
    rate_mbps: float | None,
    seed: int,
    name: str,
    as_json: bool,
) -> None:
    """Send full frames over UDP between the hosts of PATTERN, until it is stopped.

    PATTERN is one of those of knotless analyse that has no phases, such as shift:2. The messages of
    a trace begin at their times, in virtual time, and those of a host take turns.
    """
    if (pattern is None) == (trace is None):
        raise KnotlessError("traffic start needs either a pattern, such as shift:2, or --trace")
    if trace is not None and rate_mbps is not None:
        raise KnotlessError("--rate is for patterns: hosts send a trace as fast as they can")
    require_fabrics()
    if trace is not None:
        show(running_traffic.start_trace(names_of(name), trace), as_json=as_json)
        return
    assert pattern is not None  # noqa: S101 - one of the two is given
    show(running_traffic.start(names_of(name), pattern, rate_mbps, seed), as_json=as_json)


@command.command("stop", epilog="Example: knotless traffic stop")
@name_option
@json_option
def stop(name: str, as_json: bool) -> None:
    """Stop the traffic. What hosts have handed over already is still sent."""
    require_fabrics()
    traffic = running_traffic.stop(names_of(name))
    if as_json:
        print_json({"stopped": None if traffic is None else traffic.as_json()})
    else:
        headline = Headline("traffic", "none runs")
        if traffic is not None:
            headline = Headline(traffic.pattern, "stopped")
        print_answer(Answer(headline))


@command.command("status", epilog="Example: knotless traffic status --json")
@name_option
@json_option
def status(name: str, as_json: bool) -> None:
    """Show which traffic runs."""
    require_fabrics()
    names = names_of(name)
    state.require_running(names)
    show(running_traffic.running(names), as_json=as_json)


def show(traffic: RunningTraffic | None, *, as_json: bool) -> None:
    """Print which traffic runs."""
    if as_json:
        print_json({"traffic": None if traffic is None else traffic.as_json()})
    elif traffic is None:
        print_answer(Answer(Headline("traffic", "none runs")))
    else:
        rate = "as fast as they can"
        if traffic.rate_mbps is not None:
            rate = f"at {traffic.rate_mbps:g} Mbit/s each"
        flows = counted(traffic.flows, "flows")
        print_answer(Answer(Headline(traffic.pattern, "runs", f", {flows}, the hosts send {rate}")))
