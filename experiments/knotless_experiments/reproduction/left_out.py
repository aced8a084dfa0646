"""The stored runs, and what including the rows that were left out would change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from knotless.results.stored import FOLDER, Stored
from knotless_experiments.framework.excluded_runs import REPEATS
from knotless_experiments.framework.experiment import EMULATION
from knotless_experiments.reproduction import one_value
from knotless_experiments.reproduction.claims import claims
from knotless_experiments.reproduction.headlines import measured

CHANGED = 0.02
"""Figures that would change by less than this part are not listed."""


def lines(stored: Stored, evidence: Path = FOLDER) -> Iterator[str]:
    """Yield the page of the runs, line by line; ``evidence`` is the folder of what is stored."""
    rows = [row for run in stored.runs for row in run["rows"]]
    invalid = [row for row in rows if not row["valid"]]
    yield "# Stored runs, and what was left out"
    yield ""
    yield (
        f"[Overview](../reproduction.md). There are {len(stored.runs)} "
        f"[stored runs](../../experiments) with {len(rows):,} rows. {len(invalid):,} rows are "
        "not valid and are left out of all figures. Runs that did not finish are not stored."
    )
    yield ""
    yield from _emulated(stored)
    yield ""
    if invalid:
        yield from _left_out(stored)
    yield from one_value.lines(stored, evidence)
    yield ""
    yield "## The runs"
    yield ""
    yield "| experiment | on | run | rows | left out | seed | commit | machine |"
    yield "|---|---|---|---|---|---|---|---|"
    for run in stored.runs:
        bad_rows = sum(not row["valid"] for row in run["rows"])
        on = run["parameters"].get("on", EMULATION)
        commit = (run["versions"].get("commit") or "-")[:10]
        machine = f"{run['machine'].get('cores')} cores, {run['machine'].get('cpu')}"
        yield (
            f"| {run['experiment']} | {on} | {run['id']} | {len(run['rows'])} | {bad_rows} "
            f"| {run['seed']} | {commit} | {machine} |"
        )


def _left_out(stored: Stored) -> Iterator[str]:
    """Yield the rows that are not valid, and the figures that they would change."""
    yield "## Rows that were left out"
    yield ""
    yield "| experiment | rows | left out | deadlocked among them |"
    yield "|---|---|---|---|"
    total = Counter(run["experiment"] for run in stored.runs for _ in run["rows"])
    for name in sorted(total):
        bad = [
            row
            for run in stored.runs
            if run["experiment"] == name
            for row in run["rows"]
            if not row["valid"]
        ]
        if bad:
            frozen = sum(bool(row.get("deadlock")) for row in bad)
            yield f"| {name} | {total[name]} | {len(bad)} | {frozen} |"
    yield ""
    yield (
        "Emulated figures that would change by more than "
        f"{CHANGED:.0%} of the figure if the rows left out were included:"
    )
    yield ""
    yield "| paper | where | what | valid rows | all rows |"
    yield "|---|---|---|---|---|"
    compared = unchanged = 0
    for claim in claims():
        if EMULATION not in claim.places:
            continue
        valid = measured(stored, claim)[EMULATION]
        every = measured(stored, claim, valid=False)[EMULATION]
        compared += 1
        if valid is None or every is None:
            continue
        if abs(every.mean - valid.mean) <= CHANGED * max(abs(valid.mean), 1e-3):
            unchanged += 1
            continue
        texts = [f"{each.mean:.{claim.digits}f} ({each.count})" for each in (valid, every)]
        yield f"| {claim.paper} | {claim.place} | {claim.what} | {' | '.join(texts)} |"
    yield ""
    yield f"The other {unchanged} of {compared} emulated figures would not."
    yield ""


def _emulated(stored: Stored) -> Iterator[str]:
    """Yield how many rows are emulated, and how much slower virtual time was than real time."""
    rows = [row for run in stored.runs for row in run["rows"]]
    stretches = sorted(row["stretch"] for row in rows if row.get("stretch") is not None)
    if stretches:
        yield (
            f"{len(stretches):,} rows are emulated. Virtual time was {stretches[0]:,.1f} to "
            f"{stretches[-1]:,.1f} times as slow as real time. {REPEATS}"
        )
