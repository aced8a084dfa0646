"""Run whole controllers in simulated time: ``python -m tests.seeded --seed 7 --fabric ring,4``."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, redirect_stdout
from pathlib import Path

from tests.seeded.faults import KINDS, faults_from, faults_to
from tests.seeded.planted import PLANTED, found
from tests.seeded.run import FAULTS_S, Result, run, shrunk
from tests.seeded.settings import commit
from tests.seeded.world import Setting

_PLANT = "run with a fault of the controller that is planted on purpose, until it is found"


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of a command; None: those of this process."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.seeded",
        description="Run whole controllers in simulated time under a seed, with faults.",
        epilog="example: python -m tests.seeded --seed 7 --fabric torus,3,3 --controllers 2 --log",
    )
    parser.add_argument("--seed", type=int, default=1, help="the first seed (default: 1)")
    parser.add_argument("--runs", type=int, default=1, help="so many seeds (default: 1)")
    parser.add_argument("--fabric", default="ring,4", help="spec of the fabric (default: ring,4)")
    parser.add_argument("--controllers", type=int, default=1, help="number of controllers")
    parser.add_argument("--options", default="", help="more configuration, such as 'engine: dor'")
    parser.add_argument("--emulator", action="store_true", help="emulated links, Open vSwitch")
    parser.add_argument("--with-ryu", action="store_true", help="run it as an application of Ryu")
    parser.add_argument("--kinds", default=",".join(KINDS), help="kinds of faults, with commas")
    parser.add_argument("--seconds", type=float, default=FAULTS_S, help="how long faults begin")
    parser.add_argument("--events", type=Path, help="a file of faults, instead of drawn ones")
    parser.add_argument("--plant", choices=PLANTED, metavar="FAULT", help=_PLANT)
    parser.add_argument("--shrink", action="store_true", help="search for a shorter list of faults")
    parser.add_argument("--no-invariants", action="store_true", help="judge nothing meanwhile")
    parser.add_argument("--log", action="store_true", help="print what happens")
    return parser.parse_args(words)


def settings_of(asked: argparse.Namespace) -> list[Setting]:
    """Return the settings of a command, one for each seed."""
    return [
        Setting(
            seed,
            asked.fabric,
            asked.controllers,
            asked.options,
            asked.emulator,
            judged=not asked.no_invariants,
            with_ryu=asked.with_ryu,
        )
        for seed in range(asked.seed, asked.seed + asked.runs)
    ]


def results_of(asked: argparse.Namespace) -> Iterator[Result]:
    """Perform the runs of a command."""
    faults = faults_from(asked.events.read_text()) if asked.events else None
    for setting in settings_of(asked):
        yield run(setting, faults, kinds=asked.kinds.split(","), seconds=asked.seconds)


def main() -> int:
    """Run one seed, or several; return 1 if anything was violated."""
    asked = parsed()
    warnings.simplefilter("ignore", DeprecationWarning)
    if asked.plant:
        number, violation = found(asked.plant, range(asked.seed, asked.seed + asked.runs))
        _say(f"{asked.plant}: {violation or 'not found'}; {number} seeds")
        return 0 if violation else 1
    failed = 0
    for result in results_of(asked):
        failed += bool(result.violations)
        # With --shrink, standard output is the file for --events.
        with redirect_stdout(sys.stderr) if asked.shrink else nullcontext():
            _report(result, log=asked.log)
        if asked.shrink:
            left = result.faults
            if result.violations:
                kind = result.violations[0].kind
                left = shrunk(result.setting, left, kind, _report_progress)
            _say(faults_to(left))
    return 1 if failed else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _report_progress(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _report(result: Result, *, log: bool) -> None:
    setting = result.setting
    if log:
        _say("\n".join(result.lines))
    verdict = f"{len(result.violations)} violations" if result.violations else "all is well"
    speed = result.simulated_s / result.processor_s
    _say(
        f"seed {setting.seed}, {setting.fabric}, {setting.controllers} controllers: {verdict};"
        f" {len(result.faults)} faults, settled after {result.settled_s:.1f} s,"
        f" {result.judged} states, {speed:.0f} times real time, {result.digest}"
    )
    for violation in result.violations[:8]:
        _say(f"  {violation}")
    if result.violations:
        _say(f"  commit {commit()[:9]}: {setting.command}")


if __name__ == "__main__":
    raise SystemExit(main())
