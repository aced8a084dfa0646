"""The emulator against the simulator, on a busy machine.

Every flow must be within 1 % of the simulator's at any link speed and next to any load, and
every run valid: only the stretch, real over virtual time, may depend on the machine. Each case
runs with each priority of the fabric.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import click

from bench.support.entry import about, as_stored, machine_line, run_benchmark, table_option
from knotless.base.flow_control import FlowControl
from knotless.emulation.priority import Priority
from knotless.emulation.runtime import require_root
from knotless.routing.request import PlanRequest
from knotless.simulation import simulate

if TYPE_CHECKING:
    from knotless_experiments.studies.agreement.cases import Case

MOST_FRAMES = 25_000
"""Frames of one host in a window: what a small machine carries in seconds."""
LONGEST_S, SHORTEST_S = 4.0, 0.01
FRAME_BITS = 8 * 1538
KNOT_S = 1.5
"""Window of fabrics that freeze: a deadlock is reported when it has lasted for 0.5 s."""
CLOSE = 0.01


@dataclass(frozen=True)
class Line:
    """A run; ``worst`` is the largest deviation of a flow from the simulator."""

    priority: str
    fabric: str
    pattern: str
    rate_mbps: float
    delay_us: float
    loops: int
    window_s: float
    real_s: float
    worst: float
    stretch: float | None
    hops_per_s: int
    same_knot: bool
    knot: list[str]
    valid: bool
    problems: list[str]

    @property
    def good(self) -> bool:
        """True if every flow is close, and the run valid."""
        return self.valid and self.same_knot and self.worst <= CLOSE


def cases(only: Sequence[str]) -> Iterator[Case]:
    """Yield the fabrics and patterns; ``only`` are parts of their specs."""
    from knotless_experiments.framework.routed import Routed
    from knotless_experiments.studies.agreement.cases import Case

    updown = PlanRequest(engine="updown")
    one_way = PlanRequest(engine="dor", vcs=1, select="low-port")
    for spec, request, pattern in (
        ("ring,4,rate=10,delay=500", updown, "shift:2"),
        ("ring,4,rate=1000,delay=5", updown, "shift:2"),
        ("ring,4,rate=10000,delay=5", updown, "shift:2"),
        ("ring,4,rate=100000,delay=0.5", updown, "shift:2"),
        ("ring,4,rate=10,delay=500", one_way, "shift:2"),
        ("ring,4,rate=10000,delay=5", one_way, "shift:2"),
        ("torus,4,4,rate=10,delay=500", updown, "shift:1"),
        ("torus,4,4,rate=10,delay=500", updown, "shift:9"),
        ("torus,4,4,hosts=4,rate=10,delay=500", updown, "shift:32"),
    ):
        if not only or any(part in spec for part in only):
            settings = (("allow_deadlock", True),) if request is one_way else ()
            for priority in (Priority.REALTIME, Priority.NORMAL):
                with_priority = (*settings, ("priority", priority))
                routed = Routed(spec, request, settings=with_priority)
                yield Case("time", routed, pattern, FlowControl.PAUSE)


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Keep the machine busy with this many processes during the block."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def run(case: Case, counts: Sequence[int], longest_s: float) -> Iterator[Line]:
    """Measure a case next to each number of busy loops."""
    from knotless_experiments.studies.agreement import measure

    host = case.routed.fabric.hosts[0]
    window_s = MOST_FRAMES * FRAME_BITS / (host.rate_mbps * 1e6)
    window_s = min(longest_s, max(SHORTEST_S, window_s))
    if dict(case.routed.settings).get("allow_deadlock"):
        window_s = KNOT_S
    with case.routed.running() as lab:
        for count in counts:
            with busy_loops(count):
                began = time.monotonic()
                live = measure.emulated(lab, case, case.scenario, window_s)
                real_s = time.monotonic() - began
            result = simulate(case.scenario.lasting(live.window_us))
            row = measure.compared(case, live, result)
            stretch = live.status["stretch"]
            frames = sum(int(one["rx_frames"]) for one in live.seen.channels.values())
            flows = zip(row["emulated_flows_frames"], row["simulated_flows_frames"], strict=True)
            yield Line(
                priority=str(lab.priority),
                fabric=case.routed.name,
                pattern=case.pattern,
                rate_mbps=host.rate_mbps,
                delay_us=host.delay_us,
                loops=count,
                window_s=round(live.window_us / 1e6, 4),
                real_s=round(real_s, 1),
                worst=round(max(abs(a / max(1, b) - 1) for a, b in flows), 5),
                stretch=stretch,
                hops_per_s=round(frames * 1e6 / (live.window_us * (stretch or 1.0))),
                knot=row["emulated_knot"],
                same_knot=row["emulated_knot"] == row["simulated_knot"],
                valid=bool(live.status["valid"]) and not live.problems,
                problems=[*live.problems, *live.status["problems"]],
            )


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the table in docs/emulation.md."""
    lines = [
        "| fabric | pattern | link | loops | worst flow | knot | valid | stretch | hops/s"
        " | stretch, ordinary | hops/s, ordinary |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    # Both lists have the same cases in the same order.
    prompt_rows, ordinary_rows = (
        [row for row in run["lines"] if row["priority"] == priority]
        for priority in (Priority.REALTIME, Priority.NORMAL)
    )
    for prompt, ordinary in zip(prompt_rows, ordinary_rows, strict=True):
        rows = (prompt, ordinary)
        knot = f"{len(prompt['knot'])} channels" if prompt["knot"] else "none"
        knot += "" if all(row["same_knot"] for row in rows) else ", not as simulated"
        problems = [problem for row in rows for problem in row["problems"]]
        valid = "yes" if all(row["valid"] for row in rows) else f"no: {'; '.join(problems)}"
        lines.append(
            f"| `{prompt['fabric']}` | {prompt['pattern']}"
            f" | {prompt['rate_mbps']:g} Mbit/s, {prompt['delay_us']:g} us"
            f" | {prompt['loops']} | {max(row['worst'] for row in rows):.2%}"
            f" | {knot} | {valid} | {_pace(prompt)} | {_pace(ordinary)} |"
        )
    return [*lines, "", machine_line(run)]


def _pace(row: Mapping[str, Any]) -> str:
    stretch = "-" if row["stretch"] is None else f"{row['stretch']:.2f}"
    return f"{stretch} | {row['hops_per_s']:,}"


@click.command(epilog="Example: sudo .venv/bin/python -m bench.emulation_time --loops 0,4")
@click.option("--loops", default="0,2,4", show_default=True, help="Numbers of busy loops.")
@click.option("--only", multiple=True, help="Only fabrics whose spec contains this text.")
@click.option("--longest", default=LONGEST_S, show_default=True, help="Longest window, s.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@table_option(table_of)
def main(loops: str, only: tuple[str, ...], longest: float, as_json: bool) -> None:
    """Compare the flows of emulator and simulator at several link speeds and loads."""
    require_root()
    begun, measured = about(), list[Line]()
    for case in cases(only):
        for line in run(case, [int(word) for word in loops.split(",")], longest):
            click.echo(line, err=True)
            measured.append(line)
    lines = [asdict(line) for line in measured]
    click.echo(
        as_stored(begun, lines=lines) if as_json else "\n".join(table_of({**begun, "lines": lines}))
    )
    if not all(line.good for line in measured):
        sys.exit(1)


if __name__ == "__main__":
    run_benchmark(main)
