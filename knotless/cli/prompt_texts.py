"""Texts of the prompt of ``knotless lab`` on paused channels and a knot. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from knotless.base.counting import counted
from knotless.base.errors import KnotlessError
from knotless.base.flow_control import FlowControl
from knotless.base.printable import listed
from knotless.emulation.daemon import ChannelCounters, Counters, PriorityCounters
from knotless.forwarding.state import ForwardingState
from knotless.verification.check import Verdict
from knotless.verification.dependencies import witnesses_of
from knotless.verification.verdict_parts import Witness

MOST_PAUSED = 20
"""Lines of ``top``."""


def paused_lines(before: Counters, after: Counters) -> list[str]:
    """Return a table of the channels that were paused between two readings, longest first.

    Priorities of a channel that were paused for the same time are one row, as under PAUSE.
    """
    was = {channel["channel"]: channel for channel in before["channels"]}
    passed_us = max(1, after["now_us"] - before["now_us"])
    rows = []
    for channel in after["channels"]:
        together: dict[int, list[PriorityCounters]] = {}
        for number, counters in enumerate(channel["priorities"]):
            paused_us = counters["paused_us"] - _paused_us(was.get(channel["channel"]), number)
            together.setdefault(paused_us, []).append(counters)
        for paused_us, group in together.items():
            if paused_us > 0:
                name = f"{channel['channel']}/{group[0]['priority']}"
                waiting = sum(counters["queue_bytes"] for counters in group)
                rows.append((-min(1.0, paused_us / passed_us), name, channel["to"], waiting))
    if not rows:
        return ["no channel was paused"]
    lines = [f"{'channel':<12}{'to':<8}{'paused':>8}{'waiting bytes':>15}"]
    for share, name, to, waiting in sorted(rows)[:MOST_PAUSED]:
        lines.append(f"{name:<12}{to:<8}{-share:>8.0%}{waiting:>15}")
    more = len(rows) - MOST_PAUSED
    return [*lines, f"and {more} more"] if more > 0 else lines


def chosen_channels(counters: Counters, name: str) -> list[ChannelCounters]:
    """Return the channels of a switch, host or channel; all if ``name`` is empty.

    Raises KnotlessError if there is none of this name.
    """
    channels = counters["channels"]
    chosen = [
        one for one in channels if name in ("", one["channel"], one["channel"].partition(":")[0])
    ]
    if not chosen:
        owners = dict.fromkeys(one["channel"].partition(":")[0] for one in channels)
        raise KnotlessError(
            f"no switch, host or channel {name[:80]!r}: there are {listed(owners, 6)}"
        )
    return chosen


def _paused_us(channel: ChannelCounters | None, number: int) -> int:
    """Return for how long a priority was paused up to the first reading."""
    priorities = channel["priorities"] if channel is not None else []
    return priorities[number]["paused_us"] if number < len(priorities) else 0


def why_lines(
    state: ForwardingState, flow_control: FlowControl, knot: Sequence[str], verdict: Verdict
) -> list[str]:
    """Return the knot as sentences, or what the rules in the switches say if there is none.

    ``knot`` are the deadlocked channels, each waiting for the next one; empty: no deadlock.
    """
    if not knot:
        possible = [f"It would be: {witness.text}." for witness in verdict.witnesses]
        return [f"No deadlock now. By the rules in the switches, it {verdict.text}.", *possible]
    packets = {(w.held, w.wanted): w for w in witnesses_of(state, knot, flow_control)}
    lines = [f"{counted(len(knot), 'channels')} wait for each other {flow_control.condition}:"]
    for held, wanted in pairwise([*knot, knot[0]]):
        lines.append(f"{held} is paused: {_reason(held, wanted, packets)}")
    return [*lines, "Each waits for the next, and the last for the first: none can ever move."]


def _reason(held: str, wanted: str, packets: Mapping[tuple[str, str], Witness]) -> str:
    """Return why a channel is paused."""
    text = f"the buffer behind it is full of frames that wait for {wanted}"
    packet = packets.get((held, wanted))
    return f"{text}, as {packet.packet} would." if packet else f"{text}."
