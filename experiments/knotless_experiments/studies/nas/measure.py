"""Measuring a kernel on a running fabric, or recording it here for replay in the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from knotless_experiments.framework.experiment import EMULATION, SIMULATION
from knotless_experiments.framework.routed import Measured, in_simulation, with_validity
from knotless_experiments.messages.programs import mpi_run
from knotless_experiments.messages.programs.local import run_local
from knotless_experiments.messages.programs.trace import (
    Event,
    volumes,
    write_message_trace,
    write_program_trace,
)
from knotless_experiments.studies.nas.cases import Case
from knotless_experiments.studies.nas.program import Part, measured, read_part

if TYPE_CHECKING:
    from knotless.emulation.network import EmulatedFabric

LIMIT_S = 600.0
"""Time limit of a kernel."""


def live(lab: EmulatedFabric, case: Case, traces: Path | None) -> Measured:
    """Run a kernel by MPI in the hosts of a running fabric."""

    def read(folder: Path) -> list[Part]:
        return [read_part(folder / f"{rank}.json") for rank in range(case.processes)]

    words = [case.kernel, case.problem_class]
    outcome = mpi_run.run(
        lab, case.hosts, "knotless_experiments.studies.nas.program", words, read, limit_s=LIMIT_S
    )
    parts = outcome.result or []
    problems = list(outcome.problems)
    if parts and not parts[0].verification.passed:
        problems.append("the result is not the official one")
    row = {**_row(EMULATION, case, parts), "deadlock": bool(outcome.cycle), "cycle": outcome.cycle}
    row["seconds"] = round(max((part.seconds for part in parts), default=0.0), 6)
    _keep(traces, case, parts)
    return with_validity(row, outcome.status, problems), _samples(case, parts)


@lru_cache(maxsize=1)
def record(kernel: str, problem_class: str, processes: int) -> list[Part]:
    """Run a kernel as threads in this process and record its messages."""
    return run_local(processes, lambda communicator: measured(communicator, kernel, problem_class))


def virtual(case: Case, traces: Path | None, computing: float = 0.0) -> Measured:
    """Record a kernel here and replay its messages on the simulated fabric.

    Its recorded times of computing are multiplied by ``computing``.
    """
    from knotless.simulation.replay import replay

    parts = record(case.kernel, case.problem_class, case.processes)
    replayed = replay(
        case.routed.plan,
        _events(parts),
        places=case.places,
        flow_control=case.routed.plan.flow_control,
        computing=computing,
    )
    row = {**_row(SIMULATION, case, parts), "deadlock": replayed.deadlock, "cycle": replayed.cycle}
    row["seconds"] = round(replayed.seconds, 9)
    _keep(traces, case, parts)
    return in_simulation(row), _samples(case, parts)


def _events(parts: Sequence[Part]) -> list[Event]:
    return [event for part in parts for event in part.events]


def _row(on: str, case: Case, parts: Sequence[Part]) -> dict[str, Any]:
    verified = bool(parts) and parts[0].verification.passed
    sent = [event for event in _events(parts) if event.kind == "send"]
    return {
        **case.row(on),
        "kernel": case.kernel,
        "class": case.problem_class,
        "verified": verified,
        "error": parts[0].verification.error if parts else None,
        "messages": len(sent),
        "bytes": sum(event.bytes for event in sent),
    }


def _samples(case: Case, parts: Sequence[Part]) -> list[dict[str, Any]]:
    sent = [event for event in _events(parts) if event.kind == "send"]
    bytes_sent = volumes(sent, case.processes)
    counts: dict[tuple[int, int], int] = {}
    for event in sent:
        pair = (event.process, event.peer)
        counts[pair] = counts.get(pair, 0) + 1
    return [
        {"source": a, "destination": b, "messages": count, "bytes": int(bytes_sent[a, b])}
        for (a, b), count in sorted(counts.items())
    ]


def _keep(traces: Path | None, case: Case, parts: Sequence[Part]) -> None:
    """Write the traces of a case, if a folder is given."""
    if traces is None or not parts:
        return
    name = f"{case.kernel}-{case.problem_class}-{case.processes}"
    events, hosts = _events(parts), [host.name for host in case.hosts]
    write_program_trace(traces / f"{name}.program.csv", events)
    write_message_trace(traces / f"{name}.messages.csv", events, hosts)
