"""The options that every command which starts a fabric has, and what they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import click

from common.flow_control import AUTO
from experiments.framework.options import FiniteRange
from knotless.commands._options import json_option
from knotless.commands._plan_options import plan_options
from routing.plan import make_plan
from routing.request import PlanRequest
from topologies import load
from topologies.fabric import Fabric, Host, Link
from verification.checked_plan import CheckedPlan

Command = TypeVar("Command", bound=Callable[..., Any])
Part = TypeVar("Part", Host, Link)
Options = Mapping[str, Any]

_RATE = FiniteRange(min=0, min_open=True)

_PARAMETERS = [
    click.argument("spec"),
    plan_options(),
    click.option("--allow-deadlock", is_flag=True, help="Start it even if its plan can deadlock."),
    click.option("--rate", type=_RATE, metavar="MBPS", help="Rate of every link, Mbit/s."),
    click.option("--delay", type=FiniteRange(min=0), metavar="US", help="Delay of every link, us."),
    click.option("--name", default="default", show_default=True, help="Name of this fabric."),
    click.option(
        "--controller",
        type=click.Choice(["ryu", "remote", "none"]),
        default="ryu",
        show_default=True,
        help="Start ours; use one that listens on --port already; or none.",
    ),
    click.option(
        "--port",
        "openflow_port",
        type=click.IntRange(0, 65535),
        default=6653,
        show_default=True,
        help="OpenFlow port of the controller on 127.0.0.1; 0 is any free one.",
    ),
    click.option(
        "--rest-port",
        type=click.IntRange(0, 65535),
        default=8080,
        show_default=True,
        help="REST port of our controller on 127.0.0.1; 0 is any free one.",
    ),
    click.option(
        "--links",
        type=click.Choice(["emulated", "plain"]),
        default="emulated",
        show_default=True,
        help="Plain: veth pairs alone, without rates, delays and flow control.",
    ),
    json_option,
]


def fabric_options(command: Command) -> Command:
    """Give a command SPEC and the options of a fabric that is to run."""
    for parameter in reversed(_PARAMETERS):
        command = parameter(command)
    return command


def checked_plan_of(
    spec: str, request: PlanRequest, rate: float | None, delay: float | None, options: Options
) -> CheckedPlan:
    """Return the plan of a fabric that is to run; its controller will make the same one.

    Raises
    ------
    KnotlessError
        There is no such fabric or plan, or it can deadlock and must not. A controller other than
        ours, or none, does not follow the plan: then there is nothing to refuse.

    """
    if options["links"] == "plain" and request.flow_control == AUTO:
        request = request.but(flow_control="none")
    checked = CheckedPlan(make_plan(fabric_of(spec, rate, delay), request))
    if options["controller"] == "ryu" and not options["allow_deadlock"]:
        checked.refuse_deadlock()
    return checked


def fabric_of(spec: str, rate: float | None, delay: float | None) -> Fabric:
    """Load a fabric; give every link ``rate`` (Mbit/s) and ``delay`` (us) where stated."""
    fabric = load(spec)

    def changed(part: Part) -> Part:
        return replace(
            part,
            rate_mbps=part.rate_mbps if rate is None else rate,
            delay_us=part.delay_us if delay is None else delay,
        )

    return replace(
        fabric,
        hosts=tuple(changed(host) for host in fabric.hosts),
        links=tuple(changed(link) for link in fabric.links),
    )
