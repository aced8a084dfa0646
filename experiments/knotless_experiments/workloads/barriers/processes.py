"""The processes of barriers, one per host: start, communication and end."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

from knotless.base.package import native
from knotless.emulation.priority import prioritise_program
from knotless_experiments.framework.experiment import ExperimentError

BINARY = native("knotless-barrier")
START_LIMIT_S = 60.0
END_LIMIT_S = 20.0
LONGEST_WAIT_S = 86400.0
"""The kernel takes no time limit of months, which a large slow-down makes."""


class Member:
    """One process; ``job.rs`` of ``core/messages/programs`` describes its ``job``."""

    def __init__(self, job: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        self.rank = int(job["rank"])
        try:
            self.process = subprocess.Popen(
                [str(BINARY)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **environment},
            )
        except FileNotFoundError:
            raise ExperimentError(f"{BINARY} is not there: run 'tools/setup.sh'") from None
        prioritise_program(self.process.pid, environment)
        self._heard = b""
        self.write_line(json.dumps(job))

    def write_line(self, text: str) -> None:
        """Write a line to the process; if it has ended, reading reports it."""
        try:
            _pipe(self.process.stdin).write(text.encode() + b"\n")
            _pipe(self.process.stdin).flush()
        except BrokenPipeError:
            pass

    def read_line(self, deadline: float) -> str:
        """Return the next line; raises ExperimentError with the reason if there is none."""
        out = _pipe(self.process.stdout)
        with selectors.DefaultSelector() as selector:
            selector.register(out, selectors.EVENT_READ)
            while b"\n" not in self._heard:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise ExperimentError(f"process {self.rank} did not answer in time")
                if not selector.select(min(left, LONGEST_WAIT_S)):
                    continue
                more = os.read(out.fileno(), 1 << 16)
                if not more:
                    why = _pipe(self.process.stderr).read().decode(errors="replace").strip()
                    raise ExperimentError(f"process {self.rank} has ended: {why or 'no reason'}")
                self._heard += more
        line, _, self._heard = self._heard.partition(b"\n")
        return line.decode()

    def end(self, deadline: float) -> None:
        """Wait until the process, whose input has been closed, has ended; kill it if it has not."""
        try:
            self.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for pipe in (self.process.stdout, self.process.stderr):
            _pipe(pipe).close()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:  # pragma: no cover - all three are pipes
        raise ValueError("no pipe")
    return pipe


@contextmanager
def running(
    jobs: Sequence[Mapping[str, Any]], environment: Mapping[str, str]
) -> Iterator[list[Member]]:
    """Start a process for each job, release them when all are ready, and end them all.

    ``environment`` is that of programs on the hosts of the fabric, whose removal also ends them.
    """
    members: list[Member] = []
    try:
        for job in jobs:
            members.append(Member(job, environment))
        deadline = time.monotonic() + START_LIMIT_S
        for member in members:
            if member.read_line(deadline) != "ready":
                raise ExperimentError(f"process {member.rank} did not get ready")
        for member in members:
            member.write_line("go")
        yield members
    except BaseException:
        # In the middle of a barrier, a process does not see that its input is closed.
        for member in members:
            member.process.kill()
        raise
    finally:
        for member in members:
            with suppress(BrokenPipeError):
                _pipe(member.process.stdin).close()
        deadline = time.monotonic() + END_LIMIT_S
        for member in members:
            member.end(deadline)


def outcomes(members: Sequence[Member], limit_s: float) -> list[dict[str, Any]]:
    """Return each process's final report; raises ExperimentError after ``limit_s``."""
    deadline = time.monotonic() + limit_s
    return [json.loads(member.read_line(deadline)) for member in members]
