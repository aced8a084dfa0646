"""Events of a running fabric, each with its time: those of its controller and of its ports."""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from knotless.emulation.namespaces import inside
from knotless.emulation.network import EmulatedFabric

CHANGE_S = 20.0
"""Longest time to wait for a change."""
_RTMGRP_LINK = 1


@dataclass
class Watch:
    """Events of the controller and of the switches' ports, each with its time (Unix, seconds)."""

    events: list[tuple[float, str, dict[str, Any]]] = field(default_factory=list)
    ports: list[float] = field(default_factory=list)

    def follow(self, lab: EmulatedFabric) -> None:
        """Start to listen."""
        for space in lab.ovs.namespaces:
            with inside(f"/run/netns/{space}"):
                link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            link.bind((0, _RTMGRP_LINK))
            threading.Thread(target=self._ports, args=(link,), daemon=True).start()
        url = f"http://127.0.0.1:{lab.rest_port}/events"
        stream = urllib.request.urlopen(url, timeout=60)  # noqa: S310 - our own controller
        threading.Thread(target=self._events, args=(stream,), daemon=True).start()

    def _ports(self, link: socket.socket) -> None:
        while True:
            with suppress(OSError):  # messages that did not fit are lost
                link.recv(1 << 16)
            self.ports.append(time.time())

    def _events(self, stream: Any) -> None:
        kind = ""
        with suppress(OSError, ValueError):
            for line in stream:
                name, _, value = line.decode().strip().partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    fields = json.loads(value)
                    self.events.append((fields["time"], kind, fields))

    def after(self, begin: float, kind: str, failed: Sequence[str]) -> tuple[float, Any] | None:
        """Wait for an event about these failures; None if there is none in time."""
        until = time.time() + CHANGE_S
        while time.time() < until:
            for time_s, event, fields in self.events:
                if time_s >= begin and event == kind and fields.get("failed") == list(failed):
                    return time_s, fields
            time.sleep(0.002)
        return None
