"""Running a scenario in slices, so that it can report progress and be interrupted."""

from __future__ import annotations

import time
from collections.abc import Callable

from knotless._core import simulator
from knotless._core.replay import Ends
from knotless.base.errors import SimulationError
from knotless.routing.choices.choice import Binding
from knotless.simulation.bubbles import use_bubbles
from knotless.simulation.channels import ChannelTable, channel_table
from knotless.simulation.collective_bound import collective_bound_ps
from knotless.simulation.completion import MAX_RECORDED, Completions
from knotless.simulation.memory import check_memory
from knotless.simulation.message_classes import classes_for, refuse_other_roles
from knotless.simulation.program import waiting
from knotless.simulation.recorder import Recorder, keep
from knotless.simulation.result import Result
from knotless.simulation.scenario import Scenario
from knotless.simulation.settings import BROADCAST
from knotless.simulation.tables import tables_of, trees_of
from knotless.simulation.tracefile import read_trace
from knotless.simulation.traffic import multicast_traffic, pattern_traffic
from knotless.simulation.units import PICOSECONDS_PER_US, picoseconds
from knotless.simulation.workload import ChakraTrace, CollectiveRun, Flows
from knotless.topologies.numbering import mac_value

MAX_CORES = 64
"""The most cores that a simulation uses (``MOST_PARTS`` in the simulator)."""
SLICE_EVENTS = 1 << 20
"""Events between checks for Ctrl-C and progress reports: some tens of milliseconds."""
FOREVER_PS = 2**64 - 1

Progress = Callable[[float, int], None]
"""Called with the virtual time in microseconds and the number of events so far."""
Runner = Callable[[simulator.Simulation, Callable[[], None]], None]
"""Runs a simulation to its end, calling a function now and then to report progress."""


def simulate(
    scenario: Scenario,
    progress: Progress | None = None,
    runner: Runner | None = None,
    *,
    cores: int = 1,
) -> Result:
    """Run a scenario and return its result; ``runner`` may record what happens.

    Without one, ``knotless.simulation.recorder.keep`` may ask for a recording. With several
    ``cores`` the result is the same; what cannot be divided is simulated on one.

    Raises
    ------
    SimulationError
        The scenario is invalid, or does not fit into memory.
    PatternError
        The pattern does not exist or does not fit the fabric.
    PlanError
        No switches can implement the plan.

    """
    began = time.perf_counter()
    simulation, table, flows, ends = prepare(scenario)
    if scenario.records_completions:
        simulation.record_completions(MAX_RECORDED)
    one_core_because = simulation.use_cores(cores) if cores > 1 else None
    prepared = time.perf_counter()

    def report_progress() -> None:
        if progress is not None:
            progress(simulation.now_ps / PICOSECONDS_PER_US, simulation.events)

    store_recording = keep.get() if runner is None else None
    recorder = None if store_recording is None else Recorder.for_scenario(scenario)
    if recorder is not None:
        runner = recorder.run
    if runner is None:
        while simulation.run(SLICE_EVENTS):
            report_progress()
    else:
        runner(simulation, report_progress)
    ended = time.perf_counter()
    report = simulation.report()
    # In a deadlock, or after the loss of a frame, processes wait for what does not come.
    comes = report.deadlock is None and not report.flow_lost.any()
    if ends is not None and scenario.run.duration_us is None and comes:
        waiting(scenario.plan.fabric, ends)
    result = Result(
        scenario,
        table,
        flows,
        report,
        ends,
        wall_s=ended - prepared,
        setup_s=prepared - began,
        completions=Completions.from_simulation(simulation)
        if scenario.records_completions
        else None,
        bounds_us=_bounds_us(scenario, simulation),
        cores=1 if one_core_because is not None else cores,
        one_core_because=one_core_because,
    )
    if store_recording is not None and recorder is not None:
        store_recording(recorder.recording(result))
    return result


def prepare(
    scenario: Scenario,
) -> tuple[simulator.Simulation, ChannelTable, list[tuple[str, str]], Ends | None]:
    """Return a simulation that has not started, its channels, and the names of its flows.

    For a recorded program, also the end times of its processes.
    """
    scenario.check_end()
    plan, demand = scenario.plan, scenario.demand
    endpoints, run = scenario.endpoints, scenario.run
    check_memory(plan.fabric, vlans=plan.vlan_count, in_phases=demand.in_phases)
    try:
        table = channel_table(
            plan.fabric,
            scenario.switching,
            packet_bytes=demand.packet_bytes,
            pause_limit=endpoints.pause_limit,
        )
    except ValueError as error:
        raise SimulationError(str(error)) from None
    state = scenario.forwarding
    trees = trees_of(state, table, demand.senders)
    traffic, flows, ends = _traffic(scenario)
    if endpoints.messages is not None:
        refuse_other_roles(endpoints.messages, plan.fabric, demand.trace, flows)
    place = table.place
    changes = []
    for change in sorted(run.link_changes, key=lambda change: change.at_us):
        if change.channel not in place:
            raise SimulationError(f"{plan.fabric.name} has no link at {change.channel!r}")
        changes.append((picoseconds(change.at_us), place[change.channel], change.up))
    try:
        simulation = simulator.Simulation(
            len(plan.fabric.switches),
            len(plan.fabric.hosts),
            table,
            tables_of(state, table),
            trees,
            traffic,
            seed=run.seed,
            warm_up_ps=picoseconds(run.warm_up_us),
            end_ps=FOREVER_PS if run.duration_us is None else picoseconds(run.duration_us),
            packet_bytes=demand.packet_bytes,
            header_bytes=scenario.switching.cut_through,
            link_changes=changes,
            broadcasts=[
                tree for tree, (_, group) in enumerate(demand.senders) if group == BROADCAST
            ],
            transport=None if endpoints.transport is None else endpoints.transport.for_model(),
            receivers=[
                (plan.fabric.host_index[host], round(rate_mbps * 1e6))
                for host, rate_mbps in endpoints.receiver_rates
            ],
            messages=classes_for(endpoints.messages, state, scenario.switching.flow_control),
        )
        use_bubbles(simulation, state, table, scenario.switching)
    except ValueError as error:
        raise SimulationError(str(error)) from None
    for pause in endpoints.host_pauses:
        until_ps = FOREVER_PS if pause.until_us is None else picoseconds(pause.until_us)
        simulation.pause_host(
            picoseconds(pause.at_us), plan.fabric.host_index[pause.host], until_ps
        )
    if demand.take_turns:
        simulation.take_turns()
    match plan.choice.binding:
        case Binding.HASH:
            macs = [mac_value(host.mac) for host in plan.fabric.hosts]
            simulation.hash_addresses(macs, plan.request.hash_seed)
        case Binding.ANY:
            simulation.spray()
        case Binding.FIRST_FREE:
            simulation.first_free()
        case Binding.QUEUES:
            simulation.choose_at_source(scenario.routes.ugal_threshold)
    return simulation, table, flows, ends


def _bounds_us(scenario: Scenario, simulation: simulator.Simulation) -> tuple[float, ...]:
    """Return the lower bound of each group of a collective operation; none on hubs."""
    workload, fabric = scenario.demand.workload, scenario.plan.fabric
    if not isinstance(workload, CollectiveRun) or fabric.hub is not None:
        return ()
    transfers, packet_bytes = workload.group_transfers(fabric), scenario.demand.packet_bytes
    return tuple(
        collective_bound_ps(simulation, fabric, transfers, places, packet_bytes)
        / PICOSECONDS_PER_US
        for places in workload.groups(fabric)
    )


def _traffic(
    scenario: Scenario,
) -> tuple[simulator.Traffic, list[tuple[str, str]], Ends | None]:
    fabric, demand, run = scenario.plan.fabric, scenario.demand, scenario.run
    if demand.workload is not None:
        each_host = [(host.name, "*") for host in fabric.hosts]
        if isinstance(demand.workload, Flows):
            traffic, ends = demand.workload.traffic(
                fabric,
                demand.chosen_pattern,
                packet_bytes=demand.packet_bytes,
                seed=run.seed,
                duration_us=run.duration_us,
            )
        elif isinstance(demand.workload, ChakraTrace):
            traffic, ends = demand.workload.traffic(fabric, demand.computing)
        else:
            traffic, ends = demand.workload.traffic(fabric)
        return traffic, each_host, ends
    if demand.trace is not None:
        traffic, ends = read_trace(demand.trace, fabric, demand.computing)
        return traffic, [(host.name, "*") for host in fabric.hosts], ends
    if demand.senders:
        traffic, flows = multicast_traffic(
            fabric,
            demand.senders,
            demand.load,
            packet_bytes=demand.packet_bytes,
        )
        return traffic, flows, None
    traffic, flows = pattern_traffic(
        fabric,
        demand.chosen_pattern,
        demand.load,
        packet_bytes=demand.packet_bytes,
        seed=run.seed,
    )
    return traffic, flows, None
