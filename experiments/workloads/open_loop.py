"""Open-loop traffic on a live fabric: iperf3 at full speed, watched by the emulator's counters."""

from __future__ import annotations

import contextlib
import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from typing import Protocol as Interface

from experiments.workloads import iperf
from routing.flow_control import is_lossless
from topologies.fabric import Fabric
from traffic import theory
from traffic.flows import Flow

READ_EVERY_S = 0.1
START_LIMIT_S = 12.0
WARM_UP_S = 1.0
FROZEN_WINDOW_S = 2.0
END_LIMIT_S = 15.0
QUIET_LIMIT_S = 10.0
SPARE_S = 3
"""How much longer senders send than they are measured: their starts take that long at most,
where flows have a good part of a line."""
STARTED_FRAMES = 50
"""A flow has started when this many full frames' worth of payload has arrived."""
START_JITTER_S = 0.02
"""Senders start in a seeded order, up to this far apart, so as not to run in step."""


class Daemon(Interface):
    """What is asked of the link emulator; see docs/emulator-protocol.md."""

    def status(self) -> Mapping[str, Any]:
        """Return its ``status``."""

    def counters(self) -> Mapping[str, Any]:
        """Return its ``counters``."""

    def reset(self, *, flow_control: str) -> None:
        """Empty all queues, zero all counters, set every link's flow control."""


class Lab(Interface):
    """A running fabric."""

    @property
    def daemon(self) -> Daemon:
        """The link emulator."""

    def host(self, name: str) -> iperf.Host:
        """Return a running host."""


class Traffic(Interface):
    """Who sends to whom on which fabric."""

    @property
    def fabric(self) -> Fabric:
        """The fabric."""

    @property
    def flows(self) -> Sequence[Flow]:
        """The flows; no host sends two, none receives two."""


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


def read(daemon: Daemon, traffic: Traffic, protocol: theory.Protocol) -> Reading:
    """Read the counters. Payload is what came out to the receiving host, less headers.

    A host gets one flow's data and, with TCP, the acknowledgements of the flow it sends,
    which are header alone: so bytes less headers is the payload of the one flow.
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
    """The emulator's when the window closed: with it the run is judged. iperf3 spins while it
    waits for the end of its test, which makes frames late when nothing is measured any more."""
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


def sending_s(duration_s: float, protocol: theory.Protocol, slowest_mbps: float) -> int:
    """Return how long to send, so that all still do when the last has started and been measured.

    ``slowest_mbps`` is what the flow with the least share can have. Queues are FIFO, so that it
    may have half of that, and iperf3's own connection waits in the same queues.
    """
    started_s = 8e-6 * STARTED_FRAMES * theory.PAYLOAD_BYTES[protocol] / slowest_mbps
    return math.ceil(duration_s + WARM_UP_S + SPARE_S + 2 * started_s)


@contextlib.contextmanager
def senders(
    lab: Lab, traffic: Traffic, protocol: theory.Protocol, seconds: float, seed: int
) -> Iterator[list[iperf.Iperf]]:
    """Run an iperf3 server and client for each flow; at the end of the block all are gone."""
    with contextlib.ExitStack() as stack:
        for flow in traffic.flows:
            server = iperf.start_server(lab.host(flow.destination))
            stack.callback(server.close)
        chance = random.Random(seed)  # noqa: S311 - not for secrets
        order = list(range(len(traffic.flows)))
        chance.shuffle(order)
        clients: dict[int, iperf.Iperf] = {}
        addresses = {host.name: host.ip for host in traffic.fabric.hosts}
        for index in order:
            flow = traffic.flows[index]
            args = iperf.client_args(addresses[flow.destination], protocol, seconds)
            clients[index] = iperf.Iperf(lab.host(flow.source), args)
            stack.callback(clients[index].close)
            time.sleep(chance.uniform(0, START_JITTER_S))
        yield [clients[index] for index in range(len(traffic.flows))]


def launch(
    lab: Lab,
    traffic: Traffic,
    protocol: theory.Protocol,
    flow_control: str,
    clients: list[iperf.Iperf],
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
    enough = STARTED_FRAMES * theory.PAYLOAD_BYTES[protocol]
    deadline = time.monotonic() + START_LIMIT_S
    readings = []
    while True:
        readings.append(read(daemon, traffic, protocol))
        payload = readings[-1].delivered_payload_bytes
        if min(payload) >= enough or daemon.status()["deadlock"] is not None:
            break
        if time.monotonic() > deadline or not all(client.running for client in clients):
            flows = zip(traffic.flows, payload, strict=True)
            quiet = [str(flow) for flow, delivered in flows if delivered < enough]
            return readings, [f"did not start in {START_LIMIT_S:g} s: {', '.join(quiet)}"]
        time.sleep(READ_EVERY_S)
    if not is_lossless(flow_control):
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
) -> Watch:
    """Go on reading until the senders end, or until a deadlock has stood for its window.

    Where they need not be waited for ``to_the_end``, until the window closes.

    The window opens :data:`WARM_UP_S` after the launch and lasts ``duration_s``. In
    a deadlock it opens when the detector has reported it and lasts
    :data:`FROZEN_WINDOW_S`. All senders must send until the window closes.
    """
    daemon = lab.daemon
    launched = len(readings) - 1
    first: int | None = None
    last: int | None = None
    deadlock: Mapping[str, Any] | None = None
    at_close: Mapping[str, Any] | None = None
    problems: list[str] = []
    deadline = time.monotonic() + WARM_UP_S + duration_s + END_LIMIT_S
    while deadlock is None or last is None:
        time.sleep(READ_EVERY_S)
        sending = [client.running for client in clients]
        status = daemon.status()
        readings.append(read(daemon, traffic, protocol))
        here = len(readings) - 1
        if deadlock is None and status["deadlock"] is not None:
            deadlock, first, last, at_close = status["deadlock"], here, None, None
        if first is None:
            first = here if _seconds(readings[launched:]) >= WARM_UP_S else None
        elif last is None:
            length_s = duration_s if deadlock is None else FROZEN_WINDOW_S
            last = here if _seconds(readings[first:]) >= length_s else None
        if last is None and not all(sending) and deadlock is None:
            problems.append("a sender ended before the measuring window did")
            first, last = first or 0, here
        if last is not None and at_close is None:
            at_close = status
        closed = last is not None and not to_the_end
        if deadlock is None and (closed or not any(sending) or time.monotonic() > deadline):
            break
    if deadlock is None and to_the_end:
        problems += _drain(daemon)
        readings.append(read(daemon, traffic, protocol))
    first, last = first or 0, len(readings) - 1 if last is None else last
    return Watch(readings, first, last, deadlock, at_close or daemon.status(), problems)


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
