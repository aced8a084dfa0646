"""``knotless simulate``: packet-level simulation of traffic on a fabric."""

from __future__ import annotations

import json
from typing import Any

import click

from knotless.base.files import write_whole
from knotless.base.finite_range import FiniteRange
from knotless.cli import complete
from knotless.cli.answer import print_answer
from knotless.cli.commands._fabric import DELAY, RATE
from knotless.cli.commands._plan_options import plan_options
from knotless.cli.commands._simulate_answer import simulation_answer
from knotless.cli.commands._switch_options import (
    broadcast_options,
    credit_bytes_option,
    credit_unit_option,
    watchdog_options,
)
from knotless.cli.commands._switch_settings import switch_option
from knotless.cli.commands._workload import transport_option, workload_of, workload_options
from knotless.cli.options import (
    details_option,
    fabric_of,
    json_option,
    print_json,
    spec_argument,
)
from knotless.cli.output import say
from knotless.cli.progress import Bar
from knotless.results import recording
from knotless.results.plots import check_format
from knotless.results.recording import SUFFIX
from knotless.routing.multicast import ALL
from knotless.routing.plan import make_plan
from knotless.routing.request import PlanRequest
from knotless.simulation import (
    Buffers,
    HostPause,
    LinkChange,
    Load,
    PauseLimit,
    Scenario,
    SimulationError,
    simulate,
)
from knotless.simulation.collective_plot import group_times
from knotless.simulation.completion_plot import draw_completions
from knotless.simulation.memory import check_memory
from knotless.simulation.pause_tree import pause_tree as pause_trees
from knotless.simulation.pause_tree import tree_lines
from knotless.simulation.pause_tree_plot import draw_pause_trees
from knotless.simulation.recorder import Recorder
from knotless.simulation.result import (
    by_channel,
    by_flow,
    by_message,
    by_pool,
)
from knotless.simulation.run import MAX_CORES
from knotless.simulation.scenario import BROADCAST, DEFAULT_PACKETS
from knotless.simulation.traffic import ARRIVALS
from knotless.simulation.verdict import cautions
from knotless.simulation.workload import Flows
from knotless.topologies.fabric import Fabric, with_lines
from knotless.traffic.patterns import pattern_named, patterns

DEADLOCKED = 3
"""Exit status for ``--fail-on-deadlock``."""


@click.command(name="simulate")
@spec_argument
@plan_options()
@click.option(
    "--pattern",
    shell_complete=complete.patterns,
    help=f"Pattern: {', '.join(patterns())}, or shift:K.",
)
@click.option("--trace", metavar="F.csv", help="Messages at their times, or a recorded program.")
@click.option(
    "--computing",
    type=float,
    default=1.0,
    show_default=True,
    metavar="FACTOR",
    help="Factor for the compute times of --trace or --chakra; 0: no computing.",
)
@click.option(
    "--send",
    multiple=True,
    metavar="HOST=N",
    help="This host sends to multicast group N, or to all hosts (HOST=all); may be repeated.",
)
@click.option(
    "--ugal-threshold",
    type=int,
    default=0,
    show_default=True,
    metavar="BYTES",
    help="With --engine ugal, how many more bytes times hops the minimal path may have queued.",
)
@click.option("--load", "load_share", type=float, help="Fraction of each sender's line, 0 to 1.")
@click.option(
    "--arrivals",
    type=click.Choice(ARRIVALS),
    help="Arrival of messages [default: poisson with --load, acknowledged with --message-bytes,"
    " else saturate].",
)
@click.option("--message-bytes", type=int, help="Length of a message [default: one packet].")
@click.option("--messages", type=int, default=1, show_default=True, help="Messages per flow.")
@click.option("--barrier/--no-barrier", default=True, help="Wait between the phases of a pattern.")
@click.option("--packet-bytes", type=int, default=1500, show_default=True, help="MTU.")
@click.option("--xoff", type=int, metavar="BYTES", help="Ingress occupancy that pauses a sender.")
@click.option("--xon", type=int, metavar="BYTES", help="Ingress occupancy that resumes it.")
@click.option("--headroom", type=int, metavar="BYTES", help="Ingress buffer above XOFF.")
@credit_bytes_option
@credit_unit_option
@click.option("--queue", type=int, metavar="BYTES", help="Egress queue without flow control.")
@switch_option
@transport_option
@click.option(
    "--receiver-rate",
    multiple=True,
    metavar="HOST=MBPS",
    help="This host takes frames from its buffer at this rate; may be repeated [default: at once].",
)
@workload_options
@watchdog_options
@broadcast_options
@click.option(
    "--cut-through",
    type=int,
    default=0,
    metavar="BYTES",
    help="Forward a frame once this much has arrived [default: all of it].",
)
@click.option("--cut", multiple=True, metavar="SWITCH:PORT@US", help="Cut a link at a time.")
@click.option("--repair", multiple=True, metavar="SWITCH:PORT@US", help="Restore a link.")
@click.option(
    "--pause-host",
    multiple=True,
    metavar="HOST@US[-US]",
    help="A host pauses its link from a time on, for ever or until another; may be repeated.",
)
@click.option(
    "--host-pause",
    "pause_share",
    type=FiniteRange(min=0, max=1),
    default=PauseLimit().share,
    show_default=True,
    metavar="SHARE",
    help="Share of time for which a host may pause its link; beyond it, it is ignored. 1: no"
    " limit.",
)
@click.option(
    "--rate",
    type=RATE,
    metavar="MBPS",
    help="Rate of every link, Mbit/s.",
)
@click.option("--delay", type=DELAY, metavar="US", help="Delay of every link.")
@click.option("--warm-up", type=float, default=0.0, metavar="US", help="Time not counted.")
@click.option(
    "--duration",
    type=float,
    metavar="US",
    help=f"Virtual time [default: time of {DEFAULT_PACKETS} packets, or until all is sent].",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Seed of all randomness.",
)
@click.option(
    "--cores",
    type=click.IntRange(1, MAX_CORES),
    default=1,
    show_default=True,
    help="Cores to use, with the same result.",
)
@click.option("--fail-on-deadlock", is_flag=True, help=f"Exit with {DEADLOCKED} on deadlock.")
@click.option("--out", metavar="F.json", help="Write every flow and channel to this file.")
@click.option(
    "--turns",
    is_flag=True,
    help="Messages of a host take turns, packet by packet [default: one after the other].",
)
@click.option(
    "--fct",
    is_flag=True,
    help="Report the completion times of messages, as workloads always do.",
)
@click.option(
    "--plot",
    metavar="F.svg",
    help="Draw completion times and slowdowns, a collective operation beside its bound, or with"
    " --pause-tree how pauses spread (.svg, .png, .pdf).",
)
@click.option("--pause-tree", is_flag=True, help="Show which channel was paused because of which.")
@click.option(
    "--record", metavar=f"F{SUFFIX}", help="Write all channels over time, for knotless replay."
)
@click.option(
    "--every",
    "every_us",
    type=FiniteRange(min=0.001, max=1e12),
    metavar="US",
    help="Virtual time between two recorded frames [default: a 500th of the duration, or 100 us].",
)
@details_option
@json_option
def command(
    spec: str,
    request: PlanRequest,
    details: bool,
    as_json: bool,
    out: str | None,
    record: str | None,
    every_us: float | None,
    fail_on_deadlock: bool,
    plot: str | None,
    pause_tree: bool,
    cores: int,
    **given: Any,
) -> int:
    """Simulate a pattern's traffic, packet by packet, on the plan of SPEC.

    A seed gives the same result, bit for bit, on every machine; result_sha256 is its hash.

    Example: knotless simulate fattree3,8 --pattern permutation --rate 10000 --delay 1

    Example: knotless simulate ring,4 --engine dor --vcs 1 --select low-port --pattern shift:2

    Example: knotless simulate torus,4,4 --pattern tornado --flow-control credits --duration 1e5

    Example: knotless simulate torus,4,4 --multicast 1=all --send h1=1 --load 0.2

    Example: knotless simulate torus,4,4 --send h1=all

    Example: knotless simulate torus,4,4 --pattern tornado --pause-host h1@1000 --pause-tree

    Example: knotless simulate hub,8 --pattern shift:1 --load 0.1

    Example: knotless simulate fattree3,4 --sizes websearch --load 0.5 --rate 10000 --delay 1

    Example: knotless simulate fattree2,4 --pattern shift:4 --multipath ecmp

    Example: knotless simulate fattree3,4 --collective ring-allreduce --rate 10000 --delay 1

    Example: knotless simulate flat,9 --incast 8:9000000 --transport dcqcn --switch ecn.yaml
    """
    if plot is not None:
        check_format(plot)
        given["fct"] = given["fct"] or not pause_tree
    fabric = with_lines(fabric_of(spec), given["rate"], given["delay"])
    scenario = _scenario(fabric, request, given)
    for line in cautions(scenario):
        say(f"knotless: {line}", err=True)
    recorder = None
    if record is not None:
        recorder = Recorder.for_scenario(scenario, every_us)
    elif every_us is not None:
        raise SimulationError("--every is for --record")
    with Bar("simulating", scenario.duration_us, counted=False, transient=True) as bar:
        result = simulate(
            scenario,
            lambda now_us, events: bar.update(
                completed=now_us, description=f"{events / 1e6:.0f} M events"
            ),
            None if recorder is None else recorder.run,
            cores=cores,
        )
    if result.one_core_because is not None:
        say(f"knotless: simulated on one core: {result.one_core_because}", err=True)
    if recorder is not None and record is not None:
        recording.write(record, recorder.recording(result))
    values = result.summary()
    trees = pause_trees(result.report, result.channels)
    if out is not None:
        everything = {
            **values,
            "by_flow": by_flow(result),
            "by_channel": by_channel(result),
            "by_pool": by_pool(result),
            "by_message": by_message(result),
            "pause_tree": trees,
        }
        write_whole(out, json.dumps(everything) + "\n")
    title = f"{values['pattern']} on {values['fabric']}"
    if plot is not None and pause_tree:
        draw_pause_trees(title, trees, plot)
    elif plot is not None and result.completions is not None:
        draw_completions(title, result.completions, plot, group_times(result))
    if as_json:
        print_json({**values, "pause_tree": trees} if pause_tree else values)
    else:
        tree = [*tree_lines(trees)] if pause_tree else []
        print_answer(simulation_answer(spec, result, tree), details=details)
    return DEADLOCKED if fail_on_deadlock and values["deadlock"] else 0


def _scenario(fabric: Fabric, request: PlanRequest, given: dict[str, Any]) -> Scenario:
    senders = tuple(_sender(text) for text in given["send"])
    options = given["workload"]
    kinds = [given["trace"] is None, not senders, options is None]
    if options is None or options["sizes"] is None:
        kinds.append(given["pattern"] is None)
    if kinds.count(False) != 1:
        raise SimulationError(
            "give one of --pattern, --trace, --send, --sizes, --incast, --collective, --goal and"
            " --chakra"
        )
    workload = None if options is None else workload_of(fabric, options, given)
    if given["load_share"] is not None:
        usual = "poisson"
    else:
        usual = "saturate" if given["message_bytes"] is None else "acknowledged"
    load = Load(
        arrivals=given["arrivals"] or usual,
        load=1.0 if given["load_share"] is None else given["load_share"],
        message_bytes=given["message_bytes"],
        messages=given["messages"],
        barrier=given["barrier"],
    )
    changes = [_change(text, up=False) for text in given["cut"]]
    changes += [_change(text, up=True) for text in given["repair"]]
    # Planning a far too large fabric would take minutes.
    pattern = given["pattern"] or ("uniform" if isinstance(workload, Flows) else None)
    in_phases = pattern is not None and pattern_named(pattern).in_phases
    check_memory(fabric, in_phases=in_phases)
    plan = make_plan(fabric, request)
    return Scenario(
        plan,
        pattern or ("multicast" if senders else "trace"),
        load,
        trace=given["trace"],
        computing=given["computing"],
        buffers=Buffers(
            queue=given["queue"],
            xoff=given["xoff"],
            xon=given["xon"],
            headroom=given["headroom"],
            credit=given["credit_bytes"],
            credit_unit=given["credit_unit"],
        ),
        packet_bytes=given["packet_bytes"],
        cut_through=given["cut_through"],
        **(given["watchdog"] or {}),
        **{f"broadcast_{key}": value for key, value in (given["broadcast_limit"] or {}).items()},
        link_changes=tuple(changes),
        host_pauses=tuple(_host_pause(text) for text in given["pause_host"]),
        pause_limit=PauseLimit(given["pause_share"]),
        warm_up_us=given["warm_up"],
        duration_us=given["duration"],
        seed=given["seed"],
        senders=senders,
        switch_settings=given["switch_settings"],
        workload=workload,
        completions=given["fct"],
        take_turns=given["turns"],
        transport=given["transport"],
        ugal_threshold=given["ugal_threshold"],
        receiver_rates=tuple(_receiver_rate(text) for text in given["receiver_rate"]),
    ).that_ends()


def _sender(text: str) -> tuple[str, int]:
    host, equals, group = text.rpartition("=")
    if equals and group == ALL:
        return host, BROADCAST
    if not (equals and group.isdecimal() and len(group) < 10 and int(group)):
        raise SimulationError(
            f"{text!r}: a host that sends to multicast group N is written HOST=N, to all HOST={ALL}"
        )
    return host, int(group)


def _receiver_rate(text: str) -> tuple[str, float]:
    host, equals, rate_mbps = text.rpartition("=")
    try:
        return host, float(rate_mbps if equals else "")
    except ValueError:
        hint = f"{text!r}: a host and the rate at which it receives are written HOST=MBPS"
        raise SimulationError(hint) from None


def _change(text: str, *, up: bool) -> LinkChange:
    channel, _, time_us = text.rpartition("@")
    try:
        return LinkChange(float(time_us), channel, up)
    except ValueError:
        hint = f"{text!r}: a link and a time are written SWITCH:PORT@MICROSECONDS"
        raise SimulationError(hint) from None


def _host_pause(text: str) -> HostPause:
    host, at, times = text.rpartition("@")
    begins, dash, ends = times.partition("-")
    try:
        if at and host:
            return HostPause(float(begins), host, float(ends) if dash else None)
    except ValueError:
        pass
    raise SimulationError(
        f"{text!r}: a host and when it pauses its link are written HOST@MICROSECONDS, or with"
        " an end HOST@MICROSECONDS-MICROSECONDS"
    )
