"""The page: for every claim the paper's figure, ours, their ratio, and why they differ."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from experiments.framework import markdown
from experiments.framework.experiment import ANALYSIS, EMULATION, SIMULATION
from experiments.reproduction.claim import Claim
from experiments.reproduction.claims import CLAIMS
from experiments.reproduction.elsewhere import ELSEWHERE
from runs.spread import Spread
from runs.stored import Stored

PLACES = (EMULATION, SIMULATION, ANALYSIS)
PAPERS = {
    "000": "000: Koibuchi et al., deterministic deadlock-free routings on the RHiNET-2 cluster",
    "001": "001: Iwasaki et al., fast user-level barriers on a PC cluster with Ethernet",
    "002": "002: Shimizu and Nakashima, all-to-all on the Latin-square fat-tree",
    "003": "003: Yamamoto et al., RHiNET-1: primitives of remote memory",
    "004": "004: Otsuka et al., switch-tagged VLAN routing",
}
MISSING = "not stored"
NOWHERE = "-"
"""Shown where a figure does not exist."""


def shown(spread: Spread | None, digits: int) -> str:
    """Format a figure: mean, (minimum to maximum; count)."""
    if spread is None:
        return MISSING
    mean = f"{spread.mean:.{digits}f}"
    if spread.count == 1:
        return mean
    return f"{mean} ({spread.least:.{digits}f} to {spread.most:.{digits}f}; {spread.count})"


def over(spread: Spread | None, theirs: float) -> str:
    """Return our figure divided by the paper's."""
    return NOWHERE if spread is None or not theirs else f"{spread.mean / theirs:.2f}"


def lines(stored: Stored) -> Iterator[str]:
    """Yield the page, line by line."""
    rows, invalid = stored.counts()
    yield "# The papers' figures compared with ours"
    yield ""
    yield "Compare the figures of five papers with ours, or repeat an experiment and add its run:"
    yield ""
    yield "    knotless run paths --quick"
    yield "    knotless reproduction results/paths-TIME-ID"
    yield ""
    yield (
        "`knotless reproduction` writes this page and computes all our figures from the [stored "
        "runs](runs)."
    )
    yield ""
    yield (
        "The papers' machines are from 2003 to 2016. Their absolute times cannot be repeated, so "
        "most figures are ratios. An emulated figure is the mean of the valid runs, with "
        "minimum, maximum and number of runs. A simulated figure is the same in every repeat. "
        "'Ours / theirs' uses the emulated figure if there is one, else the simulated one, else "
        "that of path analysis. A dash means that the figure does not exist: the simulator has "
        "no TCP and no untagged fabrics, path analysis has no time, and absolute times of "
        "emulated fabrics only reflect their slow lines."
    )
    yield ""
    yield (
        f"There are {len(stored.runs)} stored runs with {rows:,} rows. {invalid:,} rows are not "
        "valid (the emulator was late, or something else went wrong) and are skipped. Runs that "
        "did not finish, for example on a busy machine, are not stored."
    )
    for paper, claims in groupby(CLAIMS, key=lambda claim: claim.paper):
        yield ""
        yield f"## {PAPERS[paper]}"
        yield ""
        yield f"| where | what | paper | {' | '.join(PLACES)} | ours / theirs |"
        yield "|---|---|---|" + "---|" * (len(PLACES) + 1)
        reasons: dict[str, list[str]] = {}
        for claim in claims:
            yield _line(stored, claim)
            reasons.setdefault(claim.why, []).append(claim.place)
        yield ""
        yield "Why the figures differ:"
        yield ""
        for why, places in reasons.items():
            yield f"- {'; '.join(dict.fromkeys(places))}: {why}"
        yield ""
        yield "Not compared:"
        yield ""
        yield from (f"- {sentence}" for sentence in ELSEWHERE[paper])
    yield ""
    yield "## The runs"
    yield ""
    yield "| experiment | on | run | rows | not valid | seed | commit | machine |"
    yield "|---|---|---|---|---|---|---|---|"
    for run in stored.runs:
        bad = sum(not row["valid"] for row in run["rows"])
        on = run["parameters"].get("on", EMULATION)
        commit = (run["versions"].get("commit") or "-")[:10]
        machine = f"{run['machine'].get('cores')} cores, {run['machine'].get('cpu')}"
        yield (
            f"| {run['experiment']} | {on} | {run['id']} | {len(run['rows'])} | {bad} "
            f"| {run['seed']} | {commit} | {machine} |"
        )


def _line(stored: Stored, claim: Claim) -> str:
    found = {place: claim.compute(stored.rows(claim.experiment, place)) for place in claim.places}
    first = next((spread for spread in found.values() if spread is not None), None)
    cells = [claim.place, claim.what, f"{claim.theirs:.{claim.digits}f}"]
    cells += [shown(found[place], claim.digits) if place in found else NOWHERE for place in PLACES]
    return f"| {' | '.join([*cells, over(first, claim.theirs)])} |"


def text(stored: Stored) -> str:
    """Return the whole page."""
    return markdown.page(lines(stored))
