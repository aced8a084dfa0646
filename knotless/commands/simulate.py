"""``knotless simulate``: run traffic through a simulated fabric."""

from __future__ import annotations

import json
from typing import Any

import click

from experiments.framework.options import FiniteRange
from knotless.commands._fabric import fabric_of
from knotless.commands._options import json_option, print_json, print_table, write_text
from knotless.commands._plan_options import plan_options
from knotless.commands._progress import Bar
from routing.plan import make_plan
from routing.request import PlanRequest
from simulation import Buffers, LinkChange, Load, Result, Scenario, SimulationError, simulate
from simulation.detail import by_channel, by_flow
from simulation.memory import check_memory
from simulation.traffic import ARRIVALS
from topologies.fabric import Fabric
from traffic.patterns import pattern_named, patterns

USUAL_PACKETS = 2000
"""Traffic without an end runs, unless told otherwise, for as long as a host sends so many."""
DEADLOCKED = 3
"""Exit status for ``--fail-on-deadlock``."""


@click.command(name="simulate")
@click.argument("spec")
@plan_options()
@click.option("--pattern", help=f"Who sends to whom: {', '.join(patterns())}, or shift:K.")
@click.option("--trace", metavar="F.csv", help="Messages at their times, or a recorded program.")
@click.option(
    "--computing",
    type=float,
    default=1.0,
    show_default=True,
    metavar="FACTOR",
    help="Of what a recorded program computed, so much time passes; 0: none.",
)
@click.option(
    "--send",
    multiple=True,
    metavar="HOST=N",
    help="This host sends to multicast group N; may be given several times.",
)
@click.option("--load", "load_share", type=float, help="Share of each sender's line, 0 to 1.")
@click.option(
    "--arrivals",
    type=click.Choice(ARRIVALS),
    help="When messages come [default: poisson with --load, acknowledged with --message-bytes,"
    " else saturate].",
)
@click.option("--message-bytes", type=int, help="Length of a message [default: one packet].")
@click.option("--messages", type=int, default=1, show_default=True, help="Of each flow.")
@click.option("--barrier/--no-barrier", default=True, help="Between phases of a pattern in phases.")
@click.option("--packet-bytes", type=int, default=1500, show_default=True, help="MTU.")
@click.option("--xoff", type=int, metavar="BYTES", help="Account over which a sender is paused.")
@click.option("--xon", type=int, metavar="BYTES", help="Account at which it is resumed.")
@click.option("--headroom", type=int, metavar="BYTES", help="Room above XOFF.")
@click.option("--queue", type=int, metavar="BYTES", help="Egress queue without flow control.")
@click.option("--watchdog", type=float, metavar="US", help="Empty queues paused for longer.")
@click.option(
    "--cut-through",
    type=int,
    default=0,
    metavar="BYTES",
    help="Send a frame on when so much of it is there [default: all of it].",
)
@click.option("--cut", multiple=True, metavar="SWITCH:PORT@US", help="Cut a link at a time.")
@click.option("--repair", multiple=True, metavar="SWITCH:PORT@US", help="Restore a link.")
@click.option(
    "--rate",
    type=FiniteRange(min=0, min_open=True),
    metavar="MBPS",
    help="Rate of every link, Mbit/s.",
)
@click.option("--delay", type=FiniteRange(min=0), metavar="US", help="Delay of every link.")
@click.option("--warm-up", type=float, default=0.0, metavar="US", help="Count nothing before.")
@click.option(
    "--duration",
    type=float,
    metavar="US",
    help=f"Virtual time [default: {USUAL_PACKETS} packets' time, or until all is sent].",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of everything random.")
@click.option("--fail-on-deadlock", is_flag=True, help=f"Exit {DEADLOCKED} when it deadlocks.")
@click.option("--out", metavar="F.json", help="Write every flow and channel to this file.")
@json_option
def command(
    spec: str,
    request: PlanRequest,
    as_json: bool,
    out: str | None,
    fail_on_deadlock: bool,
    **given: Any,
) -> int:
    """Run a pattern's traffic, packet by packet, through the plan of SPEC.

    One seed gives one result, to the bit, on every machine: result_sha256 is its hash.

    Example: knotless simulate fattree3,8 --pattern permutation --rate 10000 --delay 1

    Example: knotless simulate ring,4 --engine dor --vcs 1 --select low-port --pattern shift:2

    Example: knotless simulate torus,4,4 --multicast 1=all --send h1=1 --load 0.2

    Example: knotless simulate hub,8 --pattern shift:1 --load 0.1
    """
    fabric = fabric_of(spec, given["rate"], given["delay"])
    scenario = _scenario(fabric, request, given)
    with Bar("simulating", scenario.duration_us, counted=False, transient=True) as bar:
        result = simulate(
            scenario,
            lambda now_us, events: bar.update(
                completed=now_us, description=f"{events / 1e6:.0f} M events"
            ),
        )
    values = result.summary()
    if out is not None:
        write_text(
            out,
            json.dumps({**values, "by_flow": by_flow(result), "by_channel": by_channel(result)})
            + "\n",
        )
    if as_json:
        print_json(values)
    else:
        _show(result)
    return DEADLOCKED if fail_on_deadlock and values["deadlock"] else 0


def _scenario(fabric: Fabric, request: PlanRequest, given: dict[str, Any]) -> Scenario:
    senders = tuple(_sender(text) for text in given["send"])
    if [given["pattern"] is None, given["trace"] is None, not senders].count(False) != 1:
        raise SimulationError("give one of --pattern, --trace and --send")
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
    # The plan of a fabric far too large would take minutes.
    in_phases = given["pattern"] is not None and pattern_named(given["pattern"]).in_phases
    check_memory(fabric, in_phases=in_phases)
    plan = make_plan(fabric, request)
    scenario = Scenario(
        plan,
        given["pattern"] or ("multicast" if senders else "trace"),
        load,
        trace=given["trace"],
        computing=given["computing"],
        buffers=Buffers(given["queue"], given["xoff"], given["xon"], given["headroom"]),
        packet_bytes=given["packet_bytes"],
        cut_through=given["cut_through"],
        watchdog_us=given["watchdog"],
        link_changes=tuple(changes),
        warm_up_us=given["warm_up"],
        duration_us=given["duration"],
        seed=given["seed"],
        senders=senders,
    )
    if scenario.duration_us is None and not scenario.ends:
        slowest_mbps = min(host.rate_mbps for host in fabric.hosts)
        usual_us = 8 * USUAL_PACKETS * scenario.packet_bytes / slowest_mbps
        return scenario.lasting(scenario.warm_up_us + usual_us)
    return scenario


def _sender(text: str) -> tuple[str, int]:
    host, equals, group = text.rpartition("=")
    if not (equals and group.isdecimal() and len(group) < 10):
        raise SimulationError(f"{text!r}: who sends to which multicast group is written HOST=N")
    return host, int(group)


def _change(text: str, *, up: bool) -> LinkChange:
    channel, at, time_us = text.rpartition("@")
    try:
        return LinkChange(float(time_us), channel, up)
    except ValueError:
        hint = f"{text!r}: a link and a time are written SWITCH:PORT@MICROSECONDS"
        raise SimulationError(hint) from None


def _show(result: Result) -> None:
    values = result.summary()
    for name in ("latency_us", "completion_us", "drops"):
        counted = values.pop(name)
        values[name] = ", ".join(f"{key} {value:g}" for key, value in counted.items())
    frames = values.pop("knot_frames")
    print_table(f"{values['pattern']} on {values['fabric']}", values)
    for channel, flows in frames.items():
        waiting = ", ".join(f"{count} of {flow}" for flow, count in flows.items())
        click.echo(f"{channel} holds {waiting}")
