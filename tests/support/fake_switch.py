"""A switch without rules that speaks OpenFlow 1.3 to a controller over loopback."""

from __future__ import annotations

import select
import socket
import ssl
import struct

from tests.support.openflow_messages import VALID, message, multipart

MULTIPART_REQUEST = 18
FLOW_STATS, AGGREGATE, PORT_DESC = 1, 2, 13
BUNDLE_ADD = 2301
LINK_DOWN = 1


class FakeSwitch:
    """One connection; :meth:`answer` reads one message of the controller and answers it."""

    def __init__(
        self,
        port: int,
        dpid: int,
        ports: int,
        timeout_s: float = 30.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.dpid, self.ports = dpid, ports
        self.flow_mods = 0
        self.changes = 0
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout_s)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="127.0.0.1")
        self.socket.sendall(VALID["hello"])

    def close(self) -> None:
        self.socket.close()

    def answer_all(self) -> bool:
        """Answer all messages that have arrived; return True when no more arrive for a moment."""
        # Not select.select(): the test may have more than 1,024 files open.
        arrived = select.poll()
        arrived.register(self.socket, select.POLLIN)
        while self._has_message() or arrived.poll(50):
            self.answer()
        return True

    def _has_message(self) -> bool:
        """True if TLS has read more than was asked for."""
        return isinstance(self.socket, ssl.SSLSocket) and self.socket.pending() > 0

    def read(self) -> tuple[int, int, bytes]:
        """Return type, transaction and body of the next message; raises EOFError at the end."""
        _, kind, length, xid = struct.unpack("!BBHI", self._exactly(8))
        return kind, xid, self._exactly(length - 8)

    def answer(self) -> tuple[int, int]:
        """Read a message and answer it as a switch would; return its type and multipart type."""
        kind, xid, body = self.read()
        return kind, self.reply(kind, xid, body)

    def reply(self, kind: int, xid: int, body: bytes) -> int:
        """Answer one message; return the type of the requested list, or -1."""
        part = int.from_bytes(body[:2], "big") if kind == MULTIPART_REQUEST else -1
        reply = b""
        match kind:
            case 2:
                reply = message(3, body, xid)
            case 5:
                features = struct.pack("!QIBB2xII", self.dpid, 256, 254, 0, 0x4F, 0)
                reply = message(6, features, xid)
            case 14 | 15:
                self.flow_mods += kind == 14
                self.changes += 1
            case 4 if int.from_bytes(body[4:8], "big") == BUNDLE_ADD:
                self.reply(body[17], xid, body[24:])
            case 18:
                reply = self.multipart_reply(part, xid)
            case 20:
                reply = message(21, xid=xid)
        if reply:
            self.socket.sendall(reply)
        return part

    def report_port(self, port: int, *, up: bool) -> None:
        """Report that a port has gained or lost its carrier."""
        self.socket.sendall(message(12, bytes([2]) + bytes(7) + port_description(port, up=up)))

    def multipart_reply(self, part: int, xid: int) -> bytes:
        """Return the reply to a request for a list: the ports, or an empty list."""
        ports = b""
        if part == AGGREGATE:
            return multipart(part, struct.pack("!QQI4x", 0, 0, 1), xid=xid)
        if part == PORT_DESC:
            ports = b"".join(map(port_description, range(1, self.ports + 1)))
        return multipart(part, ports, xid=xid)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise EOFError
            data += part
        return data


def port_description(port: int, *, up: bool = True) -> bytes:
    """Return the description of a port (ofp_port) that has a carrier or not."""
    config, state = 0, 0 if up else LINK_DOWN
    numbers = (config, state, *bytes(6))
    return struct.pack("!I4x6s2x16s8I", port, port.to_bytes(6, "big"), b"p%d" % port, *numbers)
