"""Measuring one case: on a running fabric, then in the simulator for the same time."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from knotless.base.flow_control import FlowControl
from knotless.emulation import waiting
from knotless.simulation import Result, Scenario, simulate
from knotless.simulation.result import by_channel
from knotless.traffic import theory
from knotless_experiments.framework.routed import Measured, with_validity
from knotless_experiments.messages.exchange import ExchangeError, Messenger
from knotless_experiments.studies.agreement.cases import Case
from knotless_experiments.studies.agreement.columns import CLOCKS, COLUMNS
from knotless_experiments.studies.agreement.switches import (
    Inside,
    inside_emulated,
    inside_simulated,
)
from knotless_experiments.workloads import open_loop

if TYPE_CHECKING:
    from knotless.emulation.network import EmulatedFabric

START_LIMIT_S = 60.0
STARTED_FRAMES = 20
"""Frames that must arrive before a flow counts as started."""
DATAGRAM_BYTES = theory.UDP_PAYLOAD_BYTES
ENDLESS = 2**40
CLOSE = 0.01
CLOCK_UNIT_US = 1.0
EDGE_FRAMES = 2
"""Frames that may differ at the edges of the window."""

Channels = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Seen:
    """The result of a run; ``channels`` by name, with the simulator's names of counters."""

    flows_frames: list[int]
    channels: Channels
    lost_frames: int
    knot: list[str]
    frozen_ms: float | None
    inside: Inside = field(default_factory=Inside)


@dataclass(frozen=True)
class Emulated:
    """The emulator's result in ``window_us``, whose start is known to ``start_known_us``."""

    seen: Seen
    window_us: float
    start_known_us: float
    status: Mapping[str, Any]
    problems: list[str]


def both(lab: EmulatedFabric, case: Case, duration_s: float) -> Measured:
    """Run the case's scenario on the running fabric, and then in the simulator."""
    scenario = case.scenario
    live = emulated(lab, case, scenario, duration_s)
    result = simulate(scenario.lasting(live.window_us))
    row = compared(case, live, result)
    judged = with_validity(row, live.status, live.problems)
    return judged, samples(case, live.seen, simulated(result))


def emulated(lab: EmulatedFabric, case: Case, scenario: Scenario, duration_s: float) -> Emulated:
    """Let all flows send at full rate, empty all queues at once, and count from then on.

    The hosts' sockets stay full, so after the reset the fabric starts as in the simulator, with
    all senders at once.
    """
    daemon, control = lab.daemon, FlowControl(scenario.switching.flow_control)
    problems = open_loop.settle(daemon, control)
    pairs = [(flow.source, flow.destination) for flow in case.flows]
    with _flood(lab, pairs) as sending:
        problems += _started(daemon, case)
        begin_us, deadlock = daemon.reset(flow_control=control), None
        end_us = begin_us + duration_s * 1e6
        # Not in the midst of what happens at the same time.
        while (counters := daemon.counters())["now_us"] < end_us or counters["held"]:
            # The first one: a watchdog can end it.
            deadlock = deadlock or daemon.status()["deadlock"]
            time.sleep(waiting.LOOK_EVERY_S)
        status = daemon.status()
        deadlock = deadlock or status["deadlock"]
        if not sending():
            problems.append("the senders ended before the window did")
    channels = {one["channel"]: _counted(one, control) for one in counters["channels"]}
    seen = Seen(
        [channels[flow.last_channel]["rx_frames"] for flow in case.flows],
        channels,
        int(counters["lost_frames"]),
        [] if deadlock is None else list(deadlock["cycle"]),
        None if deadlock is None else (deadlock["since_us"] - begin_us) / 1e3,
        inside_emulated(counters),
    )
    window_us = counters["now_us"] - begin_us
    return Emulated(seen, window_us, CLOCK_UNIT_US, status, problems)


def simulated(result: Result) -> Seen:
    """Return the result of a simulation in the same form."""
    deadlock = result.report.deadlock
    return Seen(
        result.report.flow_packets.tolist(),
        {one["channel"]: one for one in by_channel(result)},
        result.lost_frames,
        result.knot,
        None if deadlock is None else deadlock.since_ps / 1e9,
        inside_simulated(result),
    )


@contextlib.contextmanager
def _flood(lab: EmulatedFabric, pairs: Sequence[tuple[str, str]]) -> Iterator[Callable[[], bool]]:
    """Send at full rate from every source to its destination during the block.

    Yields a function that tells whether all senders are still running.
    """
    with Messenger(lab) as messenger:

        def send() -> None:
            # The thread ends with the messenger.
            with contextlib.suppress(ExchangeError):
                messenger.phases(
                    [pairs], datagrams=ENDLESS, datagram_bytes=DATAGRAM_BYTES, limit_s=3600.0
                )

        thread = threading.Thread(target=send, name="flood")
        thread.start()
        try:
            yield thread.is_alive
        finally:
            messenger.end()
            thread.join()


def _started(daemon: waiting.Daemon, case: Case) -> list[str]:
    """Wait until every flow has delivered, or nothing moves; return problems."""

    def quiet() -> list[str]:
        arrived = {one["channel"]: one["rx_frames"] for one in daemon.counters()["channels"]}
        return [str(f) for f in case.flows if arrived[f.last_channel] < STARTED_FRAMES]

    def moving() -> bool:
        return not quiet() or daemon.status()["deadlock"] is not None

    if waiting.within(daemon, START_LIMIT_S, moving):
        return []
    return [f"did not start in {START_LIMIT_S:g} s: {', '.join(quiet())}"]


def _counted(channel: Mapping[str, Any], flow_control: FlowControl) -> dict[str, Any]:
    """Return a channel's counters in the simulator's form.

    802.3x pauses all priorities of a link together, and the emulator counts each of them.
    """
    priorities = channel["priorities"]
    paused = priorities if flow_control.switch_links.by_priority else priorities[:1]
    return {
        "tx_frames": channel["tx_frames"],
        "rx_frames": channel["rx_frames"],
        "pauses": sum(one["pauses"] for one in paused),
        "paused_us": sum(one["paused_us"] for one in paused),
        "account_peak_bytes": max(one["account_peak_bytes"] for one in priorities),
        "queue_peak_bytes": max(one["queue_peak_bytes"] for one in priorities),
    }


def compared(case: Case, live: Emulated, result: Result) -> dict[str, Any]:
    """Compare both results."""
    real, virtual = live.seen, simulated(result)
    names = [name for name, one in virtual.channels.items() if one["tx_frames"]]
    pairs = list(zip(real.flows_frames, virtual.flows_frames, strict=True))
    ratios = [a / b if b else float(a == b) for a, b in pairs]
    worst = max(ratios, key=lambda one: abs(one - 1))
    ratio = sum(real.flows_frames) / max(1, sum(virtual.flows_frames))
    sent = (real.inside.pause_frames, virtual.inside.pause_frames)
    counted = [*pairs, (real.lost_frames, virtual.lost_frames), sent]
    near = all(abs(a - b) <= max(EDGE_FRAMES, CLOSE * b) for a, b in counted)
    marks = real.inside.marks_agree(virtual.inside)
    storms_apart = real.inside.storms_apart(virtual.inside)
    frames_off = abs(sum(real.flows_frames) - sum(virtual.flows_frames))
    close = abs(ratio - 1) <= CLOSE or frames_off <= EDGE_FRAMES
    fabric = case.routed.fabric

    def total(seen: Seen, key: str) -> float:
        return float(sum(seen.channels[name][key] for name in names))

    def most(seen: Seen, key: str) -> int:
        return max(int(seen.channels[name][key]) for name in names)

    def apart(key: str) -> Iterator[tuple[str, int]]:
        for name in names:
            difference = int(real.channels[name][key]) - int(virtual.channels[name][key])
            if difference:
                yield name, difference

    def mbps(seen: Seen) -> float:
        return round(sum(seen.flows_frames) * 8 * DATAGRAM_BYTES / live.window_us, 4)

    return COLUMNS.row(
        fabric=case.routed.name,
        routes=case.routed.routes,
        pattern=case.pattern,
        flow_control=case.flow_control,
        settings=case.settings,
        seed=case.seed,
        rate_mbps=fabric.hosts[0].rate_mbps,
        delay_us=fabric.hosts[0].delay_us,
        repeat=case.repeat,
        window_s=round(live.window_us / 1e6, 6),
        start_known_us=round(live.start_known_us, 1),
        flows=[str(flow) for flow in case.flows],
        emulated_flows_frames=real.flows_frames,
        simulated_flows_frames=virtual.flows_frames,
        emulated_mbps=mbps(real),
        simulated_mbps=mbps(virtual),
        ratio=round(ratio, 5),
        worst_ratio=round(worst, 5),
        apart_frames=max(abs(a - b) for a, b in pairs),
        emulated_deadlock=bool(real.knot),
        simulated_deadlock=bool(virtual.knot),
        emulated_knot=real.knot,
        simulated_knot=virtual.knot,
        emulated_frozen_ms=None if real.frozen_ms is None else round(real.frozen_ms, 1),
        simulated_frozen_ms=None if virtual.frozen_ms is None else round(virtual.frozen_ms, 1),
        emulated_lost=real.lost_frames,
        simulated_lost=virtual.lost_frames,
        emulated_pauses=int(total(real, "pauses")),
        simulated_pauses=int(total(virtual, "pauses")),
        pauses_apart=max((abs(difference) for _, difference in apart("pauses")), default=0),
        emulated_paused_s=round(total(real, "paused_us") / 1e6, 4),
        simulated_paused_s=round(total(virtual, "paused_us") / 1e6, 4),
        emulated_account_peak_bytes=most(real, "account_peak_bytes"),
        simulated_account_peak_bytes=most(virtual, "account_peak_bytes"),
        channels=len(names),
        peaks_apart=[f"{name} {difference:+d}" for name, difference in apart("account_peak_bytes")],
        emulated_marked=real.inside.marked,
        simulated_marked=virtual.inside.marked,
        pools=len(virtual.inside.pools),
        pools_apart=list(real.inside.pools_apart(virtual.inside)),
        emulated_pause_frames=real.inside.pause_frames,
        simulated_pause_frames=virtual.inside.pause_frames,
        emulated_storms=real.inside.storms_detected,
        simulated_storms=virtual.inside.storms_detected,
        storms_apart=storms_apart,
        agrees=near and close and marks and real.knot == virtual.knot and not storms_apart,
        result_sha256=result.result_sha256,
    )


def samples(case: Case, real: Seen, virtual: Seen) -> list[dict[str, Any]]:
    """Return a sample for each channel that carried frames."""
    keys = ("fabric", "routes", "pattern", "flow_control", "settings", "seed")
    head = dict(zip(keys, case.key, strict=True))
    hosts = {host.name for host in case.routed.fabric.hosts}
    last = {flow.last_channel for flow in case.flows}
    lines = []
    for name, one in virtual.channels.items():
        if not one["tx_frames"]:
            continue
        line = {**head, "repeat": case.repeat, "channel": name}
        line["kind"] = "host" if name in hosts else "delivery" if name in last else "inner"
        for clock, seen in zip(CLOCKS, (real, virtual), strict=True):
            counted = seen.channels[name]
            line |= {f"{clock}_frames": counted["tx_frames"]}
            for key in ("pauses", "paused_us", "account_peak_bytes", "queue_peak_bytes"):
                line |= {f"{clock}_{key}": counted[key]}
        lines.append(line)
    return lines
