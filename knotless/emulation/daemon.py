"""The link emulator: start, and a typed client of the protocol in docs/emulator-protocol.md."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

from knotless.base.errors import EmulationError
from knotless.base.flow_control import FlowControl
from knotless.base.package import native
from knotless.emulation.runtime import Runtime

BINARY = native("knotless-emulator")
REQUEST_LIMIT_S = 20.0
WRITTEN_POLL_S = 0.05
_ANSWER_LIMIT_BYTES = 1 << 28


class PriorityCounters(TypedDict):
    """Counters of one priority of one channel."""

    priority: int
    tx_frames: int
    tx_bytes: int
    marked_frames: int
    paused_us: int
    pauses: int
    queue_bytes: int
    queue_peak_bytes: int
    account_bytes: int
    account_peak_bytes: int


ChannelCounters = TypedDict(
    "ChannelCounters",
    {
        "channel": str,
        "from": str,
        "to": str,
        "link": str,
        "rate_mbps": float,
        "tx_frames": int,
        "tx_bytes": int,
        "rx_frames": int,
        "rx_bytes": int,
        "dropped_frames": int,
        "up": bool,
        "cut": bool,
        "drops": dict[str, int],
        "pause_frames": int,
        "storms": dict[str, int],
        "host_pauses": dict[str, int] | None,
        "retry": NotRequired[dict[str, float]],
        "priorities": list[PriorityCounters],
    },
)
"""Counters of one channel (in this form because ``from`` is a Python keyword).

``retry`` is there if links repeat frames.
"""


class PoolCounters(TypedDict):
    """The present and the highest occupancy of a pool of a switch."""

    switch: str
    pool: str
    used_bytes: int
    peak_bytes: int
    headroom_peak_bytes: int


class Counters(TypedDict):
    """The answer to ``counters``; ``now_us`` is virtual time.

    While virtual time is ``held``, not all that happens at this time has happened.
    """

    now_us: int
    held: bool
    channels: list[ChannelCounters]
    pools: list[PoolCounters]
    lost_frames: int
    nfqueue: Any


@dataclass(frozen=True)
class Deadlock:
    """Channels that wait for each other, each written ``SWITCH:PORT/PRIORITY``.

    ``cycle`` is one of their cycles, from its smallest channel on (order of the fabric's
    switches, port, priority). ``members`` are all deadlocked channels. ``since_us`` is in
    virtual time.
    """

    since_us: int
    cycle: tuple[str, ...]
    members: tuple[str, ...]


class Daemon:
    """A client of the running link emulator. Every call is one connection and one request.

    All methods raise :class:`EmulationError` if the emulator is unreachable or refuses.
    ``order`` is the index of each switch in the fabric.
    """

    def __init__(self, path: Path, order: Mapping[str, int]) -> None:
        self._path = path
        self._order = order

    def request(self, do: str, **fields: Any) -> dict[str, Any]:
        """Send one request and return its answer without ``ok``."""
        line = json.dumps({"do": do, **fields}).encode() + b"\n"
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(REQUEST_LIMIT_S)
                connection.connect(str(self._path))
                connection.sendall(line)
                with connection.makefile("rb") as reader:
                    text = reader.readline(_ANSWER_LIMIT_BYTES)
        except OSError as error:
            raise EmulationError(f"the link emulator does not answer: {error}") from error
        try:
            answer = json.loads(text)
            ok = answer.pop("ok")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise EmulationError(f"the link emulator answers {text[:80]!r} to {do!r}") from error
        if not ok:
            raise EmulationError(f"the link emulator refuses {do!r}: {answer.get('error')}")
        return dict(answer)

    def status(self) -> dict[str, Any]:
        """Version, both clocks, stretch, holds, validity, deadlock, frames in the network."""
        answer = self.request("status")
        return {**answer, "deadlock": self._ordered(answer["deadlock"])}

    def counters(self) -> Counters:
        """Counters of every channel and priority since the last reset."""
        return cast(Counters, self.request("counters"))

    def deadlock(self) -> Deadlock | None:
        """Return the current deadlock, or None."""
        knot = self.knot()
        if knot is None:
            return None
        return Deadlock(int(knot["since_us"]), tuple(knot["cycle"]), tuple(knot["members"]))

    def knot(self) -> dict[str, Any] | None:
        """Return the current deadlock as in :meth:`status`, with the flows that wait; or None."""
        return self._ordered(self.request("deadlock")["deadlock"])

    def loops(self, status: Mapping[str, Any]) -> list[list[dict[str, Any]]]:
        """Return the frames on each channel of the loops of ``status``; of none if all are past."""
        if not any(loop["present"] for loop in status.get("loops", ())):
            return []
        return list(self.request("loops")["loops"])

    def _ordered(self, deadlock: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return a deadlock of the emulator in the order that :class:`Deadlock` defines."""
        if deadlock is None:
            return None
        cycle = self._from_smallest(deadlock["cycle"])
        members = sorted(deadlock["members"], key=self._place)
        return {**deadlock, "cycle": cycle, "members": members}

    def reset(
        self,
        *,
        flow_control: FlowControl | None = None,
        links: Sequence[Mapping[str, Any]] = (),
    ) -> float:
        """Empty every queue and set every counter to zero; return the virtual time, microseconds.

        ``flow_control`` applies to all links; ``links`` holds changes of settings by link name.
        """
        fields: dict[str, Any] = {}
        if flow_control is not None:
            fields["flow_control"] = flow_control
        if links:
            fields["links"] = [dict(link) for link in links]
        return float(self.request("reset", **fields)["now_us"])

    def set_link(self, name: str, *, up: bool, channel: str | None = None) -> None:
        """Have a link, or only one of its channels, drop all frames, or restore it."""
        fields = {} if channel is None else {"channel": channel}
        self.request("link", name=name, up=up, **fields)

    def set_line(
        self, name: str, changes: Mapping[str, float], *, channel: str | None = None
    ) -> list[dict[str, Any]]:
        """Change the line of a link, or of one of its channels; return what it is then."""
        fields = {} if channel is None else {"channel": channel}
        return list(self.request("line", name=name, set=dict(changes), **fields)["channels"])

    def set_switch(self, name: str, *, up: bool) -> None:
        """Have a switch lose all its frames and all its links drop theirs, or start it."""
        self.request("switch", name=name, up=up)

    def capture(self, link: str, file: Path) -> None:
        """Start to write both directions of a link, PAUSE frames included, to a pcap file."""
        self.request("capture", link=link, file=str(file))

    def capture_stop(self, link: str) -> int:
        """Stop a capture and return the number of packets in its file, when all are written.

        Raises :class:`EmulationError` if packets are missing because the disk was too slow.
        """
        deadline = time.monotonic() + REQUEST_LIMIT_S
        while not (ended := self.request("capture-stop", link=link))["written"]:
            if time.monotonic() > deadline:
                raise EmulationError(f"the capture of {link} is not written: the disk is too slow")
            time.sleep(WRITTEN_POLL_S)
        if ended["missed"]:
            raise EmulationError(
                f"the capture of {link} lacks {ended['missed']} of"
                f" {ended['packets'] + ended['missed']} packets: the disk is too slow"
            )
        return int(ended["packets"])

    def _place(self, channel: str) -> tuple[int, int, int]:
        switch, _, rest = channel.partition(":")
        port, _, priority = rest.partition("/")
        return (self._order.get(switch, len(self._order)), int(port or 0), int(priority or 0))

    def _from_smallest(self, cycle: Sequence[str]) -> list[str]:
        """Rotate a cycle so that it starts with its smallest channel in the fabric's order."""
        if not cycle:
            return []
        start = min(range(len(cycle)), key=lambda i: self._place(cycle[i]))
        return [*cycle[start:], *cycle[:start]]


def start(runtime: Runtime, config: Mapping[str, Any]) -> None:
    """Start the link emulator with ``config`` and wait until it is ready.

    Raises :class:`EmulationError` if it is not built or does not start.
    """
    names = runtime.names
    if not os.access(BINARY, os.X_OK):
        raise EmulationError(f"{BINARY} is not built: run 'tools/setup.sh'")
    with names.emulator_file.open("w", encoding="utf-8") as file:
        json.dump(config, file, indent=1)
    child = runtime.spawn(
        "emulator",
        [
            str(BINARY),
            *("--config", str(names.emulator_file)),
            *("--socket", str(names.emulator_socket)),
        ],
        stdout=subprocess.PIPE,
    )
    runtime.await_ready("emulator", child)
