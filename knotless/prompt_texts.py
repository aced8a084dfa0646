"""What the prompt of ``knotless lab`` says of paused channels and of a knot. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from common.flow_control import NAMES
from emulation.daemon import ChannelCounters, Counters
from forwarding.state import ForwardingState
from verification.check import Verdict
from verification.dependencies import Witness, witnesses_of

MOST_PAUSED = 20
"""Lines of ``top``."""


def paused_lines(before: Counters, after: Counters) -> list[str]:
    """Return a table of the channels that were paused between two readings, longest first."""
    was = {channel["channel"]: channel for channel in before["channels"]}
    passed_us = max(1, after["now_us"] - before["now_us"])
    rows = []
    for channel in after["channels"]:
        for number, of in enumerate(channel["priorities"]):
            former = _priority(was.get(channel["channel"]), number)
            share = min(1.0, (of["paused_us"] - former) / passed_us)
            if share > 0:
                name = f"{channel['channel']}/{of['priority']}"
                rows.append((-share, name, channel["to"], of["queue_bytes"]))
    if not rows:
        return ["no channel was paused"]
    lines = [f"{'channel':<12}{'to':<8}{'paused':>8}{'waiting bytes':>15}"]
    for share, name, to, waiting in sorted(rows)[:MOST_PAUSED]:
        lines.append(f"{name:<12}{to:<8}{-share:>8.0%}{waiting:>15}")
    more = len(rows) - MOST_PAUSED
    return [*lines, f"and {more} more"] if more > 0 else lines


def _priority(channel: ChannelCounters | None, number: int) -> int:
    """Return for how long a priority was paused up to the first reading."""
    known = channel["priorities"] if channel is not None else []
    return known[number]["paused_us"] if number < len(known) else 0


def why_lines(
    state: ForwardingState, flow_control: str, knot: Sequence[str], verdict: Verdict
) -> list[str]:
    """Return the knot as sentences, or what the rules in the switches say if there is none.

    ``knot`` are the deadlocked channels, each waiting for the next one; empty: no deadlock.
    """
    if not knot:
        possible = [
            f"It would be: {of.packet} holds {of.held} while it waits for {of.wanted}."
            for of in verdict.witnesses
        ]
        return [f"No deadlock now. By the rules in the switches, it {verdict.text}.", *possible]
    packets = {(of.held, of.wanted): of for of in witnesses_of(state, knot, flow_control)}
    lines = [f"{len(knot)} channels wait for each other under {NAMES[flow_control]}:"]
    for held, wanted in pairwise([*knot, knot[0]]):
        lines.append(f"{held} is paused: {_reason(held, wanted, packets)}")
    return [*lines, "Each waits for the next, and the last for the first: none can ever move."]


def _reason(held: str, wanted: str, packets: Mapping[tuple[str, str], Witness]) -> str:
    """Return why a channel is paused."""
    text = f"the buffer behind it is full of frames that wait for {wanted}"
    packet = packets.get((held, wanted))
    return f"{text}, as {packet.packet} would." if packet else f"{text}."
