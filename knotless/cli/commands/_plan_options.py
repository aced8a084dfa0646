"""The options of a plan, shared by all commands that make one.

Defaults and checks are those of :class:`knotless.routing.request.PlanRequest`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import click
from click.core import ParameterSource

from knotless.base.flow_control import CHOICES
from knotless.cli import complete
from knotless.cli.commands._verdict_options import FLOW_CONTROL, one_of
from knotless.cli.help import under
from knotless.cli.numbers import Whole
from knotless.cli.user_code import watch
from knotless.routing.choices.layers import DEFAULT_LAYERS
from knotless.routing.choices.requested import KINDS
from knotless.routing.engine import loaded_engine
from knotless.routing.graphs.task import MAX_VCS, SELECTIONS
from knotless.routing.multicast import parse
from knotless.routing.request import (
    MAX_HASH_SEED,
    MAX_LAYERS,
    OPTIONS,
    PROTECTIONS,
    SOURCE_CHECKS,
    PlanRequest,
)
from knotless.routing.vlans.assignment import ASSIGNMENTS, TAGGINGS

_DESCRIBED = "; ".join(
    f"{name}, {kind.description}" for name, kind in KINDS.items() if name != "none"
)
Command = TypeVar("Command", bound=Callable[..., Any])


def _multicast(
    _context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]
) -> dict[int, list[str]]:
    return parse(texts)


def _engine(context: click.Context, _parameter: click.Parameter, name: str) -> str:
    engines = name.split(",")  # --compare has several
    for one in engines:
        if one.endswith(".py"):
            context.call_on_close(watch(str(Path(one).absolute())))
    return ",".join(map(loaded_engine, engines))


def _default(name: str) -> Any:
    return OPTIONS[name]


_SHOWN: Mapping[str, dict[str, Any]] = {
    "engine": {
        "callback": _engine,
        "shell_complete": complete.engines,
        "help": "Routing engine (? lists them); auto: the default of the fabric's family, or updown"
        " if that lacks the multipath asked for. A name that ends in .py is a file of yours that"
        " defines one.",
    },
    "vcs": {"type": Whole(), "help": f"Virtual channels that the plan may use (1 to {MAX_VCS})."},
    "select": {
        **one_of(SELECTIONS),
        "help": "Among equal paths: spread the hosts of a switch, or low-port first.",
    },
    "tagging": {
        **one_of(TAGGINGS),
        "help": "Who adds the VLAN tag: switch (by its port) or host.",
    },
    "vlans": {
        **one_of(ASSIGNMENTS),
        "help": "Share a VLAN where next hops agree (default), or where links form a tree (tree).",
    },
    "max_vlans": {"type": Whole(), "help": "VLANs that the plan may use."},
    "root": {"help": "Root switch, for engines that have one (default: the first switch)."},
    "multicast": {
        "multiple": True,
        "default": (),
        "callback": _multicast,
        "metavar": "N=HOST,...",
        "help": "Declare multicast group N, MAC 03:00:00:00:NN:NN (in hex), with these members or"
        " 'all'; may be repeated. Frames to other groups go to all hosts.",
    },
    "flow_control": {
        **one_of(CHOICES),
        "help": f"{FLOW_CONTROL} on all. auto: pfc if the plan uses several virtual channels,"
        " else pause.",
    },
    "protection": {
        **one_of(PROTECTIONS),
        "help": "fast-failover: rules with proven backup paths for every single failure, which"
        " switches take without a controller.",
    },
    "source_check": {
        **one_of(SOURCE_CHECKS),
        "help": "Source addresses of hosts that switches check: MAC; arp: also the sender in ARP"
        " frames; ip: also the source of IPv4 packets.",
    },
    "multipath": {
        **one_of(tuple(KINDS)),
        "help": f"All equal next hops instead of one path for each pair: {_DESCRIBED}.",
    },
    "layers": {
        "type": Whole(),
        "help": f"Number of layers of --multipath layers (1 to {MAX_LAYERS}; {DEFAULT_LAYERS} by"
        " default).",
    },
    "hash_seed": {
        "type": Whole(),
        "help": "Seed of the hash of --multipath ecmp and layers, 0 to"
        f" {MAX_HASH_SEED}: another seed, other paths.",
    },
}
ROUTES, SWITCHES = "Fabric and routes", "Flow control and switches"
"""Headings of options."""
USUAL = ("engine", "vcs", "multipath", "flow_control")
"""Those that ``--help`` explains."""
PLAN_OPTIONS = tuple(_SHOWN)
"""Names of the parameters of a plan's options."""
without_option = click.option(
    "--without",
    multiple=True,
    metavar="LINK|SWITCH",
    shell_complete=complete.parts,
    help="What has failed: a link, s1:2-s2:3 or s1-s2 (all between two), or a switch, s5. May be"
    " repeated.",
)


def plan_options(**defaults: str) -> Callable[[Command], Command]:
    """Add the options of a plan to a command, which receives them as its parameter ``request``.

    ``defaults`` override the defaults of the request.
    """

    def decorate(function: Command) -> Command:
        @wraps(function)
        def command(**given: Any) -> Any:
            choices = {name: given.pop(name) for name in _SHOWN}
            return function(request=PlanRequest.from_options(**choices), **given)

        return cast(Command, _with_options(command, defaults))

    return decorate


def changed_plan_options(function: Command) -> Command:
    """Add the options of a plan to a command, which receives those that are given as ``options``.

    Raises PlanError if a value is invalid.
    """

    @wraps(function)
    def command(**given: Any) -> Any:
        context = click.get_current_context()
        options = {
            name: value
            for name, value in ((name, given.pop(name)) for name in _SHOWN)
            if context.get_parameter_source(name) == ParameterSource.COMMANDLINE
        }
        PlanRequest.from_options(**options)
        return function(options=options, **given)

    return cast(Command, _with_options(command, {}, show_default=False))


def _with_options(command: Any, defaults: Mapping[str, str], *, show_default: bool = True) -> Any:
    for name, settings in reversed(list(_SHOWN.items())):
        option = {"default": defaults.get(name, _default(name)), "show_default": show_default}
        flag = f"--{name.replace('_', '-')}"
        heading = SWITCHES if name == "flow_control" else ROUTES
        add = click.option(flag, name, **{**option, **settings})
        command = under(heading, add, USUAL)(command)
    return command
