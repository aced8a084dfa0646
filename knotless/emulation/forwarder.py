"""The connection from the switches, in their own namespace, to a controller that listens on TCP.

Open vSwitch reaches a Unix socket from any network namespace. Our controllers listen on one unless
they speak TLS; those of users listen on TCP. ``python -m knotless.emulation.forwarder SOCKET
ADDRESS:PORT`` connects each client of ``SOCKET`` there; ``PORT`` alone is on 127.0.0.1. If nobody
listens there, it closes the connection, and the switch retries.

Open vSwitch speaks TLS over TCP only. ``python -m knotless.emulation.forwarder NAMESPACE:PORT
ADDRESS:PORT`` therefore listens on 127.0.0.1 in the network namespace of this path; it passes the
bytes on as they are, so that TLS is between switch and controller.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys

from knotless.emulation import namespaces

BACKLOG = 1024
_CHUNK_BYTES = 1 << 16


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy in one direction until either side closes, then close the far side."""
    try:
        while data := await reader.read(_CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass  # a reset also ends the connection
    finally:
        writer.close()


def listen(where: str) -> socket.socket:
    """Listen on a Unix socket accessible to root only, or on a port in a network namespace."""
    namespace, _, port = where.partition(":")
    if not port:
        server = socket.socket(socket.AF_UNIX)
        os.umask(0o177)
        server.bind(where)
        return server
    with namespaces.inside(namespace):
        server = socket.socket(socket.AF_INET)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", int(port)))
    return server


async def forward(where: str, address: str, port: int, stop: asyncio.Event) -> None:
    """Serve ``where`` (see :func:`listen`) until ``stop`` is set."""

    async def join(near_in: asyncio.StreamReader, near_out: asyncio.StreamWriter) -> None:
        try:
            far_in, far_out = await asyncio.open_connection(address, port)
        except OSError:
            near_out.close()
            return
        await asyncio.gather(_copy(near_in, far_out), _copy(far_in, near_out))

    server = await asyncio.start_server(join, sock=listen(where), backlog=BACKLOG)
    async with server:
        print("ready", flush=True)  # noqa: T201 - the parent waits for this line
        await stop.wait()


async def _main(where: str, controller: str) -> None:
    address, _, port = controller.rpartition(":")
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await forward(where, address or "127.0.0.1", int(port), stop)


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], sys.argv[2]))
