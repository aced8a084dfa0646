"""One run on a live fabric: start the senders, watch the emulator's counters, judge."""

from __future__ import annotations

import contextlib
import math
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

from experiments import iperf, theory
from experiments.deadlock.matrix import Case
from experiments.deadlock.row import Row
from experiments.deadlock.scenario import Scenario

READ_EVERY_S = 0.1
START_LIMIT_S = 12.0
WARM_UP_S = 1.0
FROZEN_WINDOW_S = 2.0
END_LIMIT_S = 15.0
QUIET_LIMIT_S = 10.0
SPARE_S = 3
"""How much longer senders send than they are measured: their starts take that long at most."""
ATTEMPTS = 3
STARTED_FRAMES = 50
"""A flow has started when this many full frames' worth of payload has arrived."""
START_JITTER_S = 0.02
"""Senders start in a seeded order, up to this far apart, so as not to run in step."""


class Daemon(Protocol):
    """What is asked of the link emulator; see docs/emulator-protocol.md."""

    def status(self) -> Mapping[str, Any]:
        """Return its ``status``."""

    def counters(self) -> Mapping[str, Any]:
        """Return its ``counters``."""

    def reset(self, *, flow_control: str) -> None:
        """Empty all queues, zero all counters, set every link's flow control."""


class Lab(Protocol):
    """A running fabric."""

    @property
    def daemon(self) -> Daemon:
        """The link emulator."""

    def host(self, name: str) -> iperf.Host:
        """Return a running host."""


@dataclass(frozen=True)
class Reading:
    """The counters at one moment, ``at_us`` on the daemon's clock; lists in order of flows."""

    at_us: int
    delivered_frames: tuple[int, ...]
    delivered_payload_bytes: tuple[int, ...]
    sent_frames: int
    all_delivered_frames: int
    lost_frames: int
    drops: Mapping[str, int]


def read(daemon: Daemon, scenario: Scenario, protocol: theory.Protocol) -> Reading:
    """Read the counters. Payload is what came out to the receiving host, less headers.

    A host gets one flow's data and, with TCP, the acknowledgements of the flow it sends,
    which are header alone: so bytes less headers is the payload of the one flow.
    """
    counters = daemon.counters()
    channels = {channel["channel"]: channel for channel in counters["channels"]}
    last = [channels[flow.last_channel] for flow in scenario.flows]
    header = theory.HEADER_BYTES[protocol] + theory.FCS_BYTES
    drops: dict[str, int] = {}
    for channel in counters["channels"]:
        for kind, count in channel["drops"].items():
            if count:
                drops[kind] = drops.get(kind, 0) + int(count)
    return Reading(
        at_us=int(counters["now_us"]),
        delivered_frames=tuple(int(channel["rx_frames"]) for channel in last),
        delivered_payload_bytes=tuple(
            int(channel["rx_bytes"]) - header * int(channel["rx_frames"]) for channel in last
        ),
        sent_frames=sum(int(channels[host.name]["tx_frames"]) for host in scenario.fabric.hosts),
        all_delivered_frames=sum(int(channel["rx_frames"]) for channel in last),
        lost_frames=int(counters["lost_frames"]),
        drops=drops,
    )


def goodput_mbps(before: Reading, after: Reading) -> list[float]:
    """Return each flow's payload in Mbit/s between two readings."""
    window_us = max(1, after.at_us - before.at_us)
    pairs = zip(before.delivered_payload_bytes, after.delivered_payload_bytes, strict=True)
    return [8 * max(0, late - early) / window_us for early, late in pairs]


@dataclass(frozen=True)
class Watch:
    """All that was read in one run, from zeroed counters to the end of the senders."""

    readings: list[Reading]
    first: int
    """Index of the reading at which the measuring window opens."""
    last: int
    """Index of the reading at which it closes."""
    deadlock: Mapping[str, Any] | None
    status: Mapping[str, Any]
    problems: list[str]


def settle(daemon: Daemon, flow_control: str) -> list[str]:
    """Empty the fabric, wait until nothing moves in it, zero all; returns what is wrong.

    It empties without flow control: what the hosts still held back when their senders
    were killed would freeze a cyclic fabric again.
    """
    daemon.reset(flow_control="none")
    deadline = time.monotonic() + QUIET_LIMIT_S
    before, quiet = -1, False
    while time.monotonic() < deadline:
        sent = sum(int(channel["tx_frames"]) for channel in daemon.counters()["channels"])
        quiet = sent == before and int(daemon.status()["frames_in_network"]) == 0
        if quiet:
            break
        before = sent
        time.sleep(READ_EVERY_S)
    daemon.reset(flow_control=flow_control)
    return [] if quiet else [f"the fabric was not quiet {QUIET_LIMIT_S:g} s after the run before"]


@contextlib.contextmanager
def senders(
    lab: Lab, scenario: Scenario, protocol: theory.Protocol, seconds: float, seed: int
) -> Iterator[list[iperf.Iperf]]:
    """Run an iperf3 server and client for each flow; at the end of the block all are gone."""
    with contextlib.ExitStack() as stack:
        for flow in scenario.flows:
            server = iperf.start_server(lab.host(flow.destination))
            stack.callback(server.close)
        chance = random.Random(seed)  # noqa: S311 - not for secrets
        order = list(range(len(scenario.flows)))
        chance.shuffle(order)
        clients: dict[int, iperf.Iperf] = {}
        addresses = {host.name: host.ip for host in scenario.fabric.hosts}
        for index in order:
            flow = scenario.flows[index]
            args = iperf.client_args(addresses[flow.destination], protocol, seconds)
            clients[index] = iperf.Iperf(lab.host(flow.source), args)
            stack.callback(clients[index].close)
            time.sleep(chance.uniform(0, START_JITTER_S))
        yield [clients[index] for index in range(len(scenario.flows))]


def launch(
    lab: Lab, scenario: Scenario, case: Case, clients: list[iperf.Iperf]
) -> tuple[list[Reading], list[str]]:
    """Wait until every flow has delivered, or all stand still; returns readings and problems.

    The readings count from zero: from the senders' start, or, where frames can be lost,
    from the moment when they all send.

    Where frames can be lost, iperf3's own connection would be lost among them, and some
    flows would start when others have ended. So the senders start with PAUSE on every
    link, under which nothing is lost; now that they all send, the fabric is emptied, the
    flow control becomes the case's, and the counters begin from zero.
    """
    daemon = lab.daemon
    enough = STARTED_FRAMES * theory.PAYLOAD_BYTES[case.protocol]
    deadline = time.monotonic() + START_LIMIT_S
    readings = []
    while True:
        readings.append(read(daemon, scenario, case.protocol))
        payload = readings[-1].delivered_payload_bytes
        if min(payload) >= enough or daemon.status()["deadlock"] is not None:
            break
        if time.monotonic() > deadline or not all(client.running for client in clients):
            flows = zip(scenario.flows, payload, strict=True)
            quiet = [str(flow) for flow, delivered in flows if delivered < enough]
            return readings, [f"did not start in {START_LIMIT_S:g} s: {', '.join(quiet)}"]
        time.sleep(READ_EVERY_S)
    if case.loses:
        daemon.reset(flow_control=case.flow_control)
        readings = [read(daemon, scenario, case.protocol)]
    return readings, []


def watch(
    lab: Lab,
    scenario: Scenario,
    protocol: theory.Protocol,
    clients: list[iperf.Iperf],
    duration_s: float,
    readings: list[Reading],
) -> Watch:
    """Go on reading until the senders end, or until a deadlock has stood for its window.

    The window opens :data:`WARM_UP_S` after the launch and lasts ``duration_s``. In
    a deadlock it opens when the detector has reported it and lasts
    :data:`FROZEN_WINDOW_S`. All senders must send until the window closes.
    """
    daemon = lab.daemon
    launched = len(readings) - 1
    first: int | None = None
    last: int | None = None
    deadlock: Mapping[str, Any] | None = None
    problems: list[str] = []
    deadline = time.monotonic() + WARM_UP_S + duration_s + END_LIMIT_S
    while deadlock is None or last is None:
        time.sleep(READ_EVERY_S)
        sending = [client.running for client in clients]
        status = daemon.status()
        readings.append(read(daemon, scenario, protocol))
        here = len(readings) - 1
        if deadlock is None and status["deadlock"] is not None:
            deadlock, first, last = status["deadlock"], here, None
        if first is None:
            first = here if _seconds(readings[launched:]) >= WARM_UP_S else None
        elif last is None:
            length_s = duration_s if deadlock is None else FROZEN_WINDOW_S
            last = here if _seconds(readings[first:]) >= length_s else None
        if last is None and not all(sending) and deadlock is None:
            problems.append("a sender ended before the measuring window did")
            first, last = first or 0, here
        if deadlock is None and (not any(sending) or time.monotonic() > deadline):
            break
    if deadlock is None:
        problems += _drain(daemon)
        readings.append(read(daemon, scenario, protocol))
    first, last = first or 0, len(readings) - 1 if last is None else last
    return Watch(readings, first, last, deadlock, daemon.status(), problems)


def _seconds(readings: list[Reading]) -> float:
    return (readings[-1].at_us - readings[0].at_us) / 1e6


def _drain(daemon: Daemon) -> list[str]:
    """Wait until every frame is out of the network, so that losses are counted exactly."""
    deadline = time.monotonic() + QUIET_LIMIT_S
    while time.monotonic() < deadline:
        if int(daemon.status()["frames_in_network"]) == 0:
            return []
        time.sleep(READ_EVERY_S)
    return [f"frames were still in the fabric {QUIET_LIMIT_S:g} s after the senders' end"]


def run_case(
    lab: Lab, scenario: Scenario, case: Case, *, duration_s: float, seed: int
) -> tuple[Row, list[dict[str, Any]]]:
    """Run one case on a running fabric; returns its row, and its samples without ``row``."""
    problems = settle(lab.daemon, "all" if case.loses else case.flow_control)
    send_s = math.ceil(duration_s + WARM_UP_S + SPARE_S)
    with senders(lab, scenario, case.protocol, send_s, seed) as clients:
        readings, missing = launch(lab, scenario, case, clients)
        seen = watch(lab, scenario, case.protocol, clients, duration_s, readings)
        texts = ["" if client.running else client.output() for client in clients]
    said = [iperf.parse_summary(text) for text in texts]
    return judge(scenario, case, seen, said, problems + missing), samples(scenario, case, seen)


def run_in_time(
    lab: Lab, scenario: Scenario, case: Case, *, duration_s: float, seed: int
) -> tuple[Row, list[dict[str, Any]]]:
    """Run one case, again when the machine was too late for it, at most :data:`ATTEMPTS` times.

    Only lateness is a reason to try again, never what was found; the row keeps the rows
    of the attempts before it.
    """
    earlier: list[dict[str, Any]] = []
    while True:
        row, lines = run_case(lab, scenario, case, duration_s=duration_s, seed=seed)
        if not row.late or len(earlier) + 1 == ATTEMPTS:
            return replace(row, earlier_attempts=earlier), lines
        earlier.append(row.as_json())


def judge(
    scenario: Scenario,
    case: Case,
    seen: Watch,
    said: list[iperf.Summary | None],
    problems: list[str],
) -> Row:
    """Make the row of a run from what was seen of it."""
    opened, closed, end = (seen.readings[i] for i in (seen.first, seen.last, -1))
    lateness = seen.status["lateness_us"]
    problems = problems + seen.problems
    late = not seen.status["valid"]
    if late:
        limit = lateness.get("limit")
        problems.append(f"lateness p99 is {lateness['p99']} us, over its limit of {limit} us")
    if end.drops.get("unforwarded"):
        problems.append(f"the switches lost {end.drops['unforwarded']} frames themselves")
    lost = [summary.lost for summary in said if summary is not None and summary.lost is not None]
    shares = scenario.theory_mbps(case.protocol)
    frozen_after_s = None
    if seen.deadlock is not None:
        frozen_after_s = round((seen.deadlock["since_us"] - seen.readings[0].at_us) / 1e6, 3)
    return Row(
        routes=case.routes,
        flow_control=case.flow_control,
        protocol=case.protocol,
        repeat=case.repeat,
        flows=[str(flow) for flow in scenario.flows],
        flows_mbps=[round(mbps, 4) for mbps in goodput_mbps(opened, closed)],
        theory_mbps=round(min(shares), 4),
        theory_flows_mbps=[round(share, 4) for share in shares],
        lost_frames=end.lost_frames,
        deadlock=seen.deadlock is not None,
        cycle=list(seen.deadlock["cycle"]) if seen.deadlock is not None else [],
        predicted_cycle=scenario.predicted_cycle(case.flow_control),
        lateness_us_p99=lateness["p99"],
        valid=not problems,
        late=late,
        window_s=round((closed.at_us - opened.at_us) / 1e6, 3),
        frozen_after_s=frozen_after_s,
        drops=dict(end.drops),
        sent_frames=end.sent_frames,
        delivered_frames=end.all_delivered_frames,
        iperf3_flows_mbps=[round(s.goodput_mbps, 4) if s is not None else None for s in said],
        iperf3_lost=sum(lost) if len(lost) == len(said) else None,
        problems=problems,
    )


def samples(scenario: Scenario, case: Case, seen: Watch) -> list[dict[str, Any]]:
    """Return the timeline of a run: a line for each flow at each reading but the first."""
    zero = seen.readings[0]
    lines = []
    for here, (before, after) in enumerate(pairwise(seen.readings), 1):
        for index, mbps in enumerate(goodput_mbps(before, after)):
            lines.append(
                {
                    "routes": case.routes,
                    "flow_control": case.flow_control,
                    "protocol": case.protocol,
                    "repeat": case.repeat,
                    "t_s": (after.at_us - zero.at_us) / 1e6,
                    "flow": str(scenario.flows[index]),
                    "goodput_mbps": mbps,
                    "delivered_frames": after.delivered_frames[index],
                    "lost_frames": after.lost_frames,
                    "in_window": seen.first < here <= seen.last,
                }
            )
    return lines
