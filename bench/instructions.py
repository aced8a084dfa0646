"""Instructions of the simulator for each packet-link-hop, as callgrind counts them.

Unlike speeds, counts do not depend on other work on the machine. Only those inside the extension
count, and not Python's. Two processes do the same, but the second one simulates twice as long:
their difference is what hops take alone, between one duration and two, where queues are as full as
they become.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import click

from bench.simulation import LINKS, POISSON, SATURATE
from bench.support.entry import Run, benchmark, machine_line, run_benchmark
from knotless.base.errors import KnotlessError
from knotless.routing.plan import make_plan
from knotless.simulation import Load, Scenario, simulate
from knotless.topologies import load

VALGRIND = ("valgrind", "--tool=callgrind", "--dump-line=no")
EXTENSION = "_core.abi3"
"""Is in the name of the object whose instructions count."""
OBJECT = re.compile(r"c?ob=\((\d+)\)(?: (.*))?")
COST = re.compile(r"[\d+*-]")
LIMIT_S = 1800.0


@dataclass(frozen=True)
class Case:
    """One row: what is simulated for ``duration_us``, and for twice as long."""

    fabric: str
    engine: str
    pattern: str
    load: Load
    duration_us: float = 500


CASES = (
    Case("fattree3,8", "fattree", "permutation", SATURATE),
    Case("mesh,8,8,hosts=2", "dor", "uniform", POISSON, 1_000),
)


def hops(case: Case, duration_us: float) -> int:
    """Simulate a case for so many microseconds, and return the packet-link-hops."""
    plan = make_plan(load(f"{case.fabric},{LINKS}"), case.engine)
    scenario = Scenario(plan, case.pattern, case.load, duration_us=duration_us)
    return simulate(scenario).report.packet_hops


def instructions_inside(profile: Iterable[str]) -> int:
    """Return the instructions of the extension's own code, of a profile of callgrind.

    The format is that of valgrind's manual, "Callgrind Format Specification": an object has its
    name where it is met first, and then a number. Costs are of the last ``ob=``, but for the line
    behind ``calls=``, which has those of the function called.
    """
    names: dict[str, str] = {}
    count, inside, is_call = 0, False, False
    for line in profile:
        if found := OBJECT.match(line):
            number, name = found.groups()
            names.setdefault(number, name)
            if line.startswith("ob="):
                inside = EXTENSION in names[number]
        elif line.startswith("calls="):
            is_call = True
        elif COST.match(line):
            count += int(line.split()[1]) if inside and not is_call else 0
            is_call = False
    return count


def counted(command: Sequence[str]) -> tuple[int, str]:
    """Run a command, and return the instructions of the extension, and what it has printed.

    Raises
    ------
    KnotlessError
        The command fails, or uses no extension.

    """
    # Otherwise each process has its own order of names in sets.
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    with tempfile.NamedTemporaryFile("r") as profile:
        done = subprocess.run(
            [*VALGRIND, f"--callgrind-out-file={profile.name}", *command],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env=environment,
        )
        count = instructions_inside(profile)
    if done.returncode or not count:
        raise KnotlessError(f"{' '.join(command)} under valgrind: {done.stderr[-500:]}")
    return count, done.stdout


def measure(number: int) -> dict[str, Any]:
    """Return the row of a case; it has no instructions if valgrind is missing."""
    case = CASES[number]
    row = {
        "fabric": case.fabric,
        "pattern": case.pattern,
        "packet_hops": None,
        "instructions": None,
        "instructions_per_hop": None,
    }
    if shutil.which(VALGRIND[0]) is None:
        click.echo("valgrind is not installed: no instructions are counted", err=True)
        return row
    program = "from bench.instructions import CASES, hops; print(hops(CASES[{}], {}))"
    commands = [
        [sys.executable, "-c", program.format(number, times * case.duration_us)] for times in (1, 2)
    ]
    (once, printed), (twice, more) = (counted(command) for command in commands)
    packet_hops, instructions = int(more) - int(printed), twice - once
    per_hop = round(instructions / packet_hops, 1)
    return {
        **row,
        "packet_hops": packet_hops,
        "instructions": instructions,
        "instructions_per_hop": per_hop,
    }


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the table in docs/performance.md."""
    lines = ["| fabric | traffic | packet-link-hops | instructions/hop |", "|---|---|---|---|"]
    for row in run["rows"]:
        count, per_hop = row["packet_hops"], row["instructions_per_hop"]
        figures = " |  |" if count is None else f" {count:,} | {per_hop:.0f} |"
        lines.append(f"| {row['fabric']} | {row['pattern']} |{figures}")
    return [*lines, "", machine_line(run)]


@benchmark(table_of)
def main(run: Run) -> None:
    """Count the simulator's instructions for each hop, with valgrind.

    Example: python -m bench.instructions --json > docs/benchmarks/instructions.json
    """
    run.more(cases=[asdict(case) for case in CASES])
    for number in range(len(CASES)):
        run.add(measure(number))


if __name__ == "__main__":
    run_benchmark(main)
