"""Hosts that pause their links too long, as the link emulator reports them, as events.

Only a fabric of ours has an emulator; real switches report their pauses in their own ways.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import eventlet
from eventlet.green import socket

from common.pause_storms import too_long

_LOG = logging.getLogger("knotless.controller")
_INTERVAL_S = 0.4
_TIMEOUT_S = 2.0
_ANSWER_LIMIT_BYTES = 1 << 24


class PauseWatch:
    """Asks the emulator at intervals and tells when a host begins or ceases to be a problem."""

    def __init__(self, path: Path, tell: Callable[..., None]) -> None:
        self._path = path
        self._tell = tell
        self._known: dict[tuple[str, str], dict[str, Any]] = {}

    def run(self) -> None:
        """Watch for ever; an emulator that does not answer has nothing to report."""
        while True:
            try:
                status = self._ask()
            except (OSError, ValueError):
                status = {}
            self.see(status)
            eventlet.sleep(_INTERVAL_S)

    def see(self, status: Mapping[str, Any]) -> None:
        """Report what has changed; ``status`` is the emulator's."""
        now = {(host["host"], host["channel"]): host for host in too_long(status)}
        for key in sorted(now.keys() - self._known.keys()):
            host = now[key]
            _LOG.warning("host %s pauses its link %s too long", *key)
            fields = {field: host[field] for field in ("share", "limited", "standing", "flows")}
            self._tell("pause-storm", host=key[0], channel=key[1], **fields)
        for name, channel in sorted(self._known.keys() - now.keys()):
            _LOG.info("host %s no longer pauses its link %s too long", name, channel)
            self._tell("pause-storm-over", host=name, channel=channel)
        self._known = now

    def _ask(self) -> dict[str, Any]:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_TIMEOUT_S)
            connection.connect(str(self._path))
            connection.sendall(b'{"do":"status"}\n')
            with connection.makefile("rb") as reader:
                answer = json.loads(reader.readline(_ANSWER_LIMIT_BYTES))
        if not isinstance(answer, dict):
            raise ValueError("no status")
        return answer
