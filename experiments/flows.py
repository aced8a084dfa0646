"""Flows between hosts of a planned fabric: their channels, and what each may expect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from experiments import theory
from routing import Plan
from topologies.fabric import Fabric


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


def line_rates_mbps(fabric: Fabric) -> dict[str, float]:
    """Return the rate of every channel: ``SWITCH:PORT`` that it leaves by, or the host."""
    rates = {host.name: host.rate_mbps for host in fabric.hosts}
    for link in fabric.links:
        rates[f"{link.a}:{link.a_port}"] = link.rate_mbps
        rates[f"{link.b}:{link.b_port}"] = link.rate_mbps
    for host in fabric.hosts:
        rates[f"{host.switch}:{host.port}"] = host.rate_mbps
    return rates


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
    return theory.fair_shares(loads, line_rates_mbps(plan.fabric))
