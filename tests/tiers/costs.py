"""What each file of tests costs: stored, compared with this run, and spent on deeper runs."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tests.support import REPOSITORY
from tests.tiers.depth import Tier

FILE = REPOSITORY / "tests" / "costs.json"
SHOWN = 20
GREW = 1.5
"""A file that costs this many times more, beside the others, is marked."""
SMALL_S = 1.0
"""Less processor time than this is not compared."""
UNKNOWN_S = 10.0
"""What a file is taken to cost that has never run at some depth."""

Costs = Mapping[str, tuple[float, float]]
"""By file: seconds of processor time (own and of children that have ended), and of wall time."""


@dataclass(frozen=True)
class Report:
    """What the plug-in has written of a run: costs of files, and what became of tests.

    ``skipped`` has the number of tests that were skipped for each reason.
    """

    costs: Costs
    passed: int
    failed: int
    skipped: Mapping[str, int] = field(default_factory=dict)


def read(report: Path) -> Report:
    """Return what the plug-in has written of a run; nothing if it was not written."""
    if not report.is_file():
        return Report({}, 0, 0)
    text = json.loads(report.read_text(encoding="utf-8"))
    costs = {file: (row[0], row[1]) for file, row in text["costs"].items()}
    return Report(costs, text["passed"], text["failed"], text["skipped"])


def stored(file: Path = FILE) -> dict[Tier, Costs]:
    """Return the stored costs of the tiers."""
    kept = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return {
        tier: {name: (row[0], row[1]) for name, row in kept.get(tier, {}).items()} for tier in Tier
    }


def store(tier: Tier, costs: Costs, file: Path = FILE) -> None:
    """Replace what is stored of a tier; one line for each file of tests."""
    kept = {**stored(file), tier: costs}
    blocks = []
    for name in (each for each in Tier if kept[each]):
        rows = [
            f"  {json.dumps(path)}: [{cpu:.1f}, {wall:.1f}]"
            for path, (cpu, wall) in sorted(kept[name].items())
        ]
        blocks.append(f' "{name}": {{\n' + ",\n".join(rows) + "\n }")
    file.write_text("{\n" + ",\n".join(blocks) + "\n}\n", encoding="utf-8")


def table(now: Costs, before: Costs) -> list[str]:
    """Return the dearest files, and how each has grown beside the others.

    Machines differ: the growth of a file is divided by that of the median file.
    """
    ratios = {
        file: now[file][0] / before[file][0]
        for file in now.keys() & before.keys()
        if min(now[file][0], before[file][0]) >= SMALL_S
    }
    usual = median(ratios.values()) if ratios else 1.0
    total = sum(cpu for cpu, _ in now.values())
    lines = [f"processor time of tests: {total:.0f} s; the dearest files:"]
    lines.append("       s  share  times stored")
    for file in sorted(now, key=lambda each: -now[each][0])[:SHOWN]:
        grown = ratios[file] / usual if file in ratios else None
        mark = "" if grown is None else f"{grown:.2f}{' GREW' if grown >= GREW else ''}"
        spent = now[file][0]
        lines.append(f"{spent:8.1f} {spent / total if total else 0:6.1%}  {mark:12}  {file}")
    return lines


@dataclass(frozen=True)
class Choice:
    """Files that run deep in the gate, and those that did not fit; nearest first."""

    chosen: tuple[str, ...]
    left: tuple[str, ...]


def deeper(
    reached: Mapping[str, int],
    costs: Mapping[Tier, Costs],
    budget_s: float,
    fabrics: Collection[str],
    max_fabrics: int,
) -> Choice:
    """Choose the files that run deeper, nearest to the change first, then the cheapest.

    Parameters
    ----------
    reached
        Steps from the change, by file.
    costs
        The stored costs; what a file costs more in ``deep`` than in ``gate`` is its price.
    budget_s
        Seconds of processor time for all of them.
    fabrics, max_fabrics
        The files that start fabrics, and how many of them there may be at most.

    """
    deep, gate = costs[Tier.DEEP], costs[Tier.GATE]

    def price(file: str) -> float:
        known = deep.get(file, (UNKNOWN_S, UNKNOWN_S))
        column = 1 if file in fabrics else 0  # fabrics mostly wait
        return max(0.0, known[column] - gate.get(file, (0.0, 0.0))[column])

    chosen, left = list[str](), list[str]()
    started = 0
    for file in sorted(reached, key=lambda each: (reached[each], price(each), each)):
        fits = price(file) <= budget_s and not (file in fabrics and started >= max_fabrics)
        if fits:
            budget_s -= price(file)
            started += file in fabrics
        (chosen if fits else left).append(file)
    return Choice(tuple(chosen), tuple(left))


def longest_first(files: Iterable[str], costs: Mapping[Tier, Costs], tier: Tier) -> list[str]:
    """Return files in the order in which workers are to take them."""
    known = costs[tier]
    return sorted(files, key=lambda file: (-known.get(file, (0.0, UNKNOWN_S))[1], file))
