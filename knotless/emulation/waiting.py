"""Waiting in the virtual time of a running fabric, and emptying one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from knotless.base.flow_control import FlowControl

QUIET_LIMIT_S = 10.0
"""Virtual time in which a fabric without senders becomes empty."""
LOOK_EVERY_S = 0.1
"""In real time."""


class Daemon(Protocol):
    """The requests to the link emulator; see docs/emulator-protocol.md."""

    def status(self) -> Mapping[str, Any]:
        """Return its ``status``."""

    def counters(self) -> Mapping[str, Any]:
        """Return its ``counters``."""

    def reset(self, *, flow_control: FlowControl) -> object:
        """Empty all queues, zero all counters, set every link's flow control."""


def now_us(daemon: Daemon) -> int:
    """Return the virtual time."""
    return int(daemon.counters()["now_us"])


def within(
    daemon: Daemon, limit_s: float, condition: Callable[[], bool], every_s: float | None = None
) -> bool:
    """Wait until a condition holds; return False if ``limit_s`` of virtual time is not enough.

    It is tested every ``every_s`` of real time, by default :data:`LOOK_EVERY_S`.
    """
    end_us = now_us(daemon) + 1e6 * limit_s
    while not condition():
        if now_us(daemon) > end_us:
            return False
        time.sleep(LOOK_EVERY_S if every_s is None else every_s)
    return True


def is_empty(daemon: Daemon) -> bool:
    """Tell whether no frame is in the network."""
    return int(daemon.status()["frames_in_network"]) == 0


def emptied(daemon: Daemon, flow_control: FlowControl) -> bool:
    """Empty a fabric whose senders have ended, and reset its counters; return whether it is quiet.

    It is emptied without flow control: frames that hosts still held back when their senders ended
    would deadlock a cyclic fabric again. It is quiet when hosts send nothing and no frame is in the
    network; probes of the controller go on.
    """
    daemon.reset(flow_control=FlowControl.NONE)
    before = -1

    def is_quiet() -> bool:
        nonlocal before
        channels = daemon.counters()["channels"]
        sent = sum(
            int(channel["tx_frames"]) for channel in channels if ":" not in channel["channel"]
        )
        moved, before = sent != before, sent
        return not moved and is_empty(daemon)

    quiet = within(daemon, QUIET_LIMIT_S, is_quiet)
    daemon.reset(flow_control=flow_control)
    return quiet
