"""Open-loop traffic on a live fabric: iperf3 at full rate, measured by the emulator's counters."""

from __future__ import annotations

import contextlib
import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from typing import Protocol as Interface

from knotless.base.flow_control import FlowControl
from knotless.emulation import waiting
from knotless.emulation.waiting import QUIET_LIMIT_S, Daemon, emptied, is_empty, within
from knotless.topologies.fabric import Fabric
from knotless.traffic import theory
from knotless.traffic.flows import Flow
from knotless_experiments.workloads import iperf

START_LIMIT_S = 12.0
"""As all times here, in virtual time."""
WARM_UP_S = 1.0
"""On links of :data:`SLOW_MBPS`, as the next; see :func:`pace`."""
FROZEN_WINDOW_S = 2.0
SLOW_MBPS = 10.0
DETECTED_S = 0.6
"""A deadlock that began in the window has been reported so long after it: the emulator reports one
that has lasted for half a second."""
END_LIMIT_S = 15.0
SPARE_S = 3
"""Time for which senders send in addition to the measurement: the maximum time of their starts,
if flows have a good part of a line."""
STARTED_FRAMES = 50
"""A flow has started when this many full frames' worth of payload has arrived."""
START_JITTER_S = 0.02
"""Senders start in a seeded order, up to this far apart, so that they do not synchronise."""


class Lab(Interface):
    """A running fabric."""

    @property
    def daemon(self) -> Daemon:
        """The link emulator."""

    def host(self, name: str) -> iperf.Host:
        """Return a running host."""


class Traffic(Interface):
    """A fabric and its flows."""

    @property
    def fabric(self) -> Fabric:
        """The fabric."""

    @property
    def flows(self) -> Sequence[Flow]:
        """The flows; no host sends or receives more than one."""


@dataclass(frozen=True)
class Reading:
    """The counters at one moment, ``at_us`` in virtual time; lists in order of flows."""

    at_us: int
    delivered_frames: tuple[int, ...]
    delivered_payload_bytes: tuple[int, ...]
    sent_frames: int
    all_delivered_frames: int
    lost_frames: int
    drops: Mapping[str, int]


def read(daemon: Daemon, traffic: Traffic, protocol: theory.Protocol) -> Reading:
    """Read the counters. Payload is what the receiving host got, without headers.

    A host gets one flow's data and, with TCP, the acknowledgements of the flow it sends,
    which are only headers: so bytes without headers are the payload of the one flow.
    """
    counters = daemon.counters()
    channels = {channel["channel"]: channel for channel in counters["channels"]}
    last = [channels[flow.last_channel] for flow in traffic.flows]
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
        sent_frames=sum(int(channels[host.name]["tx_frames"]) for host in traffic.fabric.hosts),
        all_delivered_frames=sum(int(channel["rx_frames"]) for channel in last),
        lost_frames=int(counters["lost_frames"]),
        drops=drops,
    )


def pace(rate_mbps: float) -> float:
    """Return how much shorter times are on links of this rate than on those of :data:`SLOW_MBPS`.

    At most 1. A warm-up and a window then hold as many frames at every rate.
    """
    return min(1.0, SLOW_MBPS / rate_mbps)


def goodput_mbps(before: Reading, after: Reading) -> list[float]:
    """Return each flow's payload in Mbit/s between two readings."""
    window_us = max(1, after.at_us - before.at_us)
    pairs = zip(before.delivered_payload_bytes, after.delivered_payload_bytes, strict=True)
    return [8 * max(0, late - early) / window_us for early, late in pairs]


@dataclass(frozen=True)
class Watch:
    """All readings of a run, from the reset of the counters to the end of the senders."""

    readings: list[Reading]
    first: int
    """Index of the reading at which the measuring window opens."""
    last: int
    """Index of the reading at which it closes."""
    deadlock: Mapping[str, Any] | None
    status: Mapping[str, Any]
    """The emulator's status at the end of the window, which decides validity."""
    problems: list[str]


def settle(daemon: Daemon, flow_control: FlowControl) -> list[str]:
    """Empty the fabric, wait until nothing moves, reset the counters; return problems."""
    if emptied(daemon, flow_control):
        return []
    return [f"the fabric was not quiet {QUIET_LIMIT_S:g} s after the run before"]


def sending_s(duration_s: float, protocol: theory.Protocol, slowest_mbps: float) -> int:
    """Return the sending time, so that all still send when the last one has been measured.

    ``slowest_mbps`` is the fair share of the slowest flow. Queues are FIFO, so that it
    may have half of that, and iperf3's own connection waits in the same queues.
    """
    started_s = 8e-6 * STARTED_FRAMES * theory.PAYLOAD_BYTES[protocol] / slowest_mbps
    return math.ceil(duration_s + WARM_UP_S + SPARE_S + 2 * started_s)


@contextlib.contextmanager
def senders(
    lab: Lab, traffic: Traffic, protocol: theory.Protocol, seconds: float, seed: int
) -> Iterator[list[iperf.Iperf]]:
    """Run an iperf3 server and client for each flow during the block."""
    with contextlib.ExitStack() as stack:
        for flow in traffic.flows:
            server = iperf.start_server(lab.host(flow.destination))
            stack.callback(server.close)
        rng = random.Random(seed)  # noqa: S311 - not for secrets
        order = list(range(len(traffic.flows)))
        rng.shuffle(order)
        clients: dict[int, iperf.Iperf] = {}
        addresses = {host.name: host.ip for host in traffic.fabric.hosts}
        for index in order:
            flow = traffic.flows[index]
            args = iperf.client_args(addresses[flow.destination], protocol, seconds)
            clients[index] = iperf.Iperf(lab.host(flow.source), args)
            stack.callback(clients[index].close)
            time.sleep(rng.uniform(0, START_JITTER_S))
        yield [clients[index] for index in range(len(traffic.flows))]


def launch(
    lab: Lab,
    traffic: Traffic,
    protocol: theory.Protocol,
    flow_control: FlowControl,
    clients: list[iperf.Iperf],
) -> tuple[list[Reading], list[str]]:
    """Wait until every flow has delivered, or nothing moves; return readings and problems.

    The readings count from the senders' start or, if frames can be lost,
    from the time when all of them send.

    If frames can be lost, iperf3's own connection could be lost, and some
    flows would start after others have ended. So the senders start with PAUSE on every
    link, under which nothing is lost; when all send, the fabric is emptied, the
    flow control of the case is set, and the counters restart at zero.
    """
    daemon = lab.daemon
    enough = STARTED_FRAMES * theory.PAYLOAD_BYTES[protocol]
    readings: list[Reading] = []
    while True:
        readings.append(read(daemon, traffic, protocol))
        payload = readings[-1].delivered_payload_bytes
        if min(payload) >= enough or daemon.status()["deadlock"] is not None:
            break
        late = _seconds(readings) > START_LIMIT_S
        if late or not all(client.running for client in clients):
            flows = zip(traffic.flows, payload, strict=True)
            quiet = [str(flow) for flow, delivered in flows if delivered < enough]
            return readings, [f"did not start in {START_LIMIT_S:g} s: {', '.join(quiet)}"]
        time.sleep(waiting.LOOK_EVERY_S)
    if not flow_control.is_lossless:
        daemon.reset(flow_control=flow_control)
        readings = [read(daemon, traffic, protocol)]
    return readings, []


def watch(
    lab: Lab,
    traffic: Traffic,
    protocol: theory.Protocol,
    clients: list[iperf.Iperf],
    duration_s: float,
    readings: list[Reading],
    *,
    to_the_end: bool = True,
    may_deadlock: bool = True,
) -> Watch:
    """Read the counters until the fabric is empty, or until the window of a deadlock is over.

    Without ``to_the_end``, until the window closes.

    All times are virtual. The window opens :data:`WARM_UP_S` after the launch and lasts
    ``duration_s``. In
    a deadlock it opens when the detector has reported it and lasts
    :data:`FROZEN_WINDOW_S`. All senders must send until the window closes. On links of at most
    :data:`SLOW_MBPS` they then end by themselves; on faster links, where that would take millions
    of frames, they are ended, and their own figures are missing: at the window's end, or
    :data:`DETECTED_S` later if the flows ``may_deadlock``.
    """
    daemon = lab.daemon
    shorter = pace(max(host.rate_mbps for host in traffic.fabric.hosts))
    warm_up_s, frozen_window_s = WARM_UP_S * shorter, FROZEN_WINDOW_S * shorter
    launched = len(readings) - 1
    first: int | None = None
    last: int | None = None
    deadlock: Mapping[str, Any] | None = None
    at_close: Mapping[str, Any] | None = None
    problems: list[str] = []
    limit_s = warm_up_s + duration_s + END_LIMIT_S
    while deadlock is None or last is None:
        time.sleep(waiting.LOOK_EVERY_S)
        sending = [client.running for client in clients]
        status = daemon.status()
        readings.append(read(daemon, traffic, protocol))
        here = len(readings) - 1
        if deadlock is None and status["deadlock"] is not None:
            deadlock, first, last, at_close = status["deadlock"], here, None, None
        if first is None:
            first = here if _seconds(readings[launched:]) >= warm_up_s else None
        elif last is None:
            length_s = duration_s if deadlock is None else frozen_window_s
            last = here if _seconds(readings[first:]) >= length_s else None
        if last is None and not all(sending) and deadlock is None:
            problems.append("a sender ended before the measuring window did")
            first, last = first or 0, here
        if last is not None and at_close is None:
            at_close = status
        after_s = 0.0 if last is None else _seconds(readings[last:])
        decided = last is not None and (after_s >= DETECTED_S or not may_deadlock)
        if decided and shorter < 1 and deadlock is None:
            for client in clients:
                client.kill()
            break
        closed = last is not None and not to_the_end
        late = _seconds(readings[launched:]) > limit_s
        if deadlock is None and (closed or not any(sending) or late):
            break
    if deadlock is None and to_the_end:
        problems += _drain(daemon)
        readings.append(read(daemon, traffic, protocol))
    first, last = first or 0, len(readings) - 1 if last is None else last
    return Watch(readings, first, last, deadlock, at_close or daemon.status(), problems)


def _seconds(readings: list[Reading]) -> float:
    return (readings[-1].at_us - readings[0].at_us) / 1e6


def _drain(daemon: Daemon) -> list[str]:
    """Wait until the network is empty, so that losses are counted exactly."""
    if within(daemon, QUIET_LIMIT_S, lambda: is_empty(daemon)):
        return []
    return [f"frames were still in the fabric {QUIET_LIMIT_S:g} s after the senders' end"]
