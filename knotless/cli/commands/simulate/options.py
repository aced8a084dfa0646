"""The options of a simulation, by group, and the scenario that they describe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from knotless.base.errors import KnotlessError
from knotless.base.flow_control import resolved
from knotless.base.quantities import BYTES, MBPS, MICROSECONDS, SHARE, number
from knotless.cli.commands._switch_options import (
    DELAY,
    LINE_OPTIONS,
    RATE,
    credit_bytes_option,
    credit_unit_option,
    switch_option,
)
from knotless.cli.commands.simulate.traffic import TrafficOptions, WorkloadOptions, workload_of
from knotless.cli.numbers import Number, Whole
from knotless.cli.options import details_option, each_value, grouped, json_option
from knotless.results.recording import SUFFIX
from knotless.routing.plan import make_plan
from knotless.routing.request import PlanRequest
from knotless.simulation import (
    Buffers,
    HostPause,
    LinkChange,
    PauseLimit,
    Scenario,
    SimulationError,
)
from knotless.simulation.memory import check_memory
from knotless.simulation.run import MAX_CORES
from knotless.simulation.scenario import DEFAULT_PACKETS
from knotless.simulation.transport import KINDS as TRANSPORTS
from knotless.simulation.transport import Transport, transport_of
from knotless.simulation.workload import Flows
from knotless.topologies.fabric import Fabric
from knotless.traffic.patterns import pattern_named

if TYPE_CHECKING:
    from knotless.base.switch_settings import SwitchFile
    from knotless.traffic.endpoints import EndpointModel


FAILED = 3
"""Exit status for ``--fail-on-deadlock`` and ``--fail-on-nothing-delivered``."""


def _receiver_rate(text: str) -> tuple[str, float]:
    host, equals, rate = text.rpartition("=")
    try:
        return host, number(rate if equals else "", MBPS)
    except KnotlessError:
        hint = f"{text!r}: a host and the rate at which it receives are written HOST=MBPS"
        raise SimulationError(hint) from None


def _link_and_time(text: str) -> tuple[str, float]:
    channel, _, time_text = text.rpartition("@")
    try:
        return channel, number(time_text, MICROSECONDS)
    except KnotlessError:
        hint = f"{text!r}: a link and a time are written SWITCH:PORT@MICROSECONDS"
        raise SimulationError(hint) from None


def _host_pause(text: str) -> HostPause:
    host, separator, times = text.rpartition("@")
    begins, dash, ends = times.partition("-")
    try:
        if separator and host:
            end_us = number(ends, MICROSECONDS) if dash else None
            return HostPause(number(begins, MICROSECONDS), host, end_us)
    except KnotlessError:
        pass
    raise SimulationError(
        f"{text!r}: a host and when it pauses its link are written HOST@MICROSECONDS, or with"
        " an end HOST@MICROSECONDS-MICROSECONDS"
    )


@dataclass(frozen=True)
class HostOptions:
    """Sending, receiving and pausing of hosts."""

    transport: Transport | None
    receiver_rates: tuple[tuple[str, float], ...]
    host_pauses: tuple[HostPause, ...]
    pause_share: float


host_options = grouped(
    "hosts",
    HostOptions,
    click.option(
        "--transport",
        multiple=True,
        callback=lambda _context, _parameter, texts: transport_of(texts),
        metavar="NAME[,KEY=VALUE...]",
        help=f"How hosts send: {', '.join(TRANSPORTS)}, with parameters such as dcqcn,timer_us=1500"
        " [default: as fast as the line permits].",
    ),
    click.option(
        "--receiver-rate",
        "receiver_rates",
        multiple=True,
        callback=each_value(_receiver_rate),
        metavar="HOST=MBPS",
        help="This host takes frames from its buffer at this rate; may be repeated [default: at"
        " once].",
    ),
    click.option(
        "--pause-host",
        "host_pauses",
        multiple=True,
        callback=each_value(_host_pause),
        metavar="HOST@US[-US]",
        help="A host pauses its link from a time on, for ever or until another; may be repeated.",
    ),
    click.option(
        "--host-pause",
        "pause_share",
        type=Number(min=0, max=1, unit=SHARE),
        default=PauseLimit().share,
        show_default=True,
        help="Share of time for which a host may pause its link; beyond it, it is ignored. 1: no"
        " limit.",
    ),
)

buffer_options = grouped(
    "buffers",
    Buffers,
    click.option(
        "--xoff",
        type=Whole(unit=BYTES),
        help="Ingress occupancy that pauses a sender.",
    ),
    click.option("--xon", type=Whole(unit=BYTES), help="Ingress occupancy that resumes it."),
    click.option("--headroom", type=Whole(unit=BYTES), help="Ingress buffer above XOFF."),
    credit_bytes_option,
    credit_unit_option,
    click.option(
        "--queue",
        type=Whole(unit=BYTES),
        help="Egress queue without flow control.",
    ),
)


@dataclass(frozen=True)
class SwitchOptions:
    """Queues and forwarding of switches."""

    switch_settings: SwitchFile | None
    cut_through: int
    ugal_threshold: int


switch_options = grouped(
    "switches",
    SwitchOptions,
    switch_option,
    click.option(
        "--cut-through",
        type=Whole(unit=BYTES),
        default=0,
        help="Forward a frame once this much has arrived [default: all of it].",
    ),
    click.option(
        "--ugal-threshold",
        type=Whole(unit=BYTES),
        default=0,
        show_default=True,
        help="With --engine ugal, how many more bytes times hops the minimal path may have queued.",
    ),
)


@dataclass(frozen=True)
class LinkOptions:
    """Lines of links (None: those of the fabric), and links that are cut and repaired."""

    rate: float | None
    delay: float | None
    line_errors: float
    errors_in_a_row: int
    retry: int | None
    cut: tuple[tuple[str, float], ...]
    repair: tuple[tuple[str, float], ...]

    def changes(self) -> tuple[LinkChange, ...]:
        """Return the changes of links, cuts first."""
        cuts = [LinkChange(time_us, channel, False) for channel, time_us in self.cut]
        repairs = [LinkChange(time_us, channel, True) for channel, time_us in self.repair]
        return (*cuts, *repairs)


link_options = grouped(
    "links",
    LinkOptions,
    click.option("--rate", type=RATE, help="Rate of every link, Mbit/s."),
    click.option("--delay", type=DELAY, help="Delay of every link."),
    *LINE_OPTIONS,
    click.option(
        "--cut",
        multiple=True,
        callback=each_value(_link_and_time),
        metavar="SWITCH:PORT@US",
        help="Cut a link at a time.",
    ),
    click.option(
        "--repair",
        multiple=True,
        callback=each_value(_link_and_time),
        metavar="SWITCH:PORT@US",
        help="Restore a link.",
    ),
)


@dataclass(frozen=True)
class RunOptions:
    """The time, seed and cores of a simulation, and what is measured."""

    warm_up: float
    duration: float | None
    seed: int
    cores: int


run_options = grouped(
    "run",
    RunOptions,
    click.option(
        "--warm-up",
        type=Number(unit=MICROSECONDS),
        default=0.0,
        help="Time not counted.",
    ),
    click.option(
        "--duration",
        type=Number(unit=MICROSECONDS),
        help=f"Virtual time [default: time of {DEFAULT_PACKETS} packets, or until all is sent].",
    ),
    click.option(
        "--seed",
        type=Whole(min=0),
        default=1,
        show_default=True,
        help="Seed of all randomness.",
    ),
    click.option(
        "--cores",
        type=Whole(1, MAX_CORES),
        default=1,
        show_default=True,
        help="Cores to use, with the same result.",
    ),
)


@dataclass(frozen=True)
class Output:
    """Files to write, and what is printed."""

    fail_on_deadlock: bool
    fail_on_nothing_delivered: bool
    out: str | None
    fct: bool
    plot: str | None
    pause_tree: bool
    record: str | None
    every_us: float | None
    details: bool
    as_json: bool


output_options = grouped(
    "output",
    Output,
    click.option("--fail-on-deadlock", is_flag=True, help=f"Exit with {FAILED} on deadlock."),
    click.option(
        "--fail-on-nothing-delivered",
        is_flag=True,
        help=f"Exit with {FAILED} if no packet arrives.",
    ),
    click.option("--out", metavar="F.json", help="Write every flow and channel to this file."),
    click.option(
        "--fct",
        is_flag=True,
        help="Report the completion times of messages, as workloads always do.",
    ),
    click.option(
        "--plot",
        metavar="F.svg",
        help="Draw completion times and slowdowns, a collective operation beside its bound, or with"
        " --pause-tree how pauses spread (.svg, .png, .pdf).",
    ),
    click.option(
        "--pause-tree", is_flag=True, help="Show which channel was paused because of which."
    ),
    click.option(
        "--record", metavar=f"F{SUFFIX}", help="Write all channels over time, for knotless replay."
    ),
    click.option(
        "--every",
        "every_us",
        type=Number(min=0.001, max=1e12, unit=MICROSECONDS),
        help="Virtual time between two recorded frames [default: a 500th of the duration, or 100"
        " us].",
    ),
    details_option,
    json_option,
)


class SimulationOptions(NamedTuple):
    """All that describes a scenario, but for its fabric and plan.

    ``watchdog`` and ``broadcast_limit`` are as their options pass them; None: none is given.
    """

    traffic: TrafficOptions
    workload: WorkloadOptions
    hosts: HostOptions
    endpoints: EndpointModel | None
    buffers: Buffers
    switches: SwitchOptions
    watchdog: Mapping[str, Any] | None
    broadcast_limit: Mapping[str, Any] | None
    links: LinkOptions
    run: RunOptions


def scenario_of(
    fabric: Fabric, request: PlanRequest, options: SimulationOptions, *, completions: bool
) -> Scenario:
    """Return the scenario that options describe; raises KnotlessError if they make no sense."""
    traffic, hosts, switches, run = options.traffic, options.hosts, options.switches, options.run
    kind = options.workload.kind
    sources = [traffic.trace is not None, bool(traffic.senders), kind is not None]
    if options.workload.sizes is None:
        sources.append(traffic.pattern is not None)
    if sources.count(True) != 1:
        raise SimulationError(
            "give one of --pattern, --trace, --send, --sizes, --incast, --collective, --goal and"
            " --chakra"
        )
    workload = None
    if kind is not None:
        options.workload.refuse_others(
            arrivals=traffic.arrivals is not None,
            pattern=traffic.pattern is not None,
            load=traffic.load_share is not None,
            message_bytes=traffic.message_bytes is not None,
        )
        workload = workload_of(fabric, options.workload, traffic.load_share, traffic.message_bytes)
    # Planning a far too large fabric would take minutes.
    pattern = traffic.pattern or ("uniform" if isinstance(workload, Flows) else None)
    in_phases = pattern is not None and pattern_named(pattern).in_phases
    check_memory(fabric, in_phases=in_phases)
    limit, messages = options.broadcast_limit or {}, options.endpoints
    plan = make_plan(fabric, request)
    priorities = plan.vcs * (1 if messages is None else len(messages.priorities))
    return Scenario(
        plan,
        pattern or ("multicast" if traffic.senders else "trace"),
        traffic.load(),
        trace=traffic.trace,
        computing=traffic.computing,
        buffers=options.buffers,
        packet_bytes=traffic.packet_bytes,
        cut_through=switches.cut_through,
        **(options.watchdog or {}),
        **{f"broadcast_{key}": value for key, value in limit.items()},
        link_changes=options.links.changes(),
        line_errors=options.links.line_errors,
        errors_in_a_row=options.links.errors_in_a_row,
        retry=options.links.retry,
        host_pauses=hosts.host_pauses,
        pause_limit=PauseLimit(hosts.pause_share),
        warm_up_us=run.warm_up,
        duration_us=run.duration,
        seed=run.seed,
        senders=traffic.senders,
        switch_settings=switches.switch_settings,
        workload=workload,
        completions=completions,
        take_turns=traffic.take_turns,
        transport=hosts.transport,
        ugal_threshold=switches.ugal_threshold,
        receiver_rates=hosts.receiver_rates,
        messages=messages,
        flow_control=resolved(request.flow_control, priorities),
    ).that_ends()
