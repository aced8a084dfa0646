"""Options of workloads: flow sizes, incasts, collectives, programs, traces, transports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

import click

from knotless.simulation import SimulationError
from knotless.simulation.transport import KINDS as TRANSPORTS
from knotless.simulation.transport import Transport, transport_of
from knotless.simulation.workload import (
    ChakraTrace,
    CollectiveRun,
    Flows,
    GoalProgram,
    Incast,
    RandomFlows,
    Workload,
)
from knotless.topologies.fabric import Fabric
from knotless.traffic.chakra.operations import ALL_REDUCES
from knotless.traffic.collectives import collectives
from knotless.traffic.sizes import PUBLISHED, sizes_named

Command = TypeVar("Command", bound=Callable[..., Any])


def _read(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> Transport | None:
    return transport_of(texts)


def transport_option(command: Command) -> Command:
    """Add ``--transport``: the command gets a Transport as ``transport``, or None."""
    return click.option(
        "--transport",
        multiple=True,
        callback=_read,
        metavar="NAME[,KEY=VALUE...]",
        help=f"How hosts send: {', '.join(TRANSPORTS)}, with parameters such as dcqcn,timer_us=1500"
        " [default: as fast as the line permits].",
    )(command)


DEFAULT_LOAD = 0.5
DEFAULT_DATA_BYTES = 1_000_000

_OPTIONS = {
    "sizes": click.option(
        "--sizes",
        metavar="NAME|F.csv",
        help=f"Flows of random sizes at --load [default: {DEFAULT_LOAD}] between random hosts or"
        f" those of --pattern: {', '.join(PUBLISHED)}, or a file of bytes,probability.",
    ),
    "flows": click.option("--flows", type=int, metavar="N", help="Number of flows of --sizes."),
    "incast": click.option(
        "--incast",
        metavar="N:BYTES",
        help="N random hosts, or named ones (h1,h2:BYTES), send to one at the same time.",
    ),
    "incast_to": click.option(
        "--incast-to", metavar="HOST", help="The receiver [default: drawn for each incast]."
    ),
    "incast_every": click.option(
        "--incast-every", type=float, metavar="US", help="Time between two incasts."
    ),
    "incast_load": click.option(
        "--incast-load",
        type=float,
        metavar="SHARE",
        help="Random incasts that take this share of the line of each possible receiver.",
    ),
    "incasts": click.option("--incasts", type=int, metavar="N", help="Number of incasts."),
    "collective": click.option(
        "--collective",
        metavar="NAME[:HOSTS]",
        help=f"{', '.join(collectives())}; of all hosts, the first N (NAME:N), named ones"
        " (NAME:h1,h2), or for each rail of servers at once (NAME:rails), on --message-bytes of"
        f" data per host [default: {DEFAULT_DATA_BYTES}].",
    ),
    "goal": click.option(
        "--goal", metavar="F.goal", help="A program in GOAL, the text that LogGOPSim reads."
    ),
    "chakra": click.option(
        "--chakra",
        metavar="DIR|NAME",
        help="An execution trace of MLCommons Chakra: a folder, or NAME for NAME.0.et, NAME.1.et"
        " and so on.",
    ),
    "chakra_groups": click.option(
        "--chakra-groups",
        metavar="F.json",
        help='Ranks of process groups that the trace does not list, as {"1": [0, 1]}.',
    ),
    "all_reduce": click.option(
        "--all-reduce",
        type=click.Choice(ALL_REDUCES),
        help=f"What an all-reduce of --chakra is [default: {ALL_REDUCES[0]}].",
    ),
    "placement": click.option(
        "--placement",
        metavar="FILE",
        help="The host of each rank of --goal or --chakra, a name per line [default: hosts in"
        " order].",
    ),
}
KINDS = ("sizes", "incast", "collective", "goal", "chakra")
_BELONGS = {
    "flows": ("sizes",),
    "placement": ("goal", "chakra"),
    "chakra_groups": ("chakra",),
    "all_reduce": ("chakra",),
    **dict.fromkeys(("incast_to", "incast_every", "incast_load", "incasts"), ("incast",)),
}
"""What an option is for."""


def workload_options(command: Command) -> Command:
    """Add the options to a command, which receives them as its parameter ``workload``.

    That is a mapping for :func:`workload_of`, or None without a workload.
    """

    @wraps(command)
    def with_workload(*args: Any, **given: Any) -> Any:
        options = {name: given.pop(name) for name in _OPTIONS}
        for name, owners in _BELONGS.items():
            if options[name] is not None and all(options[owner] is None for owner in owners):
                option = name.replace("_", "-")
                raise SimulationError(f"--{option} is for --{' or --'.join(owners)}")
        kinds = [kind for kind in KINDS if options[kind] is not None]
        if len(kinds) > 1 and kinds != ["sizes", "incast"]:
            raise SimulationError(f"--{kinds[0]} and --{kinds[1]} cannot be combined")
        return command(*args, workload=options if kinds else None, **given)

    changed = cast(Command, with_workload)
    for option in reversed(_OPTIONS.values()):
        changed = option(changed)
    return changed


def workload_of(fabric: Fabric, options: Mapping[str, Any], given: Mapping[str, Any]) -> Workload:
    """Return the workload; ``given`` are the other options of the command.

    Raises KnotlessError for options that make no sense.
    """
    _refuse(options, given)
    if options["goal"] is not None:
        return GoalProgram(options["goal"], options["placement"])
    if options["chakra"] is not None:
        return ChakraTrace(
            options["chakra"],
            options["placement"],
            options["chakra_groups"],
            options["all_reduce"] or ALL_REDUCES[0],
        )
    if options["collective"] is not None:
        return _collective(fabric, options["collective"], given["message_bytes"])
    flows = None
    if options["sizes"] is not None:
        share = DEFAULT_LOAD if given["load_share"] is None else given["load_share"]
        flows = RandomFlows(sizes_named(options["sizes"]), share, options["flows"])
    return Flows(flows, None if options["incast"] is None else _incast(options))


def _refuse(options: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuse options of patterns that the workload would not follow."""
    kind = next(kind for kind in KINDS if options[kind] is not None)
    unused = {
        "--arrivals": given["arrivals"] is not None,
        "--pattern": given["pattern"] is not None and kind != "sizes",
        "--load": given["load_share"] is not None and kind != "sizes",
        "--message-bytes": given["message_bytes"] is not None and kind != "collective",
    }
    for option, is_given in unused.items():
        if is_given:
            raise SimulationError(f"--{kind} does not take {option}")


def _collective(fabric: Fabric, text: str, message_bytes: int | None) -> CollectiveRun:
    name, colon, hosts = text.partition(":")
    data = DEFAULT_DATA_BYTES if message_bytes is None else message_bytes
    if not colon:
        return CollectiveRun(name, data)
    if hosts == "rails":
        return CollectiveRun(name, data, by_rail=True)
    if not hosts.isdecimal():
        return CollectiveRun(name, data, tuple(hosts.split(",")))
    count = int(hosts) if len(hosts) < 10 else len(fabric.hosts) + 1
    if not 2 <= count <= len(fabric.hosts):
        raise SimulationError(
            f"--collective {name}: {fabric.name} has {len(fabric.hosts)} hosts, not {hosts[:40]}"
        )
    return CollectiveRun(name, data, tuple(host.name for host in fabric.hosts[:count]))


def _incast(options: Mapping[str, Any]) -> Incast:
    text = options["incast"]
    senders, _, size = text.rpartition(":")
    if not (senders and size.isascii() and size.isdigit() and len(size) < 20):
        raise SimulationError(f"--incast {text!r}: must be N:BYTES, or hosts as h1,h2:BYTES")
    many = senders.isascii() and senders.isdigit() and len(senders) < 10
    return Incast(
        int(senders) if many else tuple(senders.split(",")),
        int(size),
        options["incast_to"],
        options["incast_every"],
        options["incast_load"],
        options["incasts"],
    )
