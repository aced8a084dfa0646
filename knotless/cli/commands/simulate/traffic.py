"""The traffic of a simulation: patterns, traces, and workloads, which replace them."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import click

from knotless.base.counting import counted
from knotless.base.quantities import BYTES, MICROSECONDS, SHARE
from knotless.cli import complete
from knotless.cli.numbers import Number, Whole
from knotless.cli.options import each_value, grouped
from knotless.routing.multicast import ALL
from knotless.simulation import Load, SimulationError
from knotless.simulation.settings import BROADCAST
from knotless.simulation.traffic import ARRIVALS
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
from knotless.traffic.patterns import patterns
from knotless.traffic.sizes import PUBLISHED, sizes_named


def _sender(text: str) -> tuple[str, int]:
    host, equals, group = text.rpartition("=")
    if equals and group == ALL:
        return host, BROADCAST
    if not (equals and group.isdecimal() and len(group) < 10 and int(group)):
        raise SimulationError(
            f"{text!r}: a host that sends to multicast group N is written HOST=N, to all HOST={ALL}"
        )
    return host, int(group)


@dataclass(frozen=True)
class TrafficOptions:
    """The traffic without a workload: a pattern, a trace, or to multicast groups."""

    pattern: str | None
    trace: str | None
    computing: float
    senders: tuple[tuple[str, int], ...]
    load_share: float | None
    arrivals: str | None
    message_bytes: int | None
    messages: int
    barrier: bool
    packet_bytes: int
    take_turns: bool

    def load(self) -> Load:
        """Return the amount of traffic of a pattern."""
        if self.load_share is not None:
            default = "poisson"
        else:
            default = "saturate" if self.message_bytes is None else "acknowledged"
        return Load(
            arrivals=self.arrivals or default,
            load=1.0 if self.load_share is None else self.load_share,
            message_bytes=self.message_bytes,
            messages=self.messages,
            barrier=self.barrier,
        )


traffic_options = grouped(
    "traffic",
    TrafficOptions,
    click.option(
        "--pattern",
        shell_complete=complete.patterns,
        help=f"Pattern: {', '.join(patterns())}, or shift:K.",
    ),
    click.option(
        "--trace", metavar="F.csv", help="Messages at their times, or a recorded program."
    ),
    click.option(
        "--computing",
        type=Number(),
        default=1.0,
        show_default=True,
        metavar="FACTOR",
        help="Factor for the compute times of --trace or --chakra; 0: no computing.",
    ),
    click.option(
        "--send",
        "senders",
        multiple=True,
        callback=each_value(_sender),
        metavar="HOST=N",
        help="This host sends to multicast group N, or to all hosts (HOST=all); may be repeated.",
    ),
    click.option(
        "--load",
        "load_share",
        type=Number(unit=SHARE),
        help="Fraction of each sender's line, 0 to 1.",
    ),
    click.option(
        "--arrivals",
        type=click.Choice(ARRIVALS, case_sensitive=False),
        help="Arrival of messages [default: poisson with --load, acknowledged with"
        " --message-bytes, else saturate].",
    ),
    click.option(
        "--message-bytes", type=Whole(unit=BYTES), help="Length of a message [default: one packet]."
    ),
    click.option(
        "--messages", type=Whole(), default=1, show_default=True, help="Messages per flow."
    ),
    click.option(
        "--barrier/--no-barrier", default=True, help="Wait between the phases of a pattern."
    ),
    click.option(
        "--packet-bytes", type=Whole(unit=BYTES), default=1500, show_default=True, help="MTU."
    ),
    click.option(
        "--turns",
        "take_turns",
        is_flag=True,
        help="Messages of a host take turns, packet by packet [default: one after the other].",
    ),
)


DEFAULT_LOAD = 0.5
DEFAULT_DATA_BYTES = 1_000_000

KINDS = ("sizes", "incast", "collective", "goal", "chakra")
_BELONGS = {
    "flows": ("sizes",),
    "placement": ("goal", "chakra"),
    "chakra_groups": ("chakra",),
    "all_reduce": ("chakra",),
    **dict.fromkeys(("incast_to", "incast_every", "incast_load", "incasts"), ("incast",)),
}
"""What an option is for."""


@dataclass(frozen=True)
class WorkloadOptions:
    """The workload that replaces a pattern and its load; None: not given."""

    sizes: str | None
    flows: int | None
    incast: str | None
    incast_to: str | None
    incast_every: float | None
    incast_load: float | None
    incasts: int | None
    collective: str | None
    goal: str | None
    chakra: str | None
    chakra_groups: str | None
    all_reduce: str | None
    placement: str | None

    def __post_init__(self) -> None:
        """Raise SimulationError for options that do not belong together."""
        options = asdict(self)
        for name, owners in _BELONGS.items():
            if options[name] is not None and all(options[owner] is None for owner in owners):
                option = name.replace("_", "-")
                raise SimulationError(f"--{option} is for --{' or --'.join(owners)}")
        kinds = [kind for kind in KINDS if options[kind] is not None]
        if len(kinds) > 1 and kinds != ["sizes", "incast"]:
            raise SimulationError(f"--{kinds[0]} and --{kinds[1]} cannot be combined")

    @property
    def kind(self) -> str | None:
        """The option that says what kind of workload it is; None without a workload."""
        return next((kind for kind in KINDS if getattr(self, kind) is not None), None)

    def refuse_others(
        self, *, arrivals: bool, pattern: bool, load: bool, message_bytes: bool
    ) -> None:
        """Raise SimulationError for given options of patterns that it would not follow."""
        unused = {
            "--arrivals": arrivals,
            "--pattern": pattern and self.kind != "sizes",
            "--load": load and self.kind != "sizes",
            "--message-bytes": message_bytes and self.kind != "collective",
        }
        for option, is_given in unused.items():
            if is_given:
                raise SimulationError(f"--{self.kind} does not take {option}")


workload_options = grouped(
    "workload",
    WorkloadOptions,
    click.option(
        "--sizes",
        metavar="NAME|F.csv",
        help=f"Flows of random sizes at --load [default: {DEFAULT_LOAD}] between random hosts or"
        f" those of --pattern: {', '.join(PUBLISHED)}, or a file of bytes,probability.",
    ),
    click.option("--flows", type=Whole(), metavar="N", help="Number of flows of --sizes."),
    click.option(
        "--incast",
        metavar="N:BYTES",
        help="N random hosts, or named ones (h1,h2:BYTES), send to one at the same time.",
    ),
    click.option(
        "--incast-to", metavar="HOST", help="The receiver [default: drawn for each incast]."
    ),
    click.option(
        "--incast-every",
        type=Number(unit=MICROSECONDS),
        help="Time between two incasts.",
    ),
    click.option(
        "--incast-load",
        type=Number(unit=SHARE),
        help="Random incasts that take this share of the line of each possible receiver.",
    ),
    click.option("--incasts", type=Whole(), metavar="N", help="Number of incasts."),
    click.option(
        "--collective",
        metavar="NAME[:HOSTS]",
        help=f"{', '.join(collectives())}; of all hosts, the first N (NAME:N), named ones"
        " (NAME:h1,h2), or for each rail of servers at once (NAME:rails), on --message-bytes of"
        f" data per host [default: {DEFAULT_DATA_BYTES}].",
    ),
    click.option(
        "--goal", metavar="F.goal", help="A program in GOAL, the text that LogGOPSim reads."
    ),
    click.option(
        "--chakra",
        metavar="DIR|NAME",
        help="An execution trace of MLCommons Chakra: a folder, or NAME for NAME.0.et, NAME.1.et"
        " and so on.",
    ),
    click.option(
        "--chakra-groups",
        metavar="F.json",
        help='Ranks of process groups that the trace does not list, as {"1": [0, 1]}.',
    ),
    click.option(
        "--all-reduce",
        type=click.Choice(ALL_REDUCES, case_sensitive=False),
        help=f"What an all-reduce of --chakra is [default: {ALL_REDUCES[0]}].",
    ),
    click.option(
        "--placement",
        metavar="FILE",
        help="The host of each rank of --goal or --chakra, a name per line [default: hosts in"
        " order].",
    ),
)


def workload_of(
    fabric: Fabric,
    options: WorkloadOptions,
    load_share: float | None,
    message_bytes: int | None,
) -> Workload:
    """Return the workload; raises KnotlessError for options that make no sense."""
    if options.goal is not None:
        return GoalProgram(options.goal, options.placement)
    if options.chakra is not None:
        how = options.all_reduce or ALL_REDUCES[0]
        return ChakraTrace(options.chakra, options.placement, options.chakra_groups, how)
    if options.collective is not None:
        return _collective(fabric, options.collective, message_bytes)
    flows = None
    if options.sizes is not None:
        share = DEFAULT_LOAD if load_share is None else load_share
        flows = RandomFlows(sizes_named(options.sizes), share, options.flows)
    return Flows(flows, None if options.incast is None else _incast(options, options.incast))


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
        there = counted(len(fabric.hosts), "hosts")
        raise SimulationError(f"--collective {name}: {fabric.name} has {there}, not {hosts[:40]}")
    return CollectiveRun(name, data, tuple(host.name for host in fabric.hosts[:count]))


def _incast(options: WorkloadOptions, text: str) -> Incast:
    senders, _, size = text.rpartition(":")
    if not (senders and size.isascii() and size.isdigit() and len(size) < 20):
        raise SimulationError(f"--incast {text!r}: must be N:BYTES, or hosts as h1,h2:BYTES")
    many = senders.isascii() and senders.isdigit() and len(senders) < 10
    return Incast(
        int(senders) if many else tuple(senders.split(",")),
        int(size),
        options.incast_to,
        options.incast_every,
        options.incast_load,
        options.incasts,
    )
