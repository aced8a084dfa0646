"""The options that every command which starts a fabric has, and what they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import click

from experiments.options import FiniteRange
from knotless.commands._multicast import multicast_option
from knotless.commands._options import json_option
from routing.host_tags import HostTags
from routing.plan import make_plan
from topologies import load
from topologies.fabric import Fabric, Host, Link

Command = TypeVar("Command", bound=Callable[..., Any])
Part = TypeVar("Part", Host, Link)

_RATE = FiniteRange(min=0, min_open=True)

_PARAMETERS = [
    click.argument("spec"),
    click.option("--engine", default="updown", show_default=True, help="Routing engine."),
    click.option("--vcs", type=click.IntRange(1, 8), help="Virtual channels the plan may use."),
    click.option(
        "--select",
        type=click.Choice(["spread", "low-port"]),
        default="spread",
        show_default=True,
        help="Among equal paths: spread the hosts of a switch, or low-port first.",
    ),
    click.option(
        "--tagging",
        type=click.Choice(["switch", "host"]),
        default="switch",
        show_default=True,
        help="Who puts the VLAN tag on: switch (by its port) or host.",
    ),
    click.option(
        "--vlans",
        type=click.Choice(["default", "tree"]),
        default="default",
        show_default=True,
        help="Share a VLAN where next hops agree (default), or where links form a tree (tree).",
    ),
    click.option("--root", help="Root switch, for engines that have one."),
    multicast_option,
    click.option(
        "--flow-control",
        type=click.Choice(["none", "host", "switch", "all", "pfc"]),
        default="all",
        show_default=True,
        help="Links that send PAUSE: none, hosts' only, switches' only, all; or all send PFC.",
    ),
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


def host_tags_of(fabric: Fabric, options: Mapping[str, Any]) -> HostTags | None:
    """Return what hosts must tag their frames by, None unless they are to.

    The controller will make the same plan: a mistake in it is told before anything is made.

    Raises
    ------
    PlanError
        There is no such plan.

    """
    keys = ("engine", "vcs", "select", "tagging", "vlans", "root", "multicast")
    return make_plan(fabric, **{key: options[key] for key in keys}).host_tags()


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
