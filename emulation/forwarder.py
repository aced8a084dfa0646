"""The connection from the switches, in their own namespace, to a controller on this machine.

Open vSwitch reaches a Unix socket from any network namespace, but controllers such as Ryu listen
on TCP. ``python -m emulation.forwarder SOCKET PORT`` connects each client of ``SOCKET`` to
127.0.0.1:``PORT``. If nobody listens there, it closes the connection, and the switch retries.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

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


async def forward(path: str, port: int, stop: asyncio.Event) -> None:
    """Serve ``path``, accessible to root only, until ``stop`` is set."""

    async def join(near_in: asyncio.StreamReader, near_out: asyncio.StreamWriter) -> None:
        try:
            far_in, far_out = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            near_out.close()
            return
        await asyncio.gather(_copy(near_in, far_out), _copy(far_in, near_out))

    os.umask(0o177)
    server = await asyncio.start_unix_server(join, path)
    async with server:
        print("ready", flush=True)  # noqa: T201 - the parent waits for this line
        await stop.wait()


async def _main(path: str, port: int) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await forward(path, port, stop)


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], int(sys.argv[2])))
