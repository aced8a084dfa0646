"""The sensitivity of simulated results to chosen settings: 0, 20 % less, 20 and 30 % more.

The runs are in ``experiments/own/sensitivity/``, apart from those that claims are computed from. In
a group of them, some have the settings with which claims are simulated, and each other differs in
one setting, or has several that are 0. Where something is random, figures have ten repeats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from knotless.results.spread import spread_of
from knotless.results.stored import OWN
from knotless_experiments.reproduction.claim import shown
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
LISTS = 10
"""Visiting lists of a repeat: as many as those of a run from which claims are computed."""

Run = Mapping[str, Any]


@dataclass(frozen=True)
class Result:
    """A simulated figure: its words, the paper's figure, the computation, and its digits.

    ``compute`` returns the figure of each repeat in the rows of a run.
    """

    words: str
    theirs: float
    compute: Callable[[Sequence[Row]], list[float]]
    digits: int


@dataclass(frozen=True)
class Group:
    """Runs of one experiment on the same fabrics, the figures of each, and how to repeat them."""

    title: str
    experiment: str
    fabric: str
    results: tuple[Result, ...]
    command: str


def _one(rows: Sequence[Row], **wanted: Any) -> Row:
    (row,) = filter(where(**wanted), rows)
    return row


def _repeats(row: Row) -> list[float]:
    means = row["list_means_us"]
    return [fmean(means[first : first + LISTS]) for first in range(0, len(means), LISTS)]


def _layers(fabric: str) -> Callable[[Sequence[Row]], list[float]]:
    def compute(rows: Sequence[Row]) -> list[float]:
        layers, tree = (
            _repeats(_one(rows, fabric=fabric, engine=engine)) for engine in ("dl", "updown")
        )
        return [a / b for a, b in zip(layers, tree, strict=True)]

    return compute


def _barrier(
    algorithm: str, hosts: int, *, networks: int = 1, over: Mapping[str, Any] | None = None
) -> Callable[[Sequence[Row]], list[float]]:
    case: dict[str, Any] = {"algorithm": algorithm, "hosts": hosts, "networks": networks}

    def compute(rows: Sequence[Row]) -> list[float]:
        time_us = float(_one(rows, **case)["mean_us"])
        return [time_us / float(_one(rows, **{**case, **over})["mean_us"]) if over else time_us]

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
        "knotless run barrier --fabric irregular-a --fabric irregular-b --engines updown,dl:2 "
        "--algorithms unicast --lists 100 --barriers 20 --rate 6000 --delay 0.2 --cut-through 40 "
        "--bytes 118 --send 0.3 --receive 0.5 --gap 0.3 --interrupt 0 --computing 1",
    ),
    Group(
        "Barriers on a switch ([001](001.md), figures 2 and 5 to 10)",
        "barrier",
        "flat,32",
        (
            Result("message, us", 30, lambda rows: [float(rows[0]["one_way_us"])], 1),
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
        "knotless run barrier --fabric flat,32 --rate 100 --delay 2.03 --networks 1,2 "
        "--hosts 15,16,31,32 --barriers 20",
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
        "knotless run barrier --fabric hub,32 --rate 100 --delay 0.5 --hosts 31,32 --barriers 100 "
        "--seed 1",
    ),
    Group(
        "A message of 8 bytes ([003](003.md), figure 7)",
        "pingpong",
        "flat,2,rate=1300,delay=0.1",
        (
            Result(
                "one way, us",
                9.1,
                lambda rows: [float(_one(rows, kind="message", bytes=8)["median_us"])],
                1,
            ),
        ),
        "knotless run pingpong --on simulation --fabric flat,2,rate=1300,delay=0.1 --sizes 8",
    ),
)


def settings_of(run: Run) -> dict[str, float]:
    """Return the chosen settings of a run."""
    every = {**run["parameters"], **run["parameters"].get("costs", {})}
    return {name: float(every[name]) for name in SETTINGS if every.get(name) is not None}


def ordered(runs: Sequence[Run]) -> tuple[list[Run], list[tuple[list[str], list[Run]]]]:
    """Return the runs with the chosen settings, and others with the settings that differ.

    The chosen settings are the middle ones. Others come by setting and by value, those last that
    differ in several. Raises ValueError for runs of another kind: several settings differ only
    where all of them are 0.
    """
    by_settings: dict[tuple[tuple[str, float], ...], list[Run]] = {}
    for run in runs:
        by_settings.setdefault(tuple(settings_of(run).items()), []).append(run)
    every = [dict(settings) for settings in by_settings]
    chosen = {name: median(settings[name] for settings in every) for name in every[0]}
    base = by_settings.pop(tuple(chosen.items()))
    others = []
    for items, same in by_settings.items():
        settings = dict(items)
        names = [name for name in chosen if settings[name] != chosen[name]]
        if len(names) > 1 and any(settings[name] for name in names):
            raise ValueError(f"a run differs in several settings: {', '.join(names)}")
        others.append((names, same))
    places = list(SETTINGS)
    others.sort(
        key=lambda each: (
            len(each[0]),
            places.index(each[0][0]),
            settings_of(each[1][0])[each[0][0]],
        )
    )
    return base, others


def lines(runs: Sequence[Run]) -> Iterator[str]:
    """Yield the page of the settings that were chosen, line by line."""
    yield "# Settings that were chosen, and what depends on them"
    yield ""
    yield (
        "[Overview](../reproduction.md). The papers do not print these settings of simulated "
        "processors and links, or print them for other machines. They are *fitted*: chosen by us. "
        "Each table has the simulated figures with them, and with one of them 0, 20 % smaller, 20 "
        "% and 30 % larger. What changes with a setting is no result. Emulated figures depend on "
        "none of them but the delay of links. Visiting lists and collisions are random: these "
        f"figures are the mean of ten seeds, or of ten times {LISTS} lists, with the smallest and "
        "the largest. Nothing is random in the others."
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
        chosen = settings_of(base[0])
        yield _line("*fitted*", group, base)
        for names, same in others:
            words = ", ".join(SETTINGS[name] for name in names)
            value = settings_of(same[0])[names[0]]
            instead = f"not {chosen[names[0]]:.3g}" if len(names) == 1 else "all of them"
            yield _line(f"{words}: {value:.3g} us, {instead}", group, same)
        yield ""
        yield "Repeat the run of *fitted*; the others have another value of an option:"
        yield ""
        yield f"    {group.command}"


def _line(words: str, group: Group, runs: Sequence[Run]) -> str:
    cells = []
    for result in group.results:
        repeats = [each for run in runs for each in result.compute(run["rows"])]
        cells.append(shown(spread_of(repeats), result.digits))
    return f"| {words} | {' | '.join(cells)} |"
