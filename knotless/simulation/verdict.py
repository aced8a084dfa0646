"""The verdict of a simulation in one sentence, and cautions about its settings before it runs."""

from __future__ import annotations

import math

from knotless._core.simulator import (
    DROP_CAUSES,
    GAP_BYTES,
    RETRY_COUNTS,
    Deadlock,
    Report,
    headroom_bytes,
    longest_frame_bytes,
)
from knotless.base.broadcasts import BROADCAST_LIMIT
from knotless.base.flow_control import FlowControl
from knotless.simulation.channels import credit_unit_bytes
from knotless.simulation.scenario import Scenario
from knotless.simulation.settings import BROADCAST
from knotless.simulation.units import PICOSECONDS_PER_US, picoseconds
from knotless.traffic.theory import (
    ETHERNET_HEADER_BYTES,
    FCS_BYTES,
    VLAN_TAG_BYTES,
    packet_wire_bytes,
)


def cautions(scenario: Scenario) -> list[str]:
    """Return what is known to go wrong before the simulation starts, a line for each setting.

    Headroom below that of the formula loses frames when a full link is paused, credit below the
    round trip of a link leaves it idle, bubbles that are not those of their theorem prevent no
    deadlock, no frame fits into a queue that is shorter, and no broadcast passes that is longer
    than the burst of its limit.
    """
    parts = (_headroom, _credit, _bubbles, _queue, _burst)
    return [line for part in parts for line in part(scenario)]


def _headroom(scenario: Scenario) -> list[str]:
    given, fabric = scenario.switching.buffers.headroom, scenario.plan.fabric
    control = scenario.switching.flow_control
    if given is None or control.switch_links.by_credits:
        return []
    lines = {(x.rate_mbps, x.delay_us) for x in fabric.links if control.switch_links.pauses}
    lines |= {(x.rate_mbps, x.delay_us) for x in fabric.hosts if control.host_links.pauses}
    longest = scenario.demand.packet_bytes + ETHERNET_HEADER_BYTES + VLAN_TAG_BYTES + FCS_BYTES
    needed, rate_mbps, delay_us = max(
        (
            (headroom_bytes(round(rate * 1e6), picoseconds(delay), longest), rate, delay)
            for rate, delay in lines
        ),
        default=(0, 0.0, 0.0),
    )
    needed += 0 if scenario.switching.retry is None else longest
    if given >= needed:
        return []
    return [
        f"headroom of {given} bytes: a link of {rate_mbps:g} Mbit/s and {delay_us:g} us needs"
        f" {needed}, frames can be lost"
    ]


def _credit(scenario: Scenario) -> list[str]:
    given, fabric = scenario.switching.buffers.credit, scenario.plan.fabric
    if given is None or not scenario.switching.flow_control.switch_links.by_credits:
        return []
    unit = credit_unit_bytes(scenario.switching, scenario.demand.packet_bytes)
    wire = packet_wire_bytes(scenario.demand.packet_bytes, tagged=True)
    room = -(-(wire - GAP_BYTES) // unit) * unit
    lines = {(link.rate_mbps, link.delay_us) for link in fabric.links}
    lines |= {(host.rate_mbps, host.delay_us) for host in fabric.hosts}
    # A frame is received and sent on before its update comes back.
    needed, rate_mbps, delay_us = max(
        (room * math.ceil(2 + 2 * delay * rate / (8 * wire)), rate, delay) for rate, delay in lines
    )
    if given >= needed:
        return []
    return [
        f"credit of {given} bytes: a link of {rate_mbps:g} Mbit/s and {delay_us:g} us needs"
        f" {needed} to be busy all the time with frames of {scenario.demand.packet_bytes} bytes"
    ]


def _bubbles(scenario: Scenario) -> list[str]:
    switching, packet = scenario.switching, scenario.demand.packet_bytes
    if switching.flow_control is not FlowControl.BUBBLE:
        return []
    used = switching.bubbles._replace(
        unit_bytes=credit_unit_bytes(switching, packet),
        buffer_bytes=switching.buffers.credit,
        frame_bytes=longest_frame_bytes(packet),
    )
    return used.faults


def _queue(scenario: Scenario) -> list[str]:
    given, control = scenario.switching.buffers.queue, scenario.switching.flow_control
    message = scenario.demand.load.message_bytes
    packet = min(scenario.demand.packet_bytes, message or scenario.demand.packet_bytes)
    frame = packet + ETHERNET_HEADER_BYTES + FCS_BYTES
    if given is None or control.is_lossless or given >= frame or scenario.demand.trace is not None:
        return []
    return [f"queue of {given} bytes: a frame has {frame}, and none fits into a queue"]


def _burst(scenario: Scenario) -> list[str]:
    given, share = scenario.switching.broadcast_burst_bytes, scenario.switching.broadcast_share
    message = scenario.demand.load.message_bytes
    packet = min(scenario.demand.packet_bytes, message or scenario.demand.packet_bytes)
    needed = packet_wire_bytes(packet, tagged=False)
    broadcasts = any(group == BROADCAST for _, group in scenario.demand.senders)
    if not broadcasts or share == 0 or given >= needed:
        return []
    return [f"broadcast burst of {given} bytes: a frame has {needed}, and none passes"]


def frames_lost(report: Report) -> tuple[int, dict[str, int]]:
    """Return how many frames were lost, and how many by each cause that has lost any.

    Broadcasts that their limit drops are no losses.
    """
    causes = {**_drops(report), "collisions": int(report.station_given_up.sum())}
    del causes[BROADCAST_LIMIT]
    lost = max(int(report.flow_lost.sum()), sum(causes.values()))
    return lost, {cause: count for cause, count in causes.items() if count}


def times_given_up(report: Report) -> int:
    """Return how often links that repeat frames gave up."""
    return int(report.channel_retries[RETRY_COUNTS.index("given_up")].sum())


def frames_over_limit(report: Report) -> int:
    """Return how many broadcasts their limit has dropped."""
    return _drops(report)[BROADCAST_LIMIT]


def _drops(report: Report) -> dict[str, int]:
    return {
        cause: int(counted.sum())
        for cause, counted in zip(DROP_CAUSES, report.channel_drops, strict=True)
    }


def verdict(report: Report, knot: list[str]) -> str:
    """Return whether frames are stuck, lost, or not delivered, and how many arrived.

    Parameters
    ----------
    report : Report
        The counters.
    knot : list of str
        The cycle of the first deadlock, ``SWITCH:PORT/PRIORITY``; empty without one.

    """
    arrived, limited = int(report.flow_packets.sum()), frames_over_limit(report)
    lost, causes = frames_lost(report)
    parts = [_deadlock(report.deadlock, report.deadlocks, knot)] if report.deadlock else []
    if lost:
        named = ", ".join(f"{cause} {count}" for cause, count in causes.items())
        parts.append(f"FRAMES LOST: {lost}" + (f" ({named})" if named else ""))
    if given_up := times_given_up(report):
        parts.append(f"LINKS GAVE UP: {given_up} times, so deadlock-freedom is unknown")
    if not arrived:
        ended = f"at the end, {report.now_ps / PICOSECONDS_PER_US:g} us,"
        under_way = f"{ended} {report.in_network} packets were under way"
        parts.append(f"NOTHING DELIVERED: {under_way if report.in_network else 'nothing arrived'}")
    elif not parts:
        parts.append("no deadlock, no frame lost")
    if limited:
        parts.append(f"BROADCASTS LIMITED: {limited} dropped")
    return "; ".join([*parts, f"{arrived} packets arrived"] if arrived else parts)


def _deadlock(deadlock: Deadlock, count: int, knot: list[str]) -> str:
    ring = " -> ".join([*knot, *knot[:1]])
    since = f"since {deadlock.since_ps / PICOSECONDS_PER_US:g} us"
    if deadlock.broken_ps is None:
        return f"DEADLOCK {since}: {ring}"
    more = f", the first of {count}" if count > 1 else ""
    until = f"broken at {deadlock.broken_ps / PICOSECONDS_PER_US:g} us"
    return f"DEADLOCK {since}, {until}{more}: {ring}"
