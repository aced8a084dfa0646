"""The link emulator of a fabric of ours: questions to it, and hosts that pause too long.

Real switches report their pauses in their own ways.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from knotless.base.pause_storms import too_long
from knotless.controller import runtime

_LOG = logging.getLogger("knotless.controller")
_TIMEOUT_S = 2.0
_ANSWER_LIMIT_BYTES = 1 << 24
_INTERVAL_S = 0.4
SILENT_AFTER = 3
"""Requests without an answer after which that is a problem: one may be late on a busy machine."""
_HEADER_BYTES = 18
"""Of Ethernet, with the FCS: no frame is shorter."""


class EmulatorError(Exception):
    """The emulator does not answer."""


def ask(path: Path, what: str, **fields: object) -> dict[str, Any]:
    """Return the answer to a request, such as ``status``.

    ``path`` is the control socket (docs/emulator-protocol.md). Raises EmulatorError.
    """
    try:
        request = json.dumps({"do": what, **fields}).encode() + b"\n"
        answer = json.loads(runtime.ask_line(path, request, _TIMEOUT_S, _ANSWER_LIMIT_BYTES))
    except (OSError, ValueError) as error:
        raise EmulatorError(f"{path}: {error}") from error
    if not isinstance(answer, dict):
        raise EmulatorError(f"{path}: no answer")
    return answer


def left_port(channel: Mapping[str, Any]) -> int:
    """Return how many frames have left a port; those that a cut link lost have left it too."""
    return int(channel["tx_frames"]) + int(channel["drops"]["down"])


def waiting_at_port(channel: Mapping[str, Any], priority: int) -> tuple[int, int]:
    """Return the frames of a priority that have left a port, and the most that may wait there."""
    counted = channel["priorities"][priority]
    return int(counted["tx_frames"]), int(counted["queue_bytes"]) // _HEADER_BYTES


def paused_us(channel: Mapping[str, Any]) -> int:
    """Return how long a channel was paused so far, in all its priorities."""
    return sum(int(priority["paused_us"]) for priority in channel["priorities"])


class EmulatorWatch:
    """Asks the emulator at intervals and reports when a host begins or ceases to be a problem.

    ``see_status`` gets each status of the emulator. If it does not answer it is an empty one, with
    a problem if the emulator had answered before and :data:`SILENT_AFTER` requests had no answer.
    ``declared`` returns the addresses of the multicast groups that are declared now, None if it is
    not this controller that says so. The emulator does not limit how much hosts send to these.
    """

    def __init__(
        self,
        path: Path,
        tell: Callable[..., None],
        see_status: Callable[[Mapping[str, Any]], None],
        declared: Callable[[], Sequence[str] | None] = lambda: None,
    ) -> None:
        self._path, self._tell, self._see_status = path, tell, see_status
        self._declared = declared
        self._hosts: dict[tuple[str, str], dict[str, Any]] = {}
        self._unanswered: int | None = None
        """Requests in a row without an answer; None before the first answer."""

    def run(self) -> None:
        """Watch for ever."""
        while True:
            self.look()
            runtime.sleep(_INTERVAL_S)

    def look(self) -> None:
        """Ask once."""
        try:
            status, self._unanswered = ask(self._path, "status"), 0
        except EmulatorError:
            status = {}
            if self._unanswered is not None:
                self._unanswered += 1
                if self._unanswered >= SILENT_AFTER:
                    status = {"problems": ["it does not answer"]}
        self.see(status)
        self.declare(status)

    def declare(self, status: Mapping[str, Any]) -> None:
        """Tell the emulator which groups are declared, unless its ``status`` says the same."""
        wanted, declared = self._declared(), status.get("declared_groups")
        if wanted is None or declared is None or list(wanted) == declared:
            return
        try:
            ask(self._path, "groups", addresses=list(wanted))
        except EmulatorError as error:
            _LOG.warning("%s", error)

    def see(self, status: Mapping[str, Any]) -> None:
        """Report what has changed; ``status`` is the emulator's."""
        self._see_status(status)
        now = {(host["host"], host["channel"]): host for host in too_long(status)}
        for key in sorted(now.keys() - self._hosts.keys()):
            host = now[key]
            _LOG.warning("host %s pauses its link %s too long", *key)
            fields = {field: host[field] for field in ("share", "limited", "standing", "flows")}
            self._tell("pause-storm", host=key[0], channel=key[1], **fields)
        for name, channel in sorted(self._hosts.keys() - now.keys()):
            _LOG.info("host %s no longer pauses its link %s too long", name, channel)
            self._tell("pause-storm-over", host=name, channel=channel)
        self._hosts = now
