"""Lab 7: an all-to-all without contention on a Latin-square fat-tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from knotless.base import python_file
from knotless.lab_checks.lab import Lab, LabError, TodoError, Work
from knotless.routing.graphs.channels import Ints
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.traffic.contention import Lines, contention
from knotless.traffic.schedules.latin_square import latin_square
from knotless.traffic.schedules.schedule import Schedule

SPEC, ORDER, HOSTS = "lsft,3", 3, 3
"""The hosts of the lab are the first three of each leaf P(column, row)."""
FILE = "schedule.py"
MEMBERS = [(column, row, place) for column in range(3) for row in range(3) for place in range(3)]


def square(work: Work) -> Iterator[str]:
    """The square of slope 1: a Latin square, in which leaves with the same entry share a spine."""
    given = work.answers.list("square")
    entries = {(c, r): given[r][c] for r in range(ORDER) for c in range(ORDER) if _is_square(given)}
    if not entries:
        raise TodoError(work.answers.wrong("square", "must be three rows of three numbers"))
    lines = [*given, *zip(*given, strict=True)]
    if any(sorted(line) != list(range(ORDER)) for line in lines):
        yield work.answers.wrong("square", "each row and each column must contain 0, 1 and 2 once")
        return
    through = latin_square(ORDER, 1, ORDER + 1).lines
    for number in range(ORDER):
        leaves = [_leaf(*place) for place, entry in entries.items() if entry == number]
        if not set.intersection(*(set(through[leaf].tolist()) for leaf in leaves)):
            yield work.answers.wrong("square", f"the leaves with {number} do not share a spine")
    if entries[1, 1] != entries[0, 0]:
        yield work.answers.wrong("square", "P(0,0) and P(1,1) must be on one line: slope 1")


def _is_square(given: list[Any]) -> bool:
    """Tell whether an answer has three rows of three numbers."""
    rows = [row for row in given if isinstance(row, list) and len(row) == ORDER]
    return len(rows) == len(given) == ORDER and all(isinstance(n, int) for r in rows for n in r)


def _leaf(column: int, row: int) -> int:
    """Return the index of the leaf P(column, row)."""
    return 1 + ORDER + column * ORDER + row


def schedule(work: Work) -> Iterator[str]:
    """Each phase is a permutation, all pairs are served once, and no two flows share a link."""
    path, shown = work.path(FILE), work.shown(FILE)
    destination = python_file.run(path, LabError).get("destination")
    if not callable(destination):
        raise TodoError(f"{shown}: it must define destination(phase, column, row, place)")
    phases = [_phase(shown, destination, phase) for phase in range(len(MEMBERS))]
    wanted = list(range(len(MEMBERS)))
    for number, phase in enumerate(phases):
        if sorted(phase) != wanted:
            yield f"{shown}: phase {number}: two hosts send to the same host"
            return
    pairs = {(source, target) for phase in phases for source, target in enumerate(phase)}
    if missing := len(wanted) ** 2 - len(pairs):
        yield f"{shown}: {missing} pairs of hosts are served in no phase, and others twice"
    every = [_leaf(column, row) * (ORDER + 1) + place for column, row, place in MEMBERS]
    submission = Schedule(
        "student", np.array(every, np.int32), lambda: (np.array(p, np.int32) for p in phases)
    )
    flows: list[Ints] = list(submission.flows())
    lines = Lines(make_plan(load(SPEC)))
    for number, of_phase in enumerate(flows):
        most = contention(lines, [of_phase]).max_channel_load
        if most > 1:
            yield f"{shown}: phase {number}: {most} flows share a link between switches"
            return


def _phase(file: str, destination: Callable[..., Any], phase: int) -> list[int]:
    """Return the destination of each member as its index; raises TodoError."""
    indices = []
    for member in MEMBERS:
        call = f"{file}: destination{(phase, *member)}"
        try:
            to_column, to_row, to_place = destination(phase, *member)
            target = int(to_column), int(to_row), int(to_place)
        except Exception as problem:  # a student's function may raise anything
            raise TodoError(f"{call} raises {type(problem).__name__}: {problem}") from problem
        if target not in MEMBERS:
            raise TodoError(f"{call} gives {target}, which is no (column, row, place) of 0 to 2")
        indices.append(MEMBERS.index(target))
    return indices


LAB = Lab(7, "all-to-all", (square, schedule))
