"""The controller as the page shows it: its status, its changes of routes, and its events."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

from knotless.base.errors import EmulationError, KnotlessError
from knotless.emulation.rest import Address, exchange
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats import files
from knotless.web.feed import Feed
from knotless.web.verdicts import shown_verdict

POLL_S = 1.0
EVENT_TIMEOUT_S = 40.0
"""More than two heartbeats of the controller's event stream."""
RECORD_POLLS = 5
"""Polls after an event in which changes are read again: their records come a moment later."""
_MAX_LINE_BYTES = 1 << 20
_SHOWN = (
    *("fabric", "engine", "flow_control", "ready", "switches", "links_down", "hosts_down"),
    *("switches_down", "unreachable", "routes", "last_change", "drained", "role", "problems"),
)


class ControllerWatch:
    """Reads a controller; ``where`` returns its address, or raises EmulationError.

    The state that ``tell`` receives has ``reachable``, and ``why`` if that is false.
    """

    def __init__(
        self, where: Callable[[], Address], feed: Feed, tell: Callable[[dict[str, Any]], None]
    ) -> None:
        self._where, self._feed, self._tell = where, feed, tell
        self._wake = asyncio.Event()
        self._polls_for_changes = RECORD_POLLS
        self._ended = threading.Event()

    async def run(self) -> None:
        """Watch until cancelled."""
        loop = asyncio.get_running_loop()
        follower = threading.Thread(target=self._follow, args=(loop,), daemon=True)
        follower.start()
        try:
            while True:
                await self._poll()
                self._wake.clear()
                try:
                    await asyncio.wait_for(self._wake.wait(), POLL_S)
                except TimeoutError:
                    continue
        finally:
            self._ended.set()

    async def _poll(self) -> None:
        try:
            status = await asyncio.to_thread(lambda: exchange(self._where(), "GET", "/status"))
            if self._polls_for_changes > 0:
                self._polls_for_changes -= 1
                self._feed.changes = await asyncio.to_thread(
                    lambda: exchange(self._where(), "GET", "/changes")
                )
            check = status.get("check")
            verdict = shown_verdict(check) if check else None
        except KnotlessError as error:  # no answer, or not that of a controller
            self._polls_for_changes = RECORD_POLLS
            self._tell({"reachable": False, "why": str(error)})
            return
        shown = {key: status.get(key) for key in _SHOWN}
        self._tell({"reachable": True, **shown, "check": verdict})

    def fabric(self) -> Fabric:
        """Return the controller's fabric; raises EmulationError."""
        return files.from_json(exchange(self._where(), "GET", "/fabric"))

    def _follow(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read events in a thread of its own, connecting again whenever they end."""
        while not self._ended.wait(POLL_S):
            try:
                for kind, fields in events(self._where()):
                    if self._ended.is_set():
                        return
                    loop.call_soon_threadsafe(self._see, kind, fields)
            except (EmulationError, OSError, http.client.HTTPException, ValueError):
                continue
            except RuntimeError:  # the loop has ended
                return

    def _see(self, kind: str, fields: dict[str, Any]) -> None:
        self._feed.add_event(kind, fields)
        self._polls_for_changes = RECORD_POLLS
        self._wake.set()


def events(address: Address) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the events of a controller, as kind and fields, until the connection ends."""
    connection = http.client.HTTPConnection(*address, timeout=EVENT_TIMEOUT_S)
    try:
        connection.request("GET", "/events")
        answer = connection.getresponse()
        if answer.status != http.HTTPStatus.OK:
            return
        kind = ""
        while line := answer.readline(_MAX_LINE_BYTES):
            name, _, value = line.decode(errors="replace").rstrip("\n").partition(": ")
            if name == "event":
                kind = value
            elif name == "data" and kind:
                fields = json.loads(value)
                if isinstance(fields, dict):
                    yield kind, fields
    finally:
        connection.close()
