"""What a busy fabric leaves to the other programs of the machine, and what they leave to it.

    sudo .venv/bin/python -m bench.fair_share --part machine --minutes 20 --into FILE

Parts: ``machine``: how long ``knotless --version`` and ``sleep 0.1`` take while a fabric carries
all-to-all traffic as fast as it can, and how the memory of its processes grows. ``busy``: the rows
of ``knotless run deadlock`` beside busy loops. ``controllers``: takeovers and reported failures of
a fabric with two controllers beside busy loops. ``students``: several fabrics at once. ``sizes``:
processes, memory and pace of single fabrics, from which ``knotless up`` says what one will take.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import psutil

from bench.emulation_time import busy_loops
from bench.support.entry import (
    about,
    as_stored,
    machine_line,
    merged_into,
    run_benchmark,
    table_option,
)
from knotless.base.errors import EmulationError
from knotless.base.files import write_whole
from knotless.cli.priority import priority_option
from knotless.emulation import processes, rest, state
from knotless.emulation.daemon import Daemon
from knotless.emulation.names import Names, names_of
from knotless.emulation.runtime import require_root

KNOTLESS = Path(sys.executable).with_name("knotless")
LARGE, SMALL = "torus,10,10", "ring,4"
SIZES = (SMALL, "torus,4,4", "torus,4,4,hosts=4", LARGE)
STUDENTS = (1, 4, 8, 16)
LOOPS = 4
SETTLED = 0.25
"""Share of a run after which memory counts as settled: minute 5 of 20."""
LOOK_S = 5.0
SLEEP_S = 0.1
WARM_S, WINDOW_S = 2.0, 10.0
CASE = ("part", "fabric", "fabrics", "priority", "switch_processes")
"""The columns that tell the rows of a stored run apart."""


@dataclass(frozen=True)
class Wanted:
    """What is measured; ``minutes`` are for each row."""

    fabric: str | None
    priority: str
    switch_processes: int | None
    minutes: float
    fabrics: Sequence[int]


def knotless(*words: str) -> str:
    """Run a command of a user; raises RuntimeError with what it says if it fails."""
    done = subprocess.run([str(KNOTLESS), *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"knotless {' '.join(words)}: {done.stderr.strip()[-300:]}")
    return done.stdout


@contextmanager
def up(spec: str, priority: str, *options: str) -> Iterator[Names]:
    """Have a fabric run in the background during the block."""
    names = names_of(f"fair-{secrets.token_hex(2)}")
    words = ("--name", names.name, "--rest-port", "0", "--priority", priority)
    try:
        knotless("up", spec, *words, *options)
        yield names
    finally:
        knotless("down", "--name", names.name)


def all_to_all(names: Names) -> None:
    """Have each host send to all others in turn, as fast as it can, until the fabric ends."""
    knotless("traffic", "start", "uniform", "--name", names.name)


def seconds_of(*words: str) -> float:
    """Return how long a command takes."""
    began_s = time.monotonic()
    subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - began_s


def spread(seconds: Sequence[float]) -> dict[str, float | int]:
    """Return median, 99th percentile, longest and number of some times, in seconds."""
    return {
        "median_s": round(float(np.median(seconds)), 3),
        "p99_s": round(float(np.percentile(seconds, 99)), 3),
        "max_s": round(max(seconds), 3),
        "count": len(seconds),
    }


class Memory:
    """The memory of all processes of a fabric over time: their proportional set size, in MB."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self.looks: list[dict[int, float]] = []
        self.words: dict[int, str] = {}

    def look(self) -> dict[int, float]:
        """Read it now; by pid."""
        found: dict[int, float] = {}
        current = state.read(self._names)
        owner = {current.owner} if current is not None else set()
        for process in processes.marked(self._names.name) | owner:
            try:
                text = Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii")
                name = Path(f"/proc/{process.pid}/comm").read_text(encoding="utf-8").strip()
            except OSError:
                continue
            line = next(line for line in text.splitlines() if line.startswith("Pss:"))
            found[process.pid] = int(line.split()[1]) * 1024 / 1e6
            self.words[process.pid] = name
        self.looks.append(found)
        return found

    def figures(self) -> dict[str, Any]:
        """Return what it is at the end, and who has grown most since it has settled."""
        settled, last = self.looks[int(SETTLED * (len(self.looks) - 1))], self.looks[-1]
        grown = {pid: last[pid] / settled[pid] - 1 for pid in settled if pid in last}
        most = max(grown, key=lambda pid: grown[pid])
        switches = [mb for pid, mb in last.items() if self.words[pid] == "ovs-vswitchd"]
        return {
            "processes": len(last),
            "memory_mb": round(sum(last.values())),
            "switch_process_mb": round(max(switches), 1),
            "grown": round(grown[most], 3),
            "grown_process": self.words[most],
        }


@dataclass
class Pace:
    """Frames on all channels of some fabrics in a time."""

    daemons: Sequence[Daemon]
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._began_s, self._frames = self.clock(), self._now()

    def _now(self) -> int:
        return sum(
            int(channel["rx_frames"])
            for daemon in self.daemons
            for channel in daemon.counters()["channels"]
        )

    def hops_per_s(self) -> int:
        """Return the channel-hops per second of real time since the beginning."""
        return round((self._now() - self._frames) / (self.clock() - self._began_s))


def daemon_of(names: Names) -> Daemon:
    """Return the client of a fabric's emulator."""
    return Daemon(names.emulator_socket, {})


def validity(daemon: Daemon) -> dict[str, Any]:
    """Return the figures of an emulator that tell how it fared."""
    status = daemon.status()
    return {key: status[key] for key in ("stretch", "valid", "problems")}


def machine(wanted: Wanted) -> Iterator[dict[str, Any]]:
    """Measure other programs, and memory, beside a fabric."""
    spec = wanted.fabric or LARGE
    count = wanted.switch_processes
    options = () if count is None else ("--switch-processes", str(count))
    with up(spec, wanted.priority, *options) as names:
        daemon, memory = daemon_of(names), Memory(names)
        all_to_all(names)
        time.sleep(WARM_S)
        pace = Pace([daemon])
        versions: list[float] = []
        sleeps: list[float] = []
        end_s = time.monotonic() + 60 * wanted.minutes
        next_s = 0.0
        while time.monotonic() < end_s:
            if time.monotonic() >= next_s:
                memory.look()
                next_s = time.monotonic() + LOOK_S
            versions.append(seconds_of(str(KNOTLESS), "--version"))
            sleeps += [seconds_of("sleep", str(SLEEP_S)) for _ in range(5)]
        memory.look()
        settings = state.require_running(names).settings
        yield {
            "fabric": spec,
            "switch_processes": settings["switch_processes"],
            "minutes": wanted.minutes,
            "version": spread(versions),
            "sleep": spread(sleeps),
            "hops_per_s": pace.hops_per_s(),
            **validity(daemon),
            **memory.figures(),
        }


def busy(wanted: Wanted) -> Iterator[dict[str, Any]]:
    """Run the experiment on deadlocks beside busy loops."""
    with tempfile.TemporaryDirectory() as folder, busy_loops(LOOPS):
        began_s = time.monotonic()
        text = knotless(
            *("run", "deadlock", "--json", "--out", folder, "--priority", wanted.priority)
        )
        rows = json.loads(text)["rows"]
    yield {
        "fabric": "run deadlock",
        "switch_processes": None,
        "loops": LOOPS,
        "rows": len(rows),
        "valid_rows": sum(bool(row["valid"]) for row in rows),
        "problems": sorted({problem for row in rows for problem in row.get("problems") or ()}),
        "seconds": round(time.monotonic() - began_s),
    }


def controllers(wanted: Wanted) -> Iterator[dict[str, Any]]:
    """Count takeovers and failures that two controllers report beside busy loops."""
    spec = wanted.fabric or "torus,4,4"
    with up(spec, wanted.priority, "--controllers", "2") as names, busy_loops(LOOPS):
        settings = state.require_running(names).settings
        first = rest.status_of(rest.ports_of(settings))["role"]
        all_to_all(names)
        failures: set[str] = set()
        takeovers, unanswered = 0, 0
        last = first
        end_s = time.monotonic() + 60 * wanted.minutes
        while time.monotonic() < end_s:
            try:
                status = rest.status_of(rest.ports_of(settings))
            except EmulationError:
                unanswered += 1
                continue
            if status["role"]["state"] == "active":
                takeovers += status["role"]["term"] != last["term"]
                last = status["role"]
            failures |= set(status["routes"]["failed"])
            time.sleep(1.0)
        yield {
            "fabric": spec,
            "switch_processes": settings["switch_processes"],
            "loops": LOOPS,
            "minutes": wanted.minutes,
            "takeovers": takeovers,
            "failures": sorted(failures),
            "unanswered": unanswered,
            **validity(daemon_of(names)),
        }


def students(wanted: Wanted) -> Iterator[dict[str, Any]]:
    """Measure several fabrics at once, all of which carry all-to-all traffic."""
    spec = wanted.fabric or SMALL
    for count in wanted.fabrics:
        began_s = time.monotonic()
        with ExitStack() as opened:
            every = [opened.enter_context(up(spec, wanted.priority)) for _ in range(count)]
            started_s = time.monotonic() - began_s
            memory_mb = sum(sum(Memory(names).look().values()) for names in every)
            for names in every:
                all_to_all(names)
            daemons = [daemon_of(names) for names in every]
            time.sleep(WARM_S)
            for daemon in daemons:
                daemon.reset()
            pace = Pace(daemons)
            versions = []
            end_s = time.monotonic() + 60 * wanted.minutes
            while time.monotonic() < end_s:
                versions.append(seconds_of(str(KNOTLESS), "--version"))
            hops_per_s = pace.hops_per_s()
            statuses = [validity(daemon) for daemon in daemons]
        yield {
            "fabric": spec,
            "switch_processes": 1,
            "fabrics": count,
            "start_s": round(started_s / count, 1),
            "memory_mb": round(memory_mb),
            "hops_per_s": hops_per_s,
            "stretch": max(one["stretch"] or 0.0 for one in statuses),
            "valid": all(one["valid"] for one in statuses),
            "version": spread(versions),
        }


def sizes(wanted: Wanted) -> Iterator[dict[str, Any]]:
    """Measure processes, memory and pace of single fabrics."""
    for spec in [wanted.fabric] if wanted.fabric else SIZES:
        began_s = time.monotonic()
        with up(spec, wanted.priority) as names:
            start_s, memory, daemon = time.monotonic() - began_s, Memory(names), daemon_of(names)
            settings = state.require_running(names).settings
            memory.look()
            all_to_all(names)
            time.sleep(WARM_S)
            daemon.reset()
            pace = Pace([daemon])
            time.sleep(WINDOW_S)
            hops_per_s = pace.hops_per_s()
            memory.look()
            yield {
                "fabric": spec,
                "switch_processes": settings["switch_processes"],
                "start_s": round(start_s, 1),
                "hops_per_s": hops_per_s,
                **validity(daemon),
                **memory.figures(),
            }


PARTS: Mapping[str, Callable[[Wanted], Iterator[dict[str, Any]]]] = {
    each.__name__: each for each in (machine, busy, controllers, students, sizes)
}


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the tables in docs/performance.md."""
    lines: list[str] = []
    for part, (heads, cells) in COLUMNS.items():
        rows = [row for row in run["rows"] if row["part"] == part]
        if rows:
            lines += [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
            lines += [f"| {' | '.join(map(str, cells(row)))} |" for row in rows]
            lines.append("")
    return [*lines, machine_line(run)]


def _valid(row: Mapping[str, Any]) -> str:
    return "yes" if row["valid"] else f"no: {'; '.join(row.get('problems', ()))}"


def _stretch(row: Mapping[str, Any]) -> str:
    return "-" if row["stretch"] is None else f"{row['stretch']:.2f}"


def _machine_cells(row: Mapping[str, Any]) -> Sequence[object]:
    version, slept = row["version"], row["sleep"]
    return (
        *(f"`{row['fabric']}`", row["switch_processes"], row["priority"], f"{row['minutes']:g}"),
        f"{version['median_s']:.2f} s, {version['max_s']:.2f} s",
        f"{slept['p99_s']:.2f} s, {slept['max_s']:.2f} s",
        *(f"{row['hops_per_s']:,}", _stretch(row), _valid(row)),
        f"{row['memory_mb']:,} MB, {row['switch_process_mb']:.0f} MB",
        f"{100 * row['grown']:.0f} % (`{row['grown_process']}`)",
    )


COLUMNS: Mapping[str, tuple[Sequence[str], Callable[[Mapping[str, Any]], Sequence[object]]]] = {
    "machine": (
        (
            *("fabric", "Open vSwitch processes", "priority", "minutes"),
            *("`knotless --version`, median, longest", "`sleep 0.1`, 99 %, longest"),
            *("hops/s", "stretch", "valid", "memory, largest Open vSwitch", "grown most"),
        ),
        _machine_cells,
    ),
    "busy": (
        ("beside busy loops", "priority", "loops", "rows", "valid rows", "seconds"),
        lambda row: (
            *(f"`knotless {row['fabric']}`", row["priority"], row["loops"], row["rows"]),
            *(row["valid_rows"], row["seconds"]),
        ),
    ),
    "controllers": (
        (
            *("two controllers on", "priority", "loops", "minutes", "takeovers"),
            *("links reported failed", "stretch", "valid"),
        ),
        lambda row: (
            *(f"`{row['fabric']}`", row["priority"], row["loops"], f"{row['minutes']:g}"),
            *(row["takeovers"], len(row["failures"]), _stretch(row), _valid(row)),
        ),
    ),
    "students": (
        (
            *("fabrics at once", "priority", "memory together", "start of each"),
            *("hops/s together", "stretch of the slowest", "valid"),
            "`knotless --version`, median, longest",
        ),
        lambda row: (
            *(f"{row['fabrics']} x `{row['fabric']}`", row["priority"]),
            *(f"{row['memory_mb']:,} MB", f"{row['start_s']} s", f"{row['hops_per_s']:,}"),
            *(_stretch(row), _valid(row)),
            f"{row['version']['median_s']:.2f} s, {row['version']['max_s']:.2f} s",
        ),
    ),
    "sizes": (
        (
            *("fabric", "priority", "processes", "of them Open vSwitch", "memory"),
            *("start", "hops/s at full rate", "valid"),
        ),
        lambda row: (
            *(f"`{row['fabric']}`", row["priority"], row["processes"], row["switch_processes"]),
            *(f"{row['memory_mb']:,} MB", f"{row['start_s']} s", f"{row['hops_per_s']:,}"),
            _valid(row),
        ),
    ),
}
"""Part -> the heads of its table, and the cells of a row."""


@click.command(
    epilog="Example: sudo .venv/bin/python -m bench.fair_share --part machine --minutes 20"
    " --into docs/benchmarks/fair-share.json"
)
@click.option("--part", "parts", multiple=True, type=click.Choice(list(PARTS)), default=[*PARTS])
@click.option("--fabric", help="Instead of the fabric of the part.")
@click.option("--switch-processes", type=click.IntRange(1, 32), help="Of the part machine.")
@click.option("--minutes", default=1.0, show_default=True, type=click.FloatRange(min=0.05))
@click.option(
    "--fabrics",
    multiple=True,
    type=click.IntRange(1, 64),
    default=STUDENTS,
    show_default=True,
    help="How many fabrics at once, in the part students.",
)
@priority_option
@click.option(
    "--into",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Put the rows into this stored run, in place of those of the same cases.",
)
@table_option(table_of)
def main(parts: tuple[str, ...], into: Path | None, **options: Any) -> None:
    """Measure what a busy fabric and the other programs of the machine leave each other."""
    require_root()
    wanted, begun, rows = Wanted(**options), about(), list[Mapping[str, Any]]()
    for part in parts:
        for figures in PARTS[part](wanted):
            row = {"part": part, "fabrics": 1, "priority": wanted.priority, **figures}
            row["load_1min"] = round(psutil.getloadavg()[0], 1)
            rows.append(row)
            click.echo(json.dumps(row), err=True)
            if into is not None:
                write_whole(into, as_stored(begun, rows=merged_into(into, rows[-1:], CASE)) + "\n")
    click.echo("\n".join(table_of({**begun, "rows": rows})))


if __name__ == "__main__":
    run_benchmark(main)
