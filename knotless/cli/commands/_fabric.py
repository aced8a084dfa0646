"""The options of commands that start a fabric, and the resulting fabric and plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

import click

from knotless.base.errors import KnotlessError
from knotless.base.quantities import SHARE
from knotless.cli.commands._plan_options import ROUTES, SWITCHES, plan_options
from knotless.cli.commands._switch_options import (
    DELAY,
    LINE_OPTIONS,
    RATE,
    broadcast_options,
    credit_options,
    emulated_switch_option,
    watchdog_options,
)
from knotless.cli.help import under
from knotless.cli.numbers import Number, Whole
from knotless.cli.options import (
    MAX_SLOW_DOWN,
    fabric_of,
    json_option,
    own_name_option,
    spec_argument,
    with_options,
)
from knotless.cli.priority import priority_option
from knotless.emulation.options import (
    MOST_PROCESSES,
    PORTS_OF_EACH,
    PORTS_OF_ONE,
    checked_plan,
)
from knotless.routing.request import PlanRequest
from knotless.topologies.fabric import with_lines
from knotless.verification.checked_plan import CheckedPlan

Command = TypeVar("Command", bound=Callable[..., Any])
Options = Mapping[str, Any]

_ROUTES = [
    click.option("--allow-deadlock", is_flag=True, help="Start it even if its plan can deadlock."),
    own_name_option,
]
_LINKS = [
    click.option("--rate", type=RATE, help="Rate of every link, Mbit/s."),
    click.option("--delay", type=DELAY, help="Delay of every link, us."),
    *LINE_OPTIONS,
]
_CONTROLLER = [
    click.option(
        "--controller",
        type=click.Choice(["ryu", "remote", "none"], case_sensitive=False),
        default="ryu",
        show_default=True,
        help="Start ours; use one that already listens on --port; or none.",
    ),
    click.option(
        "--port",
        "openflow_port",
        type=Whole(0, 65535),
        help="OpenFlow port of the controller on 127.0.0.1; by default 6653 with --tls (0: any free"
        " one) and --controller remote, else none (0): switches use a Unix socket.",
    ),
    click.option(
        "--rest-port",
        type=Whole(0, 65535),
        default=8080,
        show_default=True,
        help="REST port of our controller on 127.0.0.1; 0 is any free one.",
    ),
    click.option(
        "--controllers",
        type=Whole(1, 9),
        default=1,
        show_default=True,
        metavar="N",
        help="Our controllers: one is active, the others take over if it dies.",
    ),
    click.option("--tls", is_flag=True, help="TLS with certificates between switches and ours."),
    click.option(
        "--controller-clock",
        type=click.Choice(["real", "virtual"], case_sensitive=False),
        default="real",
        show_default=True,
        help="Whether our controllers see virtual time too.",
    ),
]
_EMULATION = [
    click.option(
        "--links",
        type=click.Choice(["emulated", "plain"], case_sensitive=False),
        default="emulated",
        show_default=True,
        help="Plain: veth pairs only, without rates, delays, flow control and watch for loops.",
    ),
    click.option(
        "--slow-down",
        type=Number(min=1, max=MAX_SLOW_DOWN),
        default=1.0,
        show_default=True,
        metavar="K",
        help="Virtual time passes at most 1/K times as fast as real time.",
    ),
    click.option(
        "--virtual-clock/--no-virtual-clock",
        default=True,
        show_default=True,
        help="Programs on hosts see virtual time: their clocks, sleeps and time limits.",
    ),
    priority_option,
    click.option(
        "--datapath",
        type=click.Choice(["auto", "user", "kernel"], case_sensitive=False),
        default="auto",
        show_default=True,
        help="Datapath of Open vSwitch: userspace, or that of the kernel, which is faster and needs"
        " the module openvswitch; auto: the kernel's where it works.",
    ),
    click.option(
        "--switch-processes",
        type=Whole(1, MOST_PROCESSES),
        metavar="N",
        help="Open vSwitch processes that share the switches [default: 1, or one for each"
        f" {PORTS_OF_EACH} ports of a fabric with more than {PORTS_OF_ONE}].",
    ),
]
_SWITCHES = [
    emulated_switch_option,
    credit_options,
    watchdog_options,
    broadcast_options,
    click.option(
        "--host-pause",
        "pause_share",
        type=Number(min=0, max=1, unit=SHARE),
        help="Share of time for which a host may pause its link; beyond it, it is ignored [default:"
        " 0.6]. 1: no limit.",
    ),
]
_GROUPS: Sequence[tuple[str, Sequence[Callable[[Any], Any]], Collection[str]]] = (
    (ROUTES, _ROUTES, ["name", "allow_deadlock"]),
    (SWITCHES, _SWITCHES, ["switch_settings"]),
    ("Emulation", [*_LINKS, *_EMULATION], ["rate", "delay", "slow_down", "virtual_clock"]),
    ("Controller", _CONTROLLER, ["controller", "controllers"]),
)
"""Headings, their options, and those that ``--help`` explains."""


def fabric_options(command: Command) -> Command:
    """Add SPEC and the options of a running fabric to a command."""
    for heading, options, usual in reversed(_GROUPS):
        for option in reversed(options):
            command = under(heading, option, usual)(command)
    return with_options(command, [spec_argument, plan_options(), json_option])


def checked_plan_of(
    spec: str, request: PlanRequest, rate: float | None, delay: float | None, options: Options
) -> CheckedPlan:
    """Return the plan of a fabric to be started.

    Raises KnotlessError if there is no such fabric, or as
    :func:`knotless.emulation.options.checked_plan`.
    """
    if options["links"] == "plain" and options.get("switch_settings") is not None:
        raise KnotlessError("--switch needs emulated links: leave out --links plain")
    if options["links"] == "plain" and (options["line_errors"] or options["retry"] is not None):
        raise KnotlessError(
            "--line-errors and --retry need emulated links: leave out --links plain"
        )
    fabric = with_lines(fabric_of(spec), rate, delay)
    chosen = {key: options[key] for key in ("links", "controller", "allow_deadlock")}
    return checked_plan(fabric, request, **chosen)
