"""The sensitivity of simulated results to chosen settings, 20 % smaller or larger.

The runs are in ``experiments/own/sensitivity/``, apart from those that claims are computed from. In
a group of them, one has the settings with which claims are simulated, and each other differs in one
setting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from knotless.results.stored import OWN
from knotless_experiments.reproduction.rows import Row
from knotless_experiments.reproduction.selectors import where

RUNS = f"{OWN}/sensitivity"
"""The folder of the runs, below that of all stored runs."""
SETTINGS: Mapping[str, str] = {
    "send_us": "time to send a message (`--send`)",
    "receive_us": "time to receive a message (`--receive`)",
    "gap_us": "gap between messages (`--gap`)",
    "interrupt_us": "time of an interrupt (`--interrupt`)",
    "delay_us": "delay of every link (`--delay`)",
}
"""The settings that were chosen, by their key in the parameters of a run or in its costs."""

Run = Mapping[str, Any]


@dataclass(frozen=True)
class Result:
    """A simulated figure: its words, the paper's figure, the computation, and its digits."""

    words: str
    theirs: float
    compute: Callable[[Sequence[Row]], float]
    digits: int


@dataclass(frozen=True)
class Group:
    """Runs of one experiment on the same fabrics, and the figures of each."""

    title: str
    experiment: str
    fabric: str
    results: tuple[Result, ...]


def _time(rows: Sequence[Row], column: str, **wanted: Any) -> float:
    (row,) = filter(where(**wanted), rows)
    return float(row[column])


def _layers(fabric: str) -> Callable[[Sequence[Row]], float]:
    def compute(rows: Sequence[Row]) -> float:
        layers, tree = (_time(rows, "mean_us", fabric=fabric, engine=e) for e in ("dl", "updown"))
        return layers / tree

    return compute


def _barrier(
    algorithm: str, hosts: int, *, networks: int = 1, over: Mapping[str, Any] | None = None
) -> Callable[[Sequence[Row]], float]:
    case: dict[str, Any] = {"algorithm": algorithm, "hosts": hosts, "networks": networks}

    def compute(rows: Sequence[Row]) -> float:
        time_us = _time(rows, "mean_us", **case)
        return time_us / _time(rows, "mean_us", **{**case, **over}) if over else time_us

    return compute


ONE = {"networks": 1}
GROUPS = (
    Group(
        "Barriers of 64 hosts ([000](000.md), table 3)",
        "barrier",
        "irregular-a",
        (
            Result("DL over up\\*/down\\*, A", 0.948, _layers("irregular-a"), 3),
            Result("DL over up\\*/down\\*, B", 0.959, _layers("irregular-b"), 3),
        ),
    ),
    Group(
        "Barriers on a switch ([001](001.md), figures 2 and 5 to 10)",
        "barrier",
        "flat,32",
        (
            Result("message, us", 30, lambda rows: float(rows[0]["one_way_us"]), 1),
            Result("shuffle, 32 hosts, us", 174, _barrier("shuffle", 32), 0),
            Result(
                "2-way tree over shuffle",
                204 / 174,
                _barrier("tree2", 32, over={"algorithm": "shuffle"}),
                2,
            ),
            Result(
                "two networks over one, 3-way tree",
                169 / 159,
                _barrier("tree3", 15, networks=2, over=ONE),
                2,
            ),
            Result(
                "two networks over one, concurrent",
                147 / 179,
                _barrier("concurrent", 16, networks=2, over=ONE),
                2,
            ),
        ),
    ),
    Group(
        "Barriers on a repeater hub ([001](001.md), figures 5 to 8)",
        "barrier",
        "hub,32",
        (
            Result("shuffle, 32 hosts, us", 3743, _barrier("shuffle", 32), 0),
            Result("2-way tree, us", 728, _barrier("tree2", 32), 0),
            Result("3-way tree, 31 hosts, us", 675, _barrier("tree3", 31), 0),
            Result("concurrent, us", 1059, _barrier("concurrent", 32), 0),
        ),
    ),
    Group(
        "A message of 8 bytes ([003](003.md), figure 7)",
        "pingpong",
        "flat,2,rate=1300,delay=0.1",
        (
            Result(
                "one way, us",
                9.1,
                lambda rows: _time(rows, "median_us", kind="message", bytes=8),
                1,
            ),
        ),
    ),
)


def settings_of(run: Run) -> dict[str, float]:
    """Return the chosen settings of a run."""
    every = {**run["parameters"], **run["parameters"].get("costs", {})}
    return {name: float(every[name]) for name in SETTINGS if every.get(name) is not None}


def ordered(runs: Sequence[Run]) -> tuple[Run, list[tuple[str, Run]]]:
    """Return the run with the chosen settings, and each other with the one setting that differs.

    The chosen settings are the middle ones. Others come by setting and by value. Raises ValueError
    for runs of another kind.
    """
    every = [settings_of(run) for run in runs]
    chosen = {name: median(settings[name] for settings in every) for name in every[0]}
    (base,) = (run for run, settings in zip(runs, every, strict=True) if settings == chosen)
    others = []
    for run, settings in zip(runs, every, strict=True):
        if run is not base:
            (name,) = (name for name in chosen if settings[name] != chosen[name])
            others.append((name, run))
    names = list(SETTINGS)
    others.sort(key=lambda each: (names.index(each[0]), settings_of(each[1])[each[0]]))
    return base, others


def lines(runs: Sequence[Run]) -> Iterator[str]:
    """Yield the page of the settings that were chosen, line by line."""
    yield "# Settings that were chosen, and what depends on them"
    yield ""
    yield (
        "[Overview](../reproduction.md). The papers do not print these settings of simulated "
        "processors and links, or print them for other machines. They are *fitted*: chosen by us. "
        "Each table has the simulated figures with them, and with one of them 20 % smaller and "
        "larger, with the same seed. What changes with a setting is no result. Emulated figures "
        "depend on none of them but the delay of links. Visiting lists and collisions are random: "
        "the pages of the papers have the spread over seeds."
    )
    for group in GROUPS:
        here = [
            run
            for run in runs
            if run["experiment"] == group.experiment
            and run["rows"][0]["fabric"].startswith(group.fabric)
        ]
        yield ""
        yield f"## {group.title}"
        yield ""
        yield f"| | {' | '.join(result.words for result in group.results)} |"
        yield "|---|" + "---|" * len(group.results)
        theirs = [f"{result.theirs:.{result.digits}f}" for result in group.results]
        yield f"| the paper | {' | '.join(theirs)} |"
        base, others = ordered(here)
        chosen = settings_of(base)
        yield _line("*fitted*", group, base["rows"])
        for name, run in others:
            value = settings_of(run)[name]
            words = f"{SETTINGS[name]}: {value:.3g} us, not {chosen[name]:.3g}"
            yield _line(words, group, run["rows"])


def _line(words: str, group: Group, rows: Sequence[Row]) -> str:
    cells = [f"{result.compute(rows):.{result.digits}f}" for result in group.results]
    return f"| {words} | {' | '.join(cells)} |"
