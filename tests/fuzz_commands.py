"""Run forged command lines and report those that do not end as they should.

Each must end with status 0, 1 or 2, without a traceback, within 20 s and 2 GiB, with one error line
if the status is 2, and leave no temporary file. The 20 s are CPU time, because the machine may be
busy; a command that blocks is killed after two minutes. Cases run in processes that are forked
after all imports, some hundred in each.

Example: .venv/bin/python -m tests.fuzz_commands --cases 100000 --seed 1
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import multiprocessing
import os
import random
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

from knotless.base.errors import EmulationError, KnotlessError
from knotless.cli.main import main
from tests.support import forged_inputs

CPU_LIMIT_S = 20
BLOCKED_S = 120.0
LIMIT_BYTES = 2 << 30
BATCH = 200
STATUSES = (0, 1, 2)


@dataclass(frozen=True)
class Ended:
    """The end of a case; ``wrong`` describes the violation, or is None."""

    number: int
    words: Sequence[str]
    status: int
    wrong: str | None


def run_cases(first: int, end: int, seed: int, workers: int) -> Iterator[Ended]:
    """Run the cases from ``first`` up to ``end`` (exclusive); yield how they ended, in order."""
    for name in set(forged_inputs.COMMANDS):
        forged_inputs.command_named(name)
    forged_inputs.originals(), forged_inputs.rules()
    if forged_inputs.HAS_EXPERIMENTS:
        forged_inputs.experiments()
    batches = [range(begin, min(begin + BATCH, end)) for begin in range(first, end, BATCH)]
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        for batch in pool.imap(partial(_run_batch, seed=seed), batches):
            yield from batch


def _run_batch(cases: range, seed: int) -> list[Ended]:
    ended: list[Ended] = []
    while len(ended) < len(cases):
        folder = Path(tempfile.mkdtemp(prefix="knotless-fuzz-"))
        try:
            ended += _in_worker(cases[len(ended) :], seed, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return ended


def _in_worker(cases: range, seed: int, folder: Path) -> Iterator[Ended]:
    """Yield how each case ended, up to one that hangs or ends its process."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _work(cases, seed, folder, writer)
    os.close(writer)
    with open(reader, encoding="utf-8") as lines:  # noqa: PTH123 - a descriptor
        for number in cases:
            line = lines.readline() if select.select([reader], [], [], BLOCKED_S)[0] else None
            if line:
                yield Ended(number, *json.loads(line))
                continue
            os.kill(pid, signal.SIGKILL)
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            words = json.loads((folder / "words").read_text())
            errors = (folder / "errors").read_text(errors="replace")[-200:]
            how = f"took more than {BLOCKED_S:.0f} s" if line is None else f"died of it: {errors}"
            if status == -signal.SIGXCPU:
                how = f"took more than {CPU_LIMIT_S} s of CPU time"
            yield Ended(number, words, status, how)
            return
        os.waitpid(pid, 0)


def _work(cases: range, seed: int, folder: Path, writer: int) -> NoReturn:
    """Run each case in its own folder and write a line for it; never returns."""
    try:
        _prepare(folder)
        for number in cases:
            place = folder / str(number)
            place.mkdir()
            os.chdir(place)
            rng = random.Random(f"{seed}/{number}")  # noqa: S311
            words = forged_inputs.command_line(rng)
            (folder / "words").write_text(json.dumps(words))
            _allow_more_cpu()
            status, wrong = _judged(words, place)
            os.chdir(folder)
            shutil.rmtree(place)
            os.write(writer, (json.dumps([words, status, wrong]) + "\n").encode())
    finally:
        if sys.exc_info()[0] is not None:
            traceback.print_exc()
        os._exit(0)


def _prepare(folder: Path) -> None:
    """Limit memory, and prevent commands from starting processes that outlive them."""
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT_BYTES, LIMIT_BYTES))
    errors = os.open(folder / "errors", os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(errors, 2)
    for target, instead in INSTEAD.items():
        if target.startswith("knotless.") or forged_inputs.HAS_EXPERIMENTS:
            mock.patch(target, instead).start()
    # A fabric that runs on this machine may be of another version of the program.
    mock.patch("knotless.emulation.names.RUN_DIRECTORY", folder / "run").start()


def _allow_more_cpu() -> None:
    used = math.ceil(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (used + CPU_LIMIT_S, resource.RLIM_INFINITY))


def _no_fabrics() -> None:
    raise EmulationError("running fabrics needs root: put sudo before the command")


def _not_run(*_: Any) -> NoReturn:
    raise KnotlessError("this experiment was to be checked alone")


def _points_here(folder: Any, _client: Any, left: Sequence[int], watch: Any) -> None:
    """Run the points of a sweep without a cluster of processes."""
    from knotless_experiments.sweeps.figures import run_point
    from knotless_experiments.sweeps.settings import settings_of

    grid = folder.grid
    for number in left:
        row, seconds = run_point(grid.do, number, settings_of(grid.do, grid.points[number]))
        folder.keep(row, seconds)
        watch.advance(row)


def _judged(words: Sequence[str], place: Path) -> tuple[int, str | None]:
    """Run a command line; return its exit status and the violation, or None."""
    out, errors = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    status, wrong = 0, None
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            main(list(words), prog_name="knotless")
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException as error:  # noqa: BLE001 - any exception is reported
        frame = traceback.extract_tb(error.__traceback__)[-1]
        wrong = f"{type(error).__name__}: {error} ({frame.filename}:{frame.lineno})"
    output = errors.buffer.getvalue().decode(errors="replace")
    if wrong is None and status not in STATUSES:
        wrong = f"exit status {status}"
    if wrong is None and "Traceback" in output:
        wrong = f"a traceback: {output[-300:]}"
    last = output.rstrip("\n").split("\n")[-1]
    if wrong is None and status == 2 and not last.startswith("knotless: "):
        wrong = f"no line of complaint: {output[-300:]!r}"
    if wrong is None and (left := list(place.rglob(".knotless-*"))):
        wrong = f"left {left[0].name}"
    return status, wrong


INSTEAD: Mapping[str, Any] = {
    "knotless.emulation.requirements.require_fabrics": _no_fabrics,
    "knotless_experiments.commands.run.execute": _not_run,
    "knotless_experiments.sweeps.cluster.local": contextlib.nullcontext,
    "knotless_experiments.sweeps.cluster.remote": contextlib.nullcontext,
    "knotless_experiments.sweeps.run._run": _points_here,
}
"""Functions that commands call to start processes, and those that they are to call instead."""


def _main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args()
    counts: Counter[int] = Counter()
    wrong = 0
    for case in run_cases(chosen.first, chosen.first + chosen.cases, chosen.seed, chosen.workers):
        counts[case.status] += 1
        if case.wrong is not None:
            wrong += 1
            print(f"case {case.number}: {case.wrong}\n    {case.words}", flush=True)  # noqa: T201
    shown = ", ".join(f"status {status}: {count}" for status, count in sorted(counts.items()))
    print(f"{chosen.cases} cases of seed {chosen.seed}, {wrong} wrong ({shown})")  # noqa: T201
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(_main())
