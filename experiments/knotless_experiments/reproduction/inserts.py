"""Figures in pages that people write, computed from stored runs by ``knotless reproduction``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean

from knotless.results import page_parts
from knotless.results.stored import Stored
from knotless_experiments.framework.experiment import EMULATION, SIMULATION
from knotless_experiments.reproduction.claims import paper
from knotless_experiments.reproduction.rows import Row, rows
from knotless_experiments.reproduction.selectors import Test, cuts_through, where
from knotless_experiments.studies.change import presentation as change
from knotless_experiments.studies.clos_failure import presentation as clos_failure
from knotless_experiments.studies.endpoints import presentation as endpoints
from knotless_experiments.studies.storm import presentation as storm

NAMES = ("shuffle", "tree2", "tree3", "tree4", "concurrent", "unicast")
Cells = Sequence[float | None]


def _mean(chosen: Sequence[Row], test: Test, value: str = "mean_us") -> float | None:
    values = [row[value] for row in chosen if test(row) and row[value] is not None]
    return fmean(values) if values else None


def _line(name: str, cells: Cells, form: str) -> str:
    return (
        f"| {name} | {' | '.join('' if cell is None else format(cell, form) for cell in cells)} |"
    )


def _over(above: Cells, below: Cells) -> Cells:
    return [a / b if a and b else None for a, b in zip(above, below, strict=True)]


def _algorithms(chosen: Sequence[Row], fabric: str, hosts: int, value: str = "mean_us") -> Cells:
    common = {"fabric": fabric, "hosts": hosts, "networks": 1}
    return [_mean(chosen, where(**common, algorithm=name), value) for name in NAMES]


def _theirs(column: str) -> Cells:
    """Return the paper's times of all algorithms, None where it prints none."""
    printed = {each["algorithm"]: each[column] for each in paper("iwasaki").printed["algorithms"]}
    return [printed.get(name) for name in NAMES]


def one_switch(stored: Stored) -> Iterator[str]:
    """Yield the table of all algorithms on one switch."""
    virtual, live = rows(stored, "barrier", SIMULATION), rows(stored, "barrier", EMULATION)
    theirs = _theirs("switch_us")
    ours = _algorithms(virtual, "flat,32", 32)
    at_31 = _algorithms(virtual, "flat,32", 31)
    same = [at_31[i] if name == "tree3" else ours[i] for i, name in enumerate(NAMES)]
    due = _algorithms(live, "flat,32", 32, "predicted_us")
    seen = _algorithms(live, "flat,32", 32)
    yield f"| us | {' | '.join(NAMES)} |"
    yield "|---|" + "---|" * len(NAMES)
    yield _line("paper 001, measured (`tree3` on 31 hosts)", theirs, ".0f")
    yield _line(
        "formulas, its parameters", _algorithms(virtual, "flat,32", 32, "predicted_us"), ".1f"
    )
    yield _line("simulation", ours, ".1f")
    yield _line("simulation, 31 hosts", at_31, ".1f")
    yield _line("paper over simulation, same number of hosts", _over(theirs, same), ".2f")
    yield _line("formulas, emulation's parameters", due, ".1f")
    yield _line("emulation", seen, ".1f")
    yield _line("emulation over formula", _over(seen, due), ".3f")


def formulas(stored: Stored) -> Iterator[str]:
    """Yield how far the formulas are from the simulation, over all stored cases on a switch."""
    yield "| algorithm | hosts | largest difference between formula and simulation |"
    yield "|---|---|---|"
    for name in NAMES:
        test = where(fabric="flat,32", algorithm=name)
        chosen = [row for row in rows(stored, "barrier", SIMULATION) if test(row)]
        hosts = sorted({row["hosts"] for row in chosen if row["hosts"] >= 8})
        difference = max(
            abs(r["predicted_us"] / r["mean_us"] - 1) for r in chosen if r["hosts"] >= 8
        )
        yield f"| `{name}` | {hosts[0]} to {hosts[-1]} | {difference:.1%} |"


def hub(stored: Stored) -> Iterator[str]:
    """Yield the table of all algorithms on a repeater hub."""
    chosen = rows(stored, "barrier", SIMULATION)
    yield f"| us | {' | '.join(NAMES)} |"
    yield "|---|" + "---|" * len(NAMES)
    yield _line("paper 001, measured (`tree3` on 31 hosts)", _theirs("hub_us"), ",.0f")
    for hosts in (32, 31):
        yield _line(f"simulation, {hosts} hosts", _algorithms(chosen, "hub,32", hosts), ",.0f")


def two_networks(stored: Stored) -> Iterator[str]:
    """Yield the table of barriers with one and two networks."""
    cases = paper("iwasaki").printed["two networks"]
    heads = [f"`{c['algorithm']}`, {c['hosts']} hosts: one network | two" for c in cases]
    yield f"| us | {' | '.join(heads)} |"
    yield "|---|" + "---|---|" * len(cases)
    printed = [case[key] for case in cases for key in ("one_us", "two_us")]
    yield _line("paper 001, measured", printed, ".0f")
    for on in (SIMULATION, EMULATION):
        chosen = rows(stored, "barrier", on)
        times = [
            _mean(
                chosen,
                where(
                    fabric="flat,32",
                    algorithm=case["algorithm"],
                    hosts=case["hosts"],
                    networks=networks,
                ),
            )
            for case in cases
            for networks in (1, 2)
        ]
        yield _line(on, times, ".1f")


FABRICS = {"A": "irregular-a", "B": "irregular-b", "mesh": "mesh,4,4"}
ENGINES = (("prefix", 1), ("updown", 1), ("sbp", 6), ("dl", 2))


def routings(stored: Stored) -> Iterator[str]:
    """Yield the table of barriers of 64 hosts by routing engine."""
    yield "| | prefix | up\\*/down\\* | sbp (6 VCs) | dl (2 VCs) |"
    yield "|---|---|---|---|---|"
    keys = ("prefix", "updown", "sbp", "dl:2")
    for name, times_us in paper("koibuchi").printed["table 3"].items():
        fabric, printed = FABRICS[name], [times_us[key] for key in keys]
        yield _line(f"paper 000, its {name}, us", printed, ".2f")
        for on in (SIMULATION, EMULATION):
            chosen = [
                row
                for row in rows(stored, "barrier", on)
                if row["fabric"].startswith(fabric) and cuts_through(row)
            ]
            for words, value, kind in (
                (f"{on}, {fabric}, us", "mean_us", ".2f"),
                (f"switches on a path, {fabric}", "switches", ".3f"),
            ):
                if value == "mean_us" or on == SIMULATION:
                    cells = [_mean(chosen, where(engine=e, vcs=v), value) for e, v in ENGINES]
                    yield _line(words, cells, kind)


def route_changes(stored: Stored) -> Iterator[str]:
    """Yield what became of changes of routes, pushed at once and in proven steps."""
    for on in (SIMULATION, EMULATION):
        chosen = rows(stored, "change", on)
        yield from (f"- {on}, {finding}" for finding in change.sentences(chosen))


def clos_failures(stored: Stored) -> Iterator[str]:
    """Yield what became of fat-trees whose links have failed."""
    chosen = stored.rows("clos-failure", SIMULATION)
    yield from (f"- {finding}" for finding in clos_failure.sentences(chosen))


def end_points(stored: Stored) -> Iterator[str]:
    """Yield which hosts froze a fabric that is safe, with real frames and simulated."""
    for on in (EMULATION, SIMULATION):
        for finding in endpoints.sentences(stored.rows("endpoints", on)):
            yield f"- {finding}"


def pause_storms(stored: Stored) -> Iterator[str]:
    """Yield the table of how far pause storms reached, and what ended them, over all seeds."""
    shown = storm.TABLE
    yield f"| {' | '.join(column.heading for column in shown)} |"
    yield "|---" * len(shown) + "|"
    for by_protection in storm.groups_of(stored.rows("storm", SIMULATION)).values():
        for runs in by_protection.values():
            yield f"| {' | '.join(storm.range_of(column, runs) for column in shown)} |"


INSERTS: Mapping[str, Callable[[Stored], Iterator[str]]] = {
    "barrier-formulas": formulas,
    "barrier-one-switch": one_switch,
    "barrier-hub": hub,
    "barrier-two-networks": two_networks,
    "barrier-routings": routings,
    "clos-failures": clos_failures,
    "end-points": end_points,
    "pause-storms": pause_storms,
    "route-changes": route_changes,
}
PAGES = ("barriers.md", "endpoints.md", "experiments.md", "pause-storms.md")
OF_TESTS = ("endpoint-overloads",)
"""Figures on the same pages that ``python -m bench.pages`` writes."""


def written(text: str, stored: Stored) -> str:
    """Return a page with all its figures computed. Raises PartError for an unknown name."""
    return page_parts.rewritten(
        text, {name: partial(lines, stored) for name, lines in INSERTS.items()}, OF_TESTS
    )
