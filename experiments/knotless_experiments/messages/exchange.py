"""Messages between hosts of a running fabric, sent by one process (see ``messenger.py``)."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from knotless.base.errors import KnotlessError

if TYPE_CHECKING:
    from knotless.emulation.network import EmulatedFabric

START_LIMIT_S = 20.0
SPARE_S = 15.0
"""Extra virtual time for an answer."""
WARM_UP_MESSAGES = 4
"""Messages on empty links before a measurement: the start must be over."""
LONGEST_WARM_UP_S = 0.5
BUSY = 0.5
"""A messenger that computed for more than this part of the time may have limited the hosts."""
MOST_STRETCH = 50.0
"""A messenger whose answer is late is given up, in real time, only if virtual time is slower than
the fabric's slow-down by more than this."""


class ExchangeError(KnotlessError):
    """A messenger that does not start, or has exited."""


def warm_up_s(message_us: float) -> float:
    """Return the time before a measurement of messages that take ``message_us`` on empty links."""
    return min(LONGEST_WARM_UP_S, WARM_UP_MESSAGES * message_us / 1e6)


def sender_problems(cpu_s: float, real_s: float) -> list[str]:
    """Return why a measurement may be one of the process that sends for all hosts.

    It computed for ``cpu_s`` of ``real_s`` seconds. The fabric cannot tell a host that is late from
    one that has nothing to send. The slow-down that is asked for leaves it a tenth of the time.
    """
    busy = cpu_s / real_s if real_s else 0.0
    if busy <= BUSY:
        return []
    return [
        f"the process that sends for all hosts computed for {busy:.0%} of the time: give a "
        f"--slow-down at least {10 * busy:.0f} times the stretch, or slower links"
    ]


class Messenger:
    """The messenger of a running fabric, in virtual time; a context manager."""

    def __init__(self, lab: EmulatedFabric) -> None:
        self._index = lab.fabric.host_index
        self._run = 0
        self._seconds, self._cpu_s = 0.0, 0.0
        self._patience = lab.slow_down * MOST_STRETCH
        self._process = subprocess.Popen(
            [sys.executable, "-m", "knotless_experiments.messages.messenger"],
            env={**os.environ, **lab.program_environment(several_hosts=True)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        hosts = [
            {"namespace": f"/run/netns/{lab.names.host_namespace(host.name)}", "ip": host.ip}
            for host in lab.fabric.hosts
        ]
        try:
            self._ask(hosts, START_LIMIT_S)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Messenger:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def end(self) -> None:
        """End the process; callers that wait for an answer get an ExchangeError."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End the process and close its pipes."""
        self.end()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def acknowledged(
        self, pairs: Sequence[tuple[str, str]], message_bytes: int, seconds: float, warm_up_s: float
    ) -> list[list[float]]:
        """Return the times (us) of each flow's messages; see the messenger."""
        ask = {"flows": self._numbers(pairs), "bytes": message_bytes}
        times = {"seconds": seconds, "warm_up_s": warm_up_s}
        answer = self._do("acknowledged", seconds + warm_up_s, **ask, **times)
        times_us: list[list[float]] = answer["times_us"]
        return times_us

    def phases(
        self,
        phases: Sequence[Sequence[tuple[str, str]]],
        *,
        datagrams: int,
        datagram_bytes: int,
        limit_s: float,
    ) -> list[float]:
        """Return the seconds of each phase; fewer if ``limit_s`` was exceeded."""
        ask = {"phases": [self._numbers(pairs) for pairs in phases], "limit_s": limit_s}
        load = {"datagrams": datagrams, "bytes": datagram_bytes}
        phase_s: list[float] = self._do("phases", limit_s, **ask, **load)["seconds"]
        return phase_s

    def answering(self, seconds: float, **ask: Any) -> dict[str, Any]:
        """Let hosts answer before they take more, for this time; see ``answering.py``."""
        return self._do("answering", seconds, seconds=seconds, **ask)

    def problems(self, stretch: float) -> list[str]:
        """Return what makes the last answer a measurement of this process, not of the fabric.

        ``stretch`` is that of the time since the question; see :func:`sender_problems`.
        """
        return sender_problems(self._cpu_s, self._seconds * stretch)

    def _numbers(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[int, int]]:
        return [(self._index[a], self._index[b]) for a, b in pairs]

    def _do(self, what: str, limit_s: float, /, **fields: Any) -> dict[str, Any]:
        self._run += 1
        return self._ask(
            {"do": what, "run": self._run, **fields}, (limit_s + SPARE_S) * self._patience
        )

    def _ask(self, request: Any, limit_s: float) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None  # noqa: S101, PT018 - both are pipes
        try:
            stdin.write(json.dumps(request) + "\n")
            stdin.flush()
        except BrokenPipeError:
            raise ExchangeError("the messenger has died") from None
        ready, _, _ = select.select([stdout], [], [], limit_s)
        line = stdout.readline() if ready else ""
        if not line:
            raise ExchangeError("the messenger does not answer")
        answer: dict[str, Any] = json.loads(line)
        self._seconds, self._cpu_s = answer.get("seconds_in_all", 0.0), answer.get("cpu_s", 0.0)
        return answer
