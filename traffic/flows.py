"""Flows between hosts of a planned fabric: their channels, and what each may expect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from routing.plan import Plan
from topologies.fabric import Fabric
from traffic import theory


@dataclass(frozen=True)
class Flow:
    """One host that sends to another; ``channels`` are the switch ports it leaves by."""

    source: str
    destination: str
    channels: tuple[str, ...]

    def __str__(self) -> str:
        """Return it as results name it."""
        return f"{self.source}>{self.destination}"

    @property
    def last_channel(self) -> str:
        """The channel that delivers to the destination."""
        return self.channels[-1]


def channels_of(plan: Plan, source: str, destination: str) -> tuple[str, ...]:
    """Return the switch ports by which frames of this pair leave, the host's last."""
    return tuple(f"{hop.switch}:{hop.out_port}" for hop in plan.path(source, destination))


def flows_of(plan: Plan, pairs: Iterable[tuple[str, str]]) -> tuple[Flow, ...]:
    """Return a flow for each (source, destination), with the channels that the plan gives it."""
    return tuple(Flow(a, b, channels_of(plan, a, b)) for a, b in pairs)


def paths_on_channels(flows: Sequence[Flow]) -> dict[str, int]:
    """Count the flows on each channel between switches."""
    counts: dict[str, int] = {}
    for flow in flows:
        for channel in flow.channels[:-1]:
            counts[channel] = counts.get(channel, 0) + 1
    return counts


@dataclass(frozen=True)
class Line:
    """What a channel's link is: its rate, and its delay one way."""

    rate_mbps: float
    delay_us: float


def lines(fabric: Fabric) -> dict[str, Line]:
    """Return the line of every channel: ``SWITCH:PORT`` that it leaves by, or the host."""
    found: dict[str, Line] = {}
    for host in fabric.hosts:
        line = Line(host.rate_mbps, host.delay_us)
        found[host.name] = found[f"{host.switch}:{host.port}"] = line
    for link in fabric.links:
        line = Line(link.rate_mbps, link.delay_us)
        found[f"{link.a}:{link.a_port}"] = found[f"{link.b}:{link.b_port}"] = line
    return found


def fair_mbps(plan: Plan, flows: Sequence[Flow], protocol: theory.Protocol) -> list[float]:
    """Return each flow's max-min fair share, as goodput in Mbit/s; TCP's ACKs are counted in."""
    loads = []
    for flow in flows:
        load: dict[str, float] = {}
        back = channels_of(plan, flow.destination, flow.source)
        ways = (((flow.source, *flow.channels), False), ((flow.destination, *back), True))
        for channels, ack in ways:
            for channel in channels:
                tagged = channel not in (channels[0], channels[-1])
                more = theory.load_per_payload(protocol, tagged=tagged, ack=ack)
                load[channel] = load.get(channel, 0.0) + more
        loads.append(load)
    capacity = {name: line.rate_mbps for name, line in lines(plan.fabric).items()}
    return theory.fair_shares(loads, capacity)


def way_us(way: Sequence[Line], packets: Sequence[int], *, tagged: bool = True) -> float:
    """Return how long IP packets of these bytes take from end to end, nothing else under way.

    Switches store and forward; frames have a VLAN tag (where ``tagged``) on all but the first
    and the last line.
    """
    there = [0.0] * len(packets)
    for hop, line in enumerate(way):
        inside = tagged and 0 < hop < len(way) - 1
        free = 0.0
        for frame, packet in enumerate(packets):
            wire = theory.packet_wire_bytes(packet, tagged=inside)
            free = max(free, there[frame]) + 8 * wire / line.rate_mbps
            there[frame] = free + line.delay_us
    return there[-1]


def exchange_us(plan: Plan, flow: Flow, message_bytes: int) -> float:
    """Return the time from a UDP message to its acknowledgement in an empty fabric.

    The acknowledgement is a frame of the smallest size. The hosts' own time is not in it.
    """
    known = lines(plan.fabric)
    back = channels_of(plan, flow.destination, flow.source)
    there = [known[channel] for channel in (flow.source, *flow.channels)]
    return way_us(there, theory.message_packets(message_bytes)) + way_us(
        [known[channel] for channel in (flow.destination, *back)], theory.message_packets(0)
    )
