"""Frames: the state of all channels over one interval, from two answers to ``counters``.

A frame holds only what is not zero, so that a quiet fabric costs nothing. Probes of the controller
are no load: a channel on which nothing else is sent is idle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from knotless._core.simulator import GAP_BYTES
from knotless.base.probe_source import of_hosts
from knotless.results.recording import FULL

PROBE_BYTES = 64 + GAP_BYTES
"""What a probe of the controller takes on a line: no frame is shorter."""
PROBES_SHARE = 0.02
"""A channel with frames of this size only, and less load than this, counts as one of probes."""

Row = tuple[int, int, int, int, int, int]
"""Channel, priority, load and paused share (thousandths), bytes in the egress queue of its sender
and in the ingress buffer of its receiver."""


class Frames:
    """Makes the frames of a fabric from the emulator's successive answers to ``counters``.

    ``index`` numbers the channels, ``hosts_by_mac`` names the hosts of flows.
    """

    def __init__(self, index: Mapping[str, int], hosts_by_mac: Mapping[str, str]) -> None:
        self._index, self._hosts_by_mac = index, hosts_by_mac
        self._before: Mapping[str, Any] | None = None
        self._last: dict[str, Any] | None = None

    def next(
        self, counters: Mapping[str, Any], knot: Mapping[str, Any] | None
    ) -> dict[str, Any] | None:
        """Return the frame since the last call; ``knot`` is ``deadlock`` of the emulator's status.

        None for the first answer, and where virtual time has not moved or counters were reset.
        """
        before, self._before = self._before, counters
        if before is None:
            return None
        passed_us = counters["now_us"] - before["now_us"]
        if passed_us <= 0 or _sent(counters) < _sent(before):
            return None
        rows: list[Row] = []
        drops, down = [], []
        former = {channel["channel"]: channel for channel in before["channels"]}
        for channel in counters["channels"]:
            index = self._index.get(channel["channel"])
            old = former.get(channel["channel"])
            if index is None or old is None:
                continue
            rows += _rows(index, channel, old, passed_us)
            if channel["dropped_frames"]:
                new = channel["dropped_frames"] - old["dropped_frames"]
                drops.append((index, channel["dropped_frames"], new))
            if not channel["up"]:
                down.append(index)
        self._last = {
            "at_us": counters["now_us"],
            "rows": rows,
            "drops": drops,
            "down": down,
            "knot": None if knot is None else self.knot(knot),
        }
        return self._last

    def again(self, knot: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Return the last frame with the deadlock as it is now; None before the first frame."""
        if self._last is None:
            return None
        shown = None if knot is None else self.knot(knot)
        at_us = max(self._last["at_us"], 0 if shown is None else shown["since_us"])
        self._last = {**self._last, "at_us": at_us, "knot": shown}
        return self._last

    def knot(self, deadlock: Mapping[str, Any]) -> dict[str, Any]:
        """Return a deadlock with the names of hosts: who waits for whom, and with which flows.

        Probes of the controller wait as well, but are no flows of hosts.
        """
        names = self._hosts_by_mac

        def named(flow: Mapping[str, Any]) -> dict[str, Any]:
            return {
                "from": names.get(flow["from"], flow["from"]),
                "to": names.get(flow["to"], flow["to"]),
                "bytes": flow["bytes"],
            }

        return {
            "since_us": deadlock["since_us"],
            "cycle": list(deadlock["cycle"]),
            "members": list(deadlock["members"]),
            "waiting": {
                channel: [named(flow) for flow in of_hosts(flows)]
                for channel, flows in deadlock.get("waiting", {}).items()
            },
        }


def _sent(counters: Mapping[str, Any]) -> int:
    return sum(int(channel["tx_frames"]) for channel in counters["channels"])


def _rows(
    index: int, channel: Mapping[str, Any], old: Mapping[str, Any], passed_us: int
) -> Iterable[Row]:
    """Yield the rows of one channel.

    Under 802.3x all priorities pause together: those that carry nothing are left out.
    """
    capacity = channel["rate_mbps"] * passed_us / 8
    priorities: Sequence[Mapping[str, Any]] = channel["priorities"]
    first_us = priorities[0]["paused_us"]
    for now, then in zip(priorities, old["priorities"], strict=True):
        frames = now["tx_frames"] - then["tx_frames"]
        sent = now["tx_bytes"] - then["tx_bytes"] + GAP_BYTES * frames
        if sent == PROBE_BYTES * frames and sent < PROBES_SHARE * capacity:
            sent = 0
        paused_us = now["paused_us"] - then["paused_us"]
        busy = sent or now["queue_bytes"] or now["account_bytes"]
        alone = paused_us and (now["priority"] == 0 or now["paused_us"] != first_us)
        if busy or alone:
            yield (
                index,
                now["priority"],
                min(FULL, round(FULL * sent / capacity)),
                min(FULL, round(FULL * paused_us / passed_us)),
                now["queue_bytes"],
                now["account_bytes"],
            )
