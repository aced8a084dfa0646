"""Hosts that pause their links too long, as the link emulator reports them, as events.

Only a fabric of ours has an emulator; real switches report their pauses in their own ways.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import eventlet

from knotless.base.pause_storms import too_long
from knotless.controller.emulator import EmulatorError, ask

_LOG = logging.getLogger("knotless.controller")
_INTERVAL_S = 0.4


class PauseWatch:
    """Asks the emulator at intervals and tells when a host begins or ceases to be a problem.

    ``paced`` gets the stretch: real over virtual time lately; None if it is not known.
    """

    def __init__(
        self, path: Path, tell: Callable[..., None], paced: Callable[[float | None], None]
    ) -> None:
        self._path, self._tell, self._paced = path, tell, paced
        self._known: dict[tuple[str, str], dict[str, Any]] = {}

    def run(self) -> None:
        """Watch for ever; an emulator that does not answer has nothing to report."""
        while True:
            try:
                status = ask(self._path, "status")
            except EmulatorError:
                status = {}
            self.see(status)
            eventlet.sleep(_INTERVAL_S)

    def see(self, status: Mapping[str, Any]) -> None:
        """Report what has changed; ``status`` is the emulator's."""
        self._paced(status.get("stretch_now"))
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
