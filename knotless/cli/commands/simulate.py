"""``knotless simulate``: packet-level simulation of traffic on a fabric."""

from __future__ import annotations

import json
from typing import Any

import click

from knotless.base.files import write_whole
from knotless.base.finite_range import FiniteRange
from knotless.cli import complete
from knotless.cli.commands._broadcasts import broadcast_options
from knotless.cli.commands._fabric import DELAY, RATE
from knotless.cli.commands._options import (
    fabric_of,
    json_option,
    print_json,
    print_table,
    spec_argument,
)
from knotless.cli.commands._plan_options import plan_options
from knotless.cli.commands._progress import Bar
from knotless.cli.commands._watchdog import watchdog_options
from knotless.cli.output import say
from knotless.results import recording
from knotless.results.recording import SUFFIX
from knotless.routing.multicast import ALL
from knotless.routing.plan import make_plan
from knotless.routing.request import PlanRequest
from knotless.simulation import (
    Buffers,
    LinkChange,
    Load,
    Result,
    Scenario,
    SimulationError,
    simulate,
)
from knotless.simulation.memory import check_memory
from knotless.simulation.recorder import Recorder
from knotless.simulation.result import by_channel, by_flow
from knotless.simulation.scenario import BROADCAST, DEFAULT_PACKETS
from knotless.simulation.traffic import ARRIVALS
from knotless.simulation.verdict import cautions
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
    help="Factor for the compute times of a recorded program; 0: no computing.",
)
@click.option(
    "--send",
    multiple=True,
    metavar="HOST=N",
    help="This host sends to multicast group N, or to all hosts (HOST=all); may be repeated.",
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
@click.option("--queue", type=int, metavar="BYTES", help="Egress queue without flow control.")
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
@click.option("--fail-on-deadlock", is_flag=True, help=f"Exit with {DEADLOCKED} on deadlock.")
@click.option("--out", metavar="F.json", help="Write every flow and channel to this file.")
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
@json_option
def command(
    spec: str,
    request: PlanRequest,
    as_json: bool,
    out: str | None,
    record: str | None,
    every_us: float | None,
    fail_on_deadlock: bool,
    **given: Any,
) -> int:
    """Simulate a pattern's traffic, packet by packet, on the plan of SPEC.

    A seed gives the same result, bit for bit, on every machine; result_sha256 is its hash.

    Example: knotless simulate fattree3,8 --pattern permutation --rate 10000 --delay 1

    Example: knotless simulate ring,4 --engine dor --vcs 1 --select low-port --pattern shift:2

    Example: knotless simulate torus,4,4 --multicast 1=all --send h1=1 --load 0.2

    Example: knotless simulate torus,4,4 --send h1=all

    Example: knotless simulate hub,8 --pattern shift:1 --load 0.1
    """
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
        )
    if recorder is not None and record is not None:
        recording.write(record, recorder.recording(result))
    values = result.summary()
    if out is not None:
        write_whole(
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
    # Planning a far too large fabric would take minutes.
    in_phases = given["pattern"] is not None and pattern_named(given["pattern"]).in_phases
    check_memory(fabric, in_phases=in_phases)
    plan = make_plan(fabric, request)
    return Scenario(
        plan,
        given["pattern"] or ("multicast" if senders else "trace"),
        load,
        trace=given["trace"],
        computing=given["computing"],
        buffers=Buffers(given["queue"], given["xoff"], given["xon"], given["headroom"]),
        packet_bytes=given["packet_bytes"],
        cut_through=given["cut_through"],
        **(given["watchdog"] or {}),
        **{f"broadcast_{key}": value for key, value in (given["broadcast_limit"] or {}).items()},
        link_changes=tuple(changes),
        warm_up_us=given["warm_up"],
        duration_us=given["duration"],
        seed=given["seed"],
        senders=senders,
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


def _change(text: str, *, up: bool) -> LinkChange:
    channel, _, time_us = text.rpartition("@")
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
    frames, verdict = values.pop("knot_frames"), values.pop("verdict")
    problems = values.pop("problems")
    print_table(f"{values['pattern']} on {values['fabric']}", values)
    for channel, flows in frames.items():
        waiting = ", ".join(f"{count} of {flow}" for flow, count in flows.items())
        say(f"{channel} holds {waiting}")
    for problem in problems:
        say(problem)
    say(verdict)
