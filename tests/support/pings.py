"""Pings that go on while something happens to a fabric."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def every_echo_arrives(clients: Sequence[subprocess.Popen[str]]) -> Iterator[None]:
    """Let pings run, then end them; the last echo of each may still be under way then."""
    try:
        yield
    finally:
        for client in clients:
            client.send_signal(signal.SIGINT)
        said = [client.communicate(timeout=30)[0] for client in clients]
    for text in said:
        found = [int(number) for number in re.findall(r"icmp_seq=(\d+) ttl", text)]
        assert found == list(range(1, len(found) + 1))
        sent = int(re.findall(r"(\d+) packets transmitted", text)[0])
        assert sent - len(found) <= 1 < sent
