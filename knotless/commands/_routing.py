"""The options of a plan, which every command that makes one has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import wraps
from typing import Any, cast

import click

from routing.native import native_engine
from routing.plan import Plan, make_plan
from routing.vlan import MOST_VLANS
from topologies.fabric import Fabric

NATIVE = "native"


@dataclass(frozen=True)
class Choices:
    """What the user chose of what a plan needs."""

    engine: str
    vcs: int | None
    select: str
    tagging: str
    vlans: str
    max_vlans: int
    root: str | None

    def plan(self, fabric: Fabric) -> Plan:
        """Return the plan of ``fabric``; PlanError when it cannot be had.

        The engine ``native`` is the one made for the fabric's family.
        """
        engine = native_engine(fabric) if self.engine == NATIVE else self.engine
        return make_plan(fabric, engine, **self.others())

    def others(self) -> dict[str, Any]:
        """Return all but the engine."""
        return {key: value for key, value in asdict(self).items() if key != "engine"}


_ENGINE = click.option("--engine", required=True, help="Routing engine (? lists them).")
_ENGINE_OR_NATIVE = click.option(
    "--engine",
    default=NATIVE,
    show_default=True,
    help="Routing engine; native: the one made for the fabric's family, else updown.",
)
_CHOICES = [
    click.option("--vcs", type=int, help="Virtual channels that the plan may use (1 to 8)."),
    click.option(
        "--select",
        default="spread",
        show_default=True,
        help="Among equal paths: spread the hosts of a switch, or low-port first.",
    ),
    click.option(
        "--tagging",
        default="switch",
        show_default=True,
        help="Who puts the VLAN tag on: switch (by its port) or host.",
    ),
    click.option(
        "--max-vlans",
        type=int,
        default=MOST_VLANS,
        show_default=True,
        help="VLANs that the plan may use.",
    ),
    click.option("--root", help="Root switch of engines that have one (else the first)."),
]


Command = Callable[..., Any]


def _vlans_option(default: str) -> Callable[[Command], Command]:
    return click.option(
        "--vlans",
        default=default,
        show_default=True,
        help="Share a VLAN where next hops agree (default), or where links form a tree (tree).",
    )


def routing_options(function: Command) -> Command:
    """Give a command the options of a plan, all together as its parameter ``choices``."""
    return _with(function, _ENGINE)


def optional_routing_options(function: Command) -> Command:
    """Do the same for a command to which it matters less by which engine."""
    return _with(function, _ENGINE_OR_NATIVE)


def tree_routing_options(function: Command) -> Command:
    """Do the same for a command that is of use with VLANs without loops alone."""
    return _with(function, _ENGINE_OR_NATIVE, vlans="tree")


def _with(
    function: Command, engine: Callable[[Command], Command], vlans: str = "default"
) -> Command:
    @wraps(function)
    def command(**given: Any) -> Any:
        choices = Choices(**{field.name: given.pop(field.name) for field in fields(Choices)})
        return function(choices=choices, **given)

    decorated: Any = command
    for option in reversed([engine, *_CHOICES, _vlans_option(vlans)]):
        decorated = option(decorated)
    return cast(Command, decorated)
