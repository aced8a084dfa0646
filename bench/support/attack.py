"""Attacks on a running fabric and on its controller, while repairs are measured.

``python -m bench.support.attack KIND`` reads a JSON object of the keys below from standard input,
attacks until that ends, and prints what it did, as JSON. The kinds:

- ``frames``: a host sends 10,000 frames a second with unknown addresses, half of them with its own
  source address, half with a forged one (``namespace``, ``interface``, ``mac``);
- ``switches``: 1,500 connections to the OpenFlow port (``openflow``) that say nothing are kept
  open, while others send a greeting that has an element of length 0, or endless lists of rules;
- ``clients``: 2,000 clients of the HTTP interface (``rest``) send half a request and then a byte a
  second each;
- ``requests``: 20 clients without its token ask the HTTP interface without a pause.

The addresses are those of our own controller on loopback, and the namespace is that of a host of
our own fabric.
"""

from __future__ import annotations

import http.client
import itertools
import json
import resource
import selectors
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from knotless.emulation.namespaces import inside

SILENT = 1500
SLOW = 2000
BUSY = 20
FRAMES_PER_S = 10_000.0
"""Two thirds of what a link of 10 Mbit/s carries."""
TICK_S = 0.01
GREETING = bytes.fromhex("0400001000000001 0001000000000000")
"""A HELLO of which an element has length 0: Ryu's parser does not end."""
RULES = struct.pack("!BBHIHH4x", 4, 19, 16 + 65_000, 7, 1, 1) + bytes(65_000)
"""A part of an endless answer to a request for all rules."""
Stopped = Callable[[], bool]


def frames(task: Mapping[str, Any], stopped: Stopped) -> dict[str, int]:
    """Send frames with unknown addresses; return how many."""
    own = bytes.fromhex(task["mac"].replace(":", ""))
    with inside(task["namespace"]):
        out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    sent, began = 0, time.monotonic()
    with out:
        out.bind((task["interface"], 0))
        out.settimeout(1.0)
        while not stopped():
            if sent > (time.monotonic() - began) * FRAMES_PER_S:
                time.sleep(TICK_S)
                continue
            # Locally administered addresses, which no host of a fabric has.
            unknown = bytes([0x0E, 0xFF]) + sent.to_bytes(4, "big")
            source = own if sent % 2 else bytes([0x0E, 0xFE]) + unknown[2:]
            with suppress(OSError):  # the queue of the port is full
                out.send(unknown + source + b"\x08\x00" + bytes(46))
                sent += 1
    return {"frames": sent}


def switches(task: Mapping[str, Any], stopped: Stopped) -> dict[str, int]:
    """Connect as switches that mean harm; return how many connections of each kind there were."""
    counts = {"silent": 0, "greetings": 0, "endless lists": 0}
    turns = itertools.cycle(("greetings", "endless lists"))
    with _Held(task["openflow"]) as held:
        while not stopped():
            counts["silent"] += len(held.fill(SILENT))
            turn = next(turns)
            with _connect(task["openflow"]) as other, suppress(OSError):
                other.settimeout(1.0)
                for part in (GREETING,) if turn == "greetings" else (RULES,) * 100:
                    other.sendall(part)
                other.recv(1 << 16)
            counts[turn] += 1
            time.sleep(TICK_S)
    return counts


def clients(task: Mapping[str, Any], stopped: Stopped) -> dict[str, int]:
    """Be slow clients; return how many connections and bytes there were."""
    counts = {"clients": 0, "bytes": 0}
    with _Held(task["rest"]) as held:
        while not stopped():
            new = held.fill(SLOW)
            for client in new:
                with suppress(OSError):
                    client.sendall(b"GET /status HTTP/1.1\r\nX: ")
            counts["clients"] += len(new)
            for client in held.connections:
                with suppress(OSError):
                    counts["bytes"] += client.send(b"x")
            time.sleep(1.0)
    return counts


def requests(task: Mapping[str, Any], stopped: Stopped) -> dict[str, int]:
    """Be clients that ask without a pause; return how many answers there were."""
    answers: list[int] = []

    def client() -> None:
        while not stopped():
            with suppress(OSError, http.client.HTTPException):
                answers.append(ask(task["rest"]))

    clients = [threading.Thread(target=client) for _ in range(BUSY)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()
    return {"answers": len(answers), "refused": sum(code != http.HTTPStatus.OK for code in answers)}


def ask(port: int, path: str = "/status") -> int:
    """Return the status of an answer of the HTTP interface."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        with connection.getresponse() as answer:
            answer.read()
            return answer.status
    finally:
        connection.close()


class _Held:
    """Connections that are kept open."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> _Held:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self.connections:
            connection.close()
        self._selector.close()

    @property
    def connections(self) -> list[socket.socket]:
        return [key.data for key in self._selector.get_map().values()]

    def fill(self, count: int) -> list[socket.socket]:
        """Close what the controller has ended; return new connections, so that there are enough."""
        for key, _ in self._selector.select(0):
            with suppress(OSError):
                if key.data.recv(1 << 16):
                    continue
            self._selector.unregister(key.data)
            key.data.close()
        new = [_connect(self._port) for _ in range(count - len(self._selector.get_map()))]
        for one in new:
            self._selector.register(one, selectors.EVENT_READ, one)
        return new


def _connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=30)


@contextmanager
def attacked(kind: str | None, task: Mapping[str, Any]) -> Iterator[dict[str, int]]:
    """Attack in another process while the block runs; the dictionary then holds what it did."""
    done: dict[str, int] = {}
    if kind is None:
        yield done
        return
    with subprocess.Popen(
        [sys.executable, "-m", "bench.support.attack", kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018
        try:
            process.stdin.write(json.dumps(task) + "\n")
            process.stdin.flush()
            if not process.stdout.readline():
                raise RuntimeError(f"python -m bench.support.attack {kind} did not start")
            yield done
            process.stdin.close()
            done |= json.loads(process.stdout.readline())
        finally:
            process.kill()


ATTACKS: Mapping[str, Callable[[Mapping[str, Any], Stopped], dict[str, int]]] = {
    each.__name__: each for each in (frames, switches, clients, requests)
}


def main(kind: str) -> None:
    """Attack until standard input ends."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    task, end = json.loads(sys.stdin.readline()), threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        end.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    print("ready", flush=True)  # noqa: T201
    print(json.dumps(ATTACKS[kind](task, end.is_set)), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1])
