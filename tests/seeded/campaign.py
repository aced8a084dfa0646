"""New seeds on all cores for some hours: ``python -m tests.seeded.campaign --hours 8``.

Each run is a line of JSON in a file, written when it ends; ``python -m tests.seeded.summary FILE``
sums up such files. Control-C lets the runs that go on end, and loses none.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import replace
from functools import partial
from itertools import count, islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.seeded.run import run
from tests.seeded.settings import FABRICS, commit, drawn_setting

_RUNS_PER_PROCESS = 50
_PROGRESS_S = 30.0


def main() -> int:
    """Run new seeds; return 1 if anything was violated."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.seeded.campaign",
        description="Run new seeds of whole controllers in simulated time on all cores.",
        epilog="example: python -m tests.seeded.campaign --hours 8 --file results/seeds.jsonl",
    )
    parser.add_argument("--hours", type=float, default=1.0, help="of real time (default: 1)")
    parser.add_argument("--runs", type=int, help="at most so many runs")
    parser.add_argument("--file", type=Path, default=Path("results/seeds.jsonl"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--first", type=int, help="the first seed (default: by the time of day)")
    parser.add_argument("--fabric", help=f"default: drawn, {', '.join(FABRICS)}")
    parser.add_argument("--no-invariants", action="store_true", help="judge nothing meanwhile")
    asked = parser.parse_args()
    first = int(time.time()) * 1000 if asked.first is None else asked.first
    seeds = iter(range(first, first + asked.runs)) if asked.runs else count(first)
    asked.file.parent.mkdir(parents=True, exist_ok=True)
    _say(f"seeds from {first} on, to {asked.file}")
    begin = partial(one, fabric=asked.fabric, judged=not asked.no_invariants)
    return 1 if _Campaign(asked.file, asked.hours * 3600).run(begin, seeds, asked.jobs) else 0


def one(seed: int, fabric: str | None, *, judged: bool) -> dict[str, Any]:
    """Run a seed with its own setting, and return what is kept of it."""
    warnings.simplefilter("ignore", DeprecationWarning)
    setting = replace(drawn_setting(seed, fabric), judged=judged)
    try:
        kept = run(setting).as_json()
    except Exception as error:  # noqa: BLE001 - one run that ends with it does not end the others
        text = f"the run ended: {error!r}"
        kept = {"seed": seed, "violations": [["exception", text]], "violated": 1}
    return {**kept, "command": setting.command, "commit": commit()}


def _ignore_interrupts() -> None:
    """Leave Control-C to the process that hands out seeds."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class _Campaign:
    """Hands out seeds until the time is over, and writes what comes back."""

    def __init__(self, file: Path, seconds: float) -> None:
        self._file, self._began_s, self._seconds = file, time.monotonic(), seconds
        self._runs = self._failed = 0
        self._simulated_s, self._reported_s = 0.0, self._began_s
        self._is_over = False

    def run(self, begin: Callable[[int], dict[str, Any]], seeds: Iterator[int], jobs: int) -> int:
        """Keep so many runs going; return how many of them violated something.

        After Control-C no more begin; a second one ends all.
        """
        waiting = set[Future[dict[str, Any]]]()
        signal.signal(signal.SIGINT, self._interrupted)
        context = get_context("spawn")
        with (
            self._file.open("a") as out,
            ProcessPoolExecutor(
                jobs, context, _ignore_interrupts, max_tasks_per_child=_RUNS_PER_PROCESS
            ) as pool,
        ):
            while True:
                if not self._is_over and time.monotonic() - self._began_s < self._seconds:
                    for seed in islice(seeds, jobs - len(waiting)):
                        waiting.add(pool.submit(begin, seed))
                if not waiting:
                    break
                done, waiting = wait(waiting, _PROGRESS_S, FIRST_COMPLETED)
                for future in done:
                    out.write(json.dumps(future.result()) + "\n")
                    out.flush()
                    self._take(future.result())
        self._report()
        return self._failed

    def _interrupted(self, *_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._is_over = True
        _say("the runs that go on end first")

    def _take(self, kept: dict[str, Any]) -> None:
        self._runs += 1
        self._simulated_s += kept.get("simulated_s", 0.0)
        if kept["violated"]:
            self._failed += 1
            _say(f"{kept['command']}: {kept['violations'][0][1]}")
        if time.monotonic() - self._reported_s > _PROGRESS_S:
            self._report()

    def _report(self) -> None:
        """Say how far it is."""
        self._reported_s = time.monotonic()
        minutes = (self._reported_s - self._began_s) / 60
        _say(
            f"{minutes:.1f} of {self._seconds / 60:g} minutes: {self._runs} runs,"
            f" {self._simulated_s / 3600:.2f} simulated hours, {self._failed} with violations"
        )


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    raise SystemExit(main())
