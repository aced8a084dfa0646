"""What happens on a connection to a switch, written down for a test."""

from __future__ import annotations

from knotless.controller.openflow.connection import Connection
from knotless.controller.openflow.records import RoleReply
from knotless.controller.openflow.replies import Refusal
from tests.support.openflow_messages import VALID

DPID = int.from_bytes(VALID["features reply"][8:16], "big")
"""Of the switch that these messages are of."""


class Events:
    """Writes down what happens on a connection; ``awaits``: somebody waits for each reply."""

    def __init__(self, *, awaits: bool = True) -> None:
        self.seen: list[object] = []
        self._awaits = awaits

    def connected(self, connection: Connection) -> None:
        self.seen.append(("connected", connection.dpid, dict(connection.ports)))

    def disconnected(self, connection: Connection) -> None:
        assert not connection.is_open
        self.seen.append("disconnected")

    def ports_changed(self, connection: Connection) -> None:
        self.seen.append(("ports", dict(connection.ports)))

    def packet_in(self, dpid: int, message: bytes) -> None:
        self.seen.append(("probe", dpid, message))

    def rules_removed(self, connection: Connection) -> None:
        self.seen.append(("removed", connection.dpid))

    def role_answered(self, connection: Connection, role: RoleReply) -> None:
        self.seen.append((connection.dpid, role))

    def deliver(self, connection: Connection, message: bytes) -> bool:
        self.seen.append(("reply", connection.dpid, message))
        return self._awaits

    def refuse(self, connection: Connection, refusal: Refusal) -> None:
        self.seen.append((connection.dpid, refusal.reason))
