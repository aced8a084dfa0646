"""Flows between hosts of a planned fabric: their channels, and their expected rates and delays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from knotless.routing.choices.choice import Binding
from knotless.routing.plan import Plan
from knotless.topologies.fabric import Fabric
from knotless.traffic import theory
from knotless.traffic.fairness import fair_rates
from knotless.traffic.multipath import HashedLines


@dataclass(frozen=True)
class Flow:
    """A flow from one host to another; ``channels`` are the output ports on its path."""

    source: str
    destination: str
    channels: tuple[str, ...]

    def __str__(self) -> str:
        """Return the flow's name in results."""
        return f"{self.source}>{self.destination}"

    @property
    def last_channel(self) -> str:
        """The channel that ends at the destination host."""
        return self.channels[-1]


def channels_of(plan: Plan, source: str, destination: str) -> tuple[str, ...]:
    """Return the output ports on the path of a pair; under ECMP, on the one that the hash gives."""
    if plan.choice.binding is not Binding.HASH:
        return tuple(f"{hop.switch}:{hop.out_port}" for hop in plan.path(source, destination))
    return hashed_flows(plan, [(source, destination)])[0].channels


def flows_of(plan: Plan, pairs: Iterable[tuple[str, str]]) -> tuple[Flow, ...]:
    """Return a flow for each (source, destination), with its channels in the plan."""
    if plan.choice.binding is Binding.HASH:
        return hashed_flows(plan, list(pairs))
    return tuple(Flow(a, b, channels_of(plan, a, b)) for a, b in pairs)


def hashed_flows(plan: Plan, pairs: Sequence[tuple[str, str]]) -> tuple[Flow, ...]:
    """Return the flows of a plan with ECMP, with the channels that its hash gives them."""
    fabric, channels, number = plan.fabric, plan.channels, plan.fabric.host_index
    ends = np.array([(number[a], number[b]) for a, b in pairs], dtype=np.int32)
    _, *hops, _ = HashedLines(plan, plan.request.hash_seed).channels_of(ends)
    names = [
        f"{channels.names[tail]}:{port}"
        for tail, port in zip(channels.tail.tolist(), channels.out_port.tolist(), strict=True)
    ]
    flows = []
    for place, (a, b) in enumerate(pairs):
        target = fabric.hosts[number[b]]
        path = [int(hop[place]) for hop in hops]
        # Shorter paths are filled up with a number of no channel.
        taken = [names[channel] for channel in path if channel < len(names)]
        flows.append(Flow(a, b, (*taken, f"{target.switch}:{target.port}")))
    return tuple(flows)


def paths_on_channels(flows: Sequence[Flow]) -> dict[str, int]:
    """Count the flows on each channel between switches."""
    counts: dict[str, int] = {}
    for flow in flows:
        for channel in flow.channels[:-1]:
            counts[channel] = counts.get(channel, 0) + 1
    return counts


@dataclass(frozen=True)
class Line:
    """The line of a channel: its rate, and its one-way delay."""

    rate_mbps: float
    delay_us: float


def lines(fabric: Fabric) -> dict[str, Line]:
    """Return the line of every channel, by ``SWITCH:PORT`` (output port) or sending host."""
    line_of: dict[str, Line] = {}
    for host in fabric.hosts:
        line = Line(host.rate_mbps, host.delay_us)
        line_of[host.name] = line_of[f"{host.switch}:{host.port}"] = line
    for link in fabric.links:
        line = Line(link.rate_mbps, link.delay_us)
        line_of[f"{link.a}:{link.a_port}"] = line_of[f"{link.b}:{link.b_port}"] = line
    return line_of


def fair_mbps(plan: Plan, flows: Sequence[Flow], protocol: theory.Protocol) -> list[float]:
    """Return each flow's max-min fair share, as goodput in Mbit/s, TCP's ACKs included."""
    line_of = lines(plan.fabric)
    number = {name: place for place, name in enumerate(line_of)}
    paths = []
    for flow in flows:
        path: list[tuple[int, float]] = []
        back = channels_of(plan, flow.destination, flow.source)
        directions = (((flow.source, *flow.channels), False), ((flow.destination, *back), True))
        for channels, ack in directions:
            for channel in channels:
                tagged = channel not in (channels[0], channels[-1])
                load = theory.load_per_payload(protocol, tagged=tagged, ack=ack)
                path += [(number[channel], load)] if load else []
        paths.append(path)
    hops = list(zip_longest(*paths, fillvalue=(len(number), 0.0)))
    rates = fair_rates(
        [np.array([channel for channel, _ in hop], dtype=np.int32) for hop in hops],
        np.array([line.rate_mbps for line in line_of.values()]),
        [np.array([load for _, load in hop]) for hop in hops],
    )
    return [float(rate) for rate in rates]


def path_us(path: Sequence[Line], packets: Sequence[int], *, tagged: bool = True) -> float:
    """Return the time that IP packets of these sizes take end to end in an empty fabric.

    Switches store and forward. If ``tagged``, frames have a VLAN tag on all lines except the
    first and the last.
    """
    arrival_us = [0.0] * len(packets)
    for hop, line in enumerate(path):
        inside = tagged and 0 < hop < len(path) - 1
        free = 0.0
        for frame, packet in enumerate(packets):
            wire = theory.packet_wire_bytes(packet, tagged=inside)
            free = max(free, arrival_us[frame]) + 8 * wire / line.rate_mbps
            arrival_us[frame] = free + line.delay_us
    return arrival_us[-1]


def exchange_us(plan: Plan, flow: Flow, message_bytes: int) -> float:
    """Return the time from a UDP message to its acknowledgement in an empty fabric.

    The acknowledgement is a frame of minimum size. The hosts' processing time is not included.
    """
    line_of = lines(plan.fabric)
    back = channels_of(plan, flow.destination, flow.source)
    out = [line_of[channel] for channel in (flow.source, *flow.channels)]
    return path_us(out, theory.message_packets(message_bytes)) + path_us(
        [line_of[channel] for channel in (flow.destination, *back)], theory.message_packets(0)
    )
