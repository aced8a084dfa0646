"""Unmodified iperf3 between hosts of a fabric, in virtual time, with bounded run time.

iperf3 talks to its far side over a TCP connection of its own through the same fabric, so in
a deadlock it would hang for ever: callers must end it with :meth:`Iperf.kill`.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
import time
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from knotless.base.errors import KnotlessError
from knotless.traffic.theory import UDP_PAYLOAD_BYTES, Protocol

PORT = 5201
CONGESTION_CONTROL = "reno"
"""Of TCP, whatever the machine's own is: every Linux has it, and as those of the papers' days it
fills what buffers there are until a frame is lost, where BBR stays below them."""
LISTEN_TIMEOUT_S = 10.0
POLL_S = 0.02
TCP_LISTEN = "0A"
"""The state LISTEN in /proc/net/tcp."""


class Host(typing.Protocol):
    """A running Mininet host; ``pid`` is a process in its network namespace."""

    name: str
    pid: int

    def popen(self, args: list[str], **streams: Any) -> subprocess.Popen[bytes]:
        """Start a command in the host."""


class IperfError(KnotlessError):
    """An iperf3 that does not start."""


@dataclass(frozen=True)
class Summary:
    """The receiver's summary of the whole test: goodput and lost datagrams (UDP)."""

    goodput_mbps: float
    lost: int | None
    datagrams: int | None


def client_args(server_ip: str, protocol: Protocol, duration_s: float) -> list[str]:
    """Return the command of a sender at full rate for ``duration_s`` seconds."""
    args = ["iperf3", "-c", server_ip, "-p", str(PORT), "-t", f"{duration_s:.0f}", "-J"]
    if protocol == "udp":
        return [*args, "-u", "-b", "0", "-l", str(UDP_PAYLOAD_BYTES)]
    return [*args, "-C", CONGESTION_CONTROL]


def parse_summary(text: str) -> Summary | None:
    """Read the ``-J`` output of a client; None if the test was not completed.

    The JSON may follow warnings.
    """
    try:
        end: Any = json.loads(text[text.index("{") :])["end"]
        received = end["sum_received"]
        goodput_mbps = float(received["bits_per_second"]) / 1e6
        if "lost_packets" not in received:
            return Summary(goodput_mbps, None, None)
        return Summary(goodput_mbps, int(received["lost_packets"]), int(received["packets"]))
    except (ValueError, KeyError, TypeError):
        return None


class Iperf:
    """One iperf3 process in a host."""

    def __init__(self, host: Host, args: list[str]) -> None:
        self._out: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives with the process
        self.process = host.popen(
            args,
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=subprocess.STDOUT,
        )

    @property
    def running(self) -> bool:
        """Tell whether it is still running."""
        return self.process.poll() is None

    def kill(self) -> None:
        """Kill it if it is running, and wait until it has ended."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()

    def output(self) -> str:
        """Return its output."""
        self._out.seek(0)
        return self._out.read().decode(errors="replace")

    def close(self) -> None:
        """Kill it and discard its output."""
        self.kill()
        self._out.close()


def listening(pid: int, port: int = PORT) -> bool:
    """Tell whether a TCP socket listens on ``port`` in the process's network namespace."""
    for table in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/{pid}/net/{table}").read_text(encoding="ascii").splitlines()
        except OSError:
            continue
        for line in lines[1:]:
            fields = line.split()
            if fields[3] == TCP_LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                return True
    return False


def start_server(host: Host) -> Iperf:
    """Start a server for one test and wait until it listens. Raises IperfError."""
    server = Iperf(host, ["iperf3", "-s", "-1", "-p", str(PORT)])
    deadline = time.monotonic() + LISTEN_TIMEOUT_S
    while not listening(host.pid):
        if not server.running or time.monotonic() > deadline:
            output = server.output().strip().splitlines() or ["no output"]
            server.close()
            raise IperfError(
                f"{host.name}: iperf3's server does not listen on {PORT}: {output[-1]}"
            )
        time.sleep(POLL_S)
    return server
