"""A switch without rules that speaks OpenFlow 1.3 to a controller over loopback."""

from __future__ import annotations

import select
import socket
import struct

from tests.openflow_messages import VALID, message, multipart

MULTIPART_REQUEST = 18
FLOW_STATS, PORT_DESC = 1, 13


class FakeSwitch:
    """One connection; :meth:`answer` reads one message of the controller and answers it."""

    def __init__(self, port: int, dpid: int, ports: int, timeout_s: float = 30.0) -> None:
        self.dpid, self.ports = dpid, ports
        self.flow_mods = 0
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout_s)
        self.socket.sendall(VALID["hello"])

    def close(self) -> None:
        self.socket.close()

    def answer_all(self) -> bool:
        """Answer all messages that have arrived; return True when no more arrive for a moment."""
        while select.select([self.socket], [], [], 0.05)[0]:
            self.answer()
        return True

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
            case 14:
                self.flow_mods += 1
            case 18:
                reply = self.multipart_reply(part, xid)
            case 20:
                reply = message(21, xid=xid)
        if reply:
            self.socket.sendall(reply)
        return part

    def multipart_reply(self, part: int, xid: int) -> bytes:
        """Return the reply to a request for a list: the ports, or an empty list."""
        ports = b""
        if part == PORT_DESC:
            for port in range(1, self.ports + 1):
                mac = port.to_bytes(6, "big")
                ports += struct.pack("!I4x6s2x16s8I", port, mac, b"p%d" % port, *bytes(8))
        return multipart(part, ports, xid=xid)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise EOFError
            data += part
        return data
