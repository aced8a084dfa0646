"""``knotless simulate``: traffic on a plan, packet by packet, in virtual time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from knotless.base.files import write_whole
from knotless.cli.answer import print_answer
from knotless.cli.commands._plan_options import SWITCHES, plan_options
from knotless.cli.commands._switch_options import broadcast_options, watchdog_options
from knotless.cli.commands._verdict_options import endpoints_option
from knotless.cli.commands.simulate.answer import simulation_answer
from knotless.cli.commands.simulate.options import (
    FAILED,
    HostOptions,
    LinkOptions,
    Output,
    RunOptions,
    SimulationOptions,
    SwitchOptions,
    buffer_options,
    host_options,
    link_options,
    output_options,
    run_options,
    scenario_of,
    switch_options,
)
from knotless.cli.commands.simulate.traffic import (
    TrafficOptions,
    WorkloadOptions,
    traffic_options,
    workload_options,
)
from knotless.cli.help import OTHERS, Command, under
from knotless.cli.options import fabric_of, print_json, spec_argument
from knotless.cli.output import say
from knotless.cli.progress import Bar
from knotless.results import recording
from knotless.results.plots import check_format
from knotless.routing.request import PlanRequest
from knotless.simulation import Buffers, Result, Scenario, SimulationError, simulate
from knotless.simulation.collective_plot import group_times
from knotless.simulation.completion_plot import draw_completions
from knotless.simulation.pause_tree import pause_tree as pause_trees
from knotless.simulation.pause_tree import tree_lines
from knotless.simulation.pause_tree_plot import draw_pause_trees
from knotless.simulation.recorder import Recorder
from knotless.simulation.result import by_channel, by_flow, by_message, by_pool
from knotless.simulation.verdict import cautions
from knotless.topologies.fabric import with_lines

if TYPE_CHECKING:
    from knotless.traffic.endpoints import EndpointModel

TRAFFIC = "Traffic"


@click.command(name="simulate", cls=Command)
@spec_argument
@plan_options()
@under(SWITCHES, switch_options, ["switch_settings"])
@under(SWITCHES, buffer_options, ())
@under(SWITCHES, watchdog_options, ())
@under(SWITCHES, broadcast_options, ())
@under(TRAFFIC, traffic_options, ["pattern", "load_share", "message_bytes", "senders"])
@under(TRAFFIC, workload_options, ["sizes", "collective"])
@under("Hosts and links", host_options, ["transport"])
@under("Hosts and links", endpoints_option, ["endpoints"])
@under("Hosts and links", link_options, ["rate", "delay"])
@under("Run", run_options, ["duration", "seed"])
@under(OTHERS, output_options, ["plot", "record", "fail_on_deadlock", "details", "as_json"])
def command(
    spec: str,
    request: PlanRequest,
    traffic: TrafficOptions,
    workload: WorkloadOptions,
    hosts: HostOptions,
    endpoints: EndpointModel | None,
    buffers: Buffers,
    switches: SwitchOptions,
    watchdog: Mapping[str, Any] | None,
    broadcast_limit: Mapping[str, Any] | None,
    links: LinkOptions,
    run: RunOptions,
    output: Output,
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

    Example: knotless simulate fattree2,4 --pattern shift:5 --endpoints request-reply

    Example: knotless simulate flat,9 --incast 8:9000000 --transport dcqcn --switch ecn.yaml
    """
    if output.plot is not None:
        check_format(output.plot)
    if output.every_us is not None and output.record is None:
        raise SimulationError("--every is for --record")
    options = SimulationOptions(
        *(traffic, workload, hosts, endpoints, buffers, switches, watchdog, broadcast_limit),
        *(links, run),
    )
    with_completions = output.fct or (output.plot is not None and not output.pause_tree)
    fabric = with_lines(fabric_of(spec), links.rate, links.delay)
    scenario = scenario_of(fabric, request, options, completions=with_completions)
    for line in cautions(scenario):
        say(f"knotless: {line}", err=True)
    result = _simulated(scenario, run.cores, output)
    values = result.summary()
    trees = pause_trees(result.report, result.channels)
    _write(result, trees, output)
    if output.as_json:
        print_json({**values, "pause_tree": trees} if output.pause_tree else values)
    else:
        tree = [*tree_lines(trees)] if output.pause_tree else []
        print_answer(simulation_answer(spec, result, tree, output), details=output.details)
    deadlocked = output.fail_on_deadlock and values["deadlock"]
    undelivered = output.fail_on_nothing_delivered and not values["packets"]
    return FAILED if deadlocked or undelivered else 0


def _simulated(scenario: Scenario, cores: int, output: Output) -> Result:
    """Simulate with a progress bar, and write the recording, if one is wanted."""
    recorder = None if output.record is None else Recorder.for_scenario(scenario, output.every_us)
    with Bar("simulating", scenario.run.duration_us, counted=False, transient=True) as bar:
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
    if recorder is not None and output.record is not None:
        recording.write(output.record, recorder.recording(result))
    return result


def _write(result: Result, trees: list[dict[str, Any]], output: Output) -> None:
    """Write all values to a file, and draw the plot, as far as they are wanted."""
    values = result.summary()
    if output.out is not None:
        everything = {
            **values,
            "by_flow": by_flow(result),
            "by_channel": by_channel(result),
            "by_pool": by_pool(result),
            "by_message": by_message(result),
            "pause_tree": trees,
        }
        write_whole(output.out, json.dumps(everything) + "\n")
    title = f"{values['pattern']} on {values['fabric']}"
    if output.plot is not None and output.pause_tree:
        draw_pause_trees(title, trees, output.plot)
    elif output.plot is not None and result.completions is not None:
        draw_completions(title, result.completions, output.plot, group_times(result))
