"""A student's work, judged in a process of its own, whose programs may never end.

``python -m knotless.lab_checks.judge`` is that process. It prints one JSON object; what programs of
the student print goes to standard error.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from knotless.base.errors import KnotlessError
from knotless.base.package import python_module
from knotless.lab_checks.lab import LabError, Work, labs

CPU_LIMIT_S = 20
"""Processor time of all tasks of a submission."""
FURTHER_CPU_S = 1
"""What each task gets that follows one which has used all of it."""
MEMORY_LIMIT_BYTES = 1_000_000_000
WAITING_LIMIT_S = 300
"""Real time, for programs that wait and do not compute."""

Judgement = Literal["problems", "results"]
"""The method of :class:`~knotless.lab_checks.lab.Lab` that judges."""


def judged(number: int, judgement: Judgement, work: Work, *, quiet: bool = False) -> Any:
    """Return what a lab's judgement of some work returns, within limits; ``quiet`` drops output.

    Raises
    ------
    KnotlessError
        What the judgement raises, or the work has ended its process or waits for ever.

    """
    words = [str(number), judgement, str(work.directory), *([work.fabric] if work.fabric else [])]
    # Threads of libraries would each take memory.
    single = dict.fromkeys(("OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), "1")
    try:
        done = subprocess.run(
            python_module(__name__, *words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if quiet else None,
            env={**os.environ, **single},
            timeout=WAITING_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{work.directory}: not judged after {WAITING_LIMIT_S} s") from error
    try:
        answer = json.loads(done.stdout)
    except ValueError as error:
        how = f"by signal {-done.returncode}" if done.returncode < 0 else "by itself"
        raise LabError(f"{work.directory}: the process that judges it was ended {how}") from error
    if "error" in answer:
        raise LabError(answer["error"])
    return answer["judgement"]


def _limit(directory: Path) -> None:
    """Limit this process; what computes too long gets an error that names the line."""
    folder = directory.absolute()

    def is_theirs(frame: FrameType) -> bool:
        return Path(frame.f_code.co_filename).absolute().is_relative_to(folder)

    def stop(_signal: int, frame: FrameType | None) -> None:
        while frame is not None and not is_theirs(frame):
            frame = frame.f_back
        if frame is not None:
            code = frame.f_code
            raise LabError(
                f"{code.co_filename}, line {frame.f_lineno}: {code.co_name} has not ended after"
                f" {CPU_LIMIT_S} s of processor time: does it go in a circle?"
            )
        raise LabError(f"{directory}: not judged after {CPU_LIMIT_S} s of processor time")

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, CPU_LIMIT_S, FURTHER_CPU_S)
    # For code that catches every error, and for what computes outside of Python.
    resource.setrlimit(resource.RLIMIT_CPU, (2 * CPU_LIMIT_S, 2 * CPU_LIMIT_S))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))


def main(number: str, judgement: Judgement, directory: str, fabric: str | None = None) -> None:
    """Judge, and print the judgement or the error."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answer:
        os.dup2(2, 1)
        work = Work(Path(directory), fabric)
        lab = labs()[int(number)]
        _limit(work.directory)
        try:
            value = {"judgement": getattr(lab, judgement)(work)}
        except KnotlessError as error:
            value = {"error": str(error)}
        signal.setitimer(signal.ITIMER_PROF, 0)
        json.dump(value, answer)


if __name__ == "__main__":
    main(*sys.argv[1:])  # type: ignore[arg-type]
