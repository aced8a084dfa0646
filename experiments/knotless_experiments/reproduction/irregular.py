"""Random graphs with the properties that paper 000 states of its topologies A and B.

    python -m knotless_experiments.reproduction.irregular --graphs 1000 --seed 1

The paper shows A and B only as pictures. Our A and B are two graphs with the properties of its text
(:mod:`knotless.topologies.families.irregular`); the search that found them was not kept. This one
draws graphs in the same class, with and without these properties, so that one can see where A and B
lie among them. Stored in ``experiments/own/irregular-graphs.json``.

References
----------
Koibuchi, Watanabe, Otsuka, Jouraku, Amano: deadlock-free deterministic routings measured on the
RHiNET-2 cluster, section 4.1.

"""

from __future__ import annotations

import json
import random
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median, quantiles
from typing import Any

import click

from knotless.base.errors import KnotlessError
from knotless.base.files import read_text, write_whole
from knotless.cli.numbers import Whole
from knotless.results.machine import machine, versions
from knotless.results.stored import FOLDER, OWN
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.topologies.fabric import Fabric
from knotless.topologies.family import Request, assemble, cables
from knotless.traffic.analysis import analyse
from knotless.traffic.patterns import pattern_named
from knotless.verification.checked_plan import CheckedPlan

NAME = "irregular-graphs.json"
SWITCHES, HOSTS, MAX_DEGREE, LINKS = 16, 4, 4, (22, 23, 24)
"""The class: as many switches, hosts on each, links of a switch and links as A and B have."""
DIAMETER = 6
PATTERNS = ("bit-reversal", "transpose", "butterfly", "complement")
OURS = ("irregular-a", "irregular-b")
FIGURES: Mapping[str, tuple[str, int]] = {
    "shortest_paths": ("shortest paths for each pair of switches", 2),
    "switches_updown": ("switches on a path, up\\*/down\\*", 2),
    "switches_dl_over_updown": ("switches on a path, DL over up\\*/down\\*", 3),
    "gain": ("largest bandwidth of DL over up\\*/down\\*, of four patterns", 2),
}
"""Key -> words and digits."""


def drawn(rng: random.Random) -> list[tuple[int, int]]:
    """Return the links of a random connected graph: a random tree, then random further links."""
    wanted = rng.choice(LINKS)
    while True:
        order = rng.sample(range(SWITCHES), SWITCHES)
        degree = [0] * SWITCHES
        links: set[tuple[int, int]] = set()
        for place, switch in enumerate(order[1:], 1):
            free = [other for other in order[:place] if degree[other] < MAX_DEGREE]
            _join(links, degree, switch, rng.choice(free))
        for _ in range(1000):
            if len(links) == wanted:
                return sorted(links)
            low, high = sorted(rng.sample(range(SWITCHES), 2))
            if (low, high) not in links and max(degree[low], degree[high]) < MAX_DEGREE:
                _join(links, degree, low, high)


def _join(links: set[tuple[int, int]], degree: list[int], one: int, other: int) -> None:
    links.add((min(one, other), max(one, other)))
    degree[one] += 1
    degree[other] += 1


def fabric_of(links: Sequence[tuple[int, int]]) -> Fabric:
    """Return the fabric of a graph, with four hosts on each switch."""
    return assemble(Request("graph", (), HOSTS), [HOSTS] * SWITCHES, cables(links))


def figures_of(fabric: Fabric) -> dict[str, Any]:
    """Return the figures of a fabric, and whether it has the properties of the paper's text.

    ``gain`` is the largest ratio of the mean max-min fair rate with DL to that with up*/down*.
    """
    updown, prefix = (_checked(fabric, engine) for engine in ("updown", "prefix"))
    layers = _checked(fabric, "dl", vcs=2)
    distance, paths = _shortest(fabric)
    switches = [plan.verdict.mean_switches for plan in (updown, layers)]
    return {
        "shortest_paths": round(paths, 4),
        "switches_updown": round(switches[0], 4),
        "switches_dl_over_updown": round(switches[1] / switches[0], 4),
        "gain": round(max(_rate(layers, name) / _rate(updown, name) for name in PATTERNS), 4),
        "as_stated": distance == DIAMETER
        and layers.is_minimal
        and not updown.is_minimal
        and not prefix.is_minimal,
    }


def _checked(fabric: Fabric, engine: str, **choices: Any) -> CheckedPlan:
    return CheckedPlan(make_plan(fabric, engine, **choices))


def _rate(checked: CheckedPlan, pattern: str) -> float:
    rates = analyse(checked.plan, pattern_named(pattern), 1).rates
    return 0.0 if rates is None else float(rates.mean())


def _shortest(fabric: Fabric) -> tuple[int, float]:
    """Return the diameter in links, and the mean number of shortest paths of a pair of switches."""
    names = {switch.name: number for number, switch in enumerate(fabric.switches)}
    near: list[list[int]] = [[] for _ in names]
    for link in fabric.links:
        near[names[link.a]].append(names[link.b])
        near[names[link.b]].append(names[link.a])
    diameter, counts = 0, list[int]()
    for source in range(len(names)):
        distance, ways, frontier = {source: 0}, {source: 1}, [source]
        while frontier:
            later: dict[int, int] = {}
            for switch in frontier:
                for other in near[switch]:
                    if other not in distance:
                        later[other] = later.get(other, 0) + ways[switch]
            step = distance[frontier[0]] + 1
            distance |= dict.fromkeys(later, step)
            ways |= later
            frontier = list(later)
        diameter = max(diameter, *distance.values())
        counts += [count for switch, count in ways.items() if switch != source]
    return diameter, fmean(counts)


def measured(graphs: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the figures of random graphs until so many have the properties of the text."""
    rng = random.Random(seed)  # noqa: S311
    while graphs:
        row = figures_of(fabric_of(drawn(rng)))
        graphs -= row["as_stated"]
        yield row


def lines(run: Mapping[str, Any]) -> Iterator[str]:
    """Yield the section of a stored run, line by line; its columns have a value for each graph."""
    columns = run["columns"]
    every = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    stated = [row for row in every if row["as_stated"]]
    gains = [run["ours"][name]["gain"] - 1 for name in OURS]
    usual = median(row["gain"] for row in stated) - 1
    yield "## Topologies A and B among graphs of their kind ([000](000.md), section 4.1)"
    yield ""
    yield (
        "The paper draws its topologies A and B, and its text names some of their properties. Ours "
        "are two graphs with these properties, found by a search that was not kept. Two conditions "
        "more were chosen because they fit what the paper measured: paths are longer on A than on "
        "B, and up\\*/down\\* loses more on A."
    )
    yield ""
    yield (
        f"Among {len(every):,} random connected graphs with 16 switches, 22 to 24 links and at "
        f"most 4 at a switch, {len(stated):,} have the properties of the text: diameter 6, and of "
        "up\\*/down\\*, prefix routing and DL with 2 virtual channels only DL is minimal. Each "
        "cell has the median, and the 5 % and 95 % ends, by path analysis. The rank is the share "
        "of the graphs as the text says that have a smaller figure. **A and B are not typical of "
        f"such graphs**: DL gains {gains[0]:.0%} on A and {gains[1]:.0%} on B, and {usual:.0%} on "
        "the median graph."
    )
    yield ""
    yield "| | all graphs | as the text says | A | rank | B | rank |"
    yield "|---|---|---|---|---|---|---|"
    for key, (words, digits) in FIGURES.items():
        cells = [_band([row[key] for row in rows], digits) for rows in (every, stated)]
        for name in OURS:
            own = run["ours"][name][key]
            cells += [f"{own:.{digits}f}", _rank(own, [row[key] for row in stated])]
        yield f"| {words} | {' | '.join(cells)} |"
    yield ""
    yield "Repeat it:"
    yield ""
    command = "python -m knotless_experiments.reproduction.irregular"
    yield f"    {command} --graphs {len(stated)} --seed {run['seed']}"


def _band(values: Sequence[float], digits: int) -> str:
    cuts = quantiles(values, n=20, method="inclusive")
    low, middle, high = (f"{cuts[place]:.{digits}f}" for place in (0, 9, 18))
    return f"{middle} ({low} to {high})"


def _rank(value: float, values: Sequence[float]) -> str:
    return f"{bisect_left(sorted(values), value) / len(values):.0%}"


def stored(folder: Path = FOLDER) -> Mapping[str, Any]:
    """Return the stored run. Raises KnotlessError if it cannot be read."""
    run: Mapping[str, Any] = json.loads(read_text(folder / OWN / NAME, KnotlessError))
    return run


@click.command()
@click.option(
    "--graphs",
    type=Whole(2),
    default=1000,
    show_default=True,
    help="Until so many have the properties of the paper's text.",
)
@click.option("--seed", type=Whole(), default=1, show_default=True)
@click.option("--into", type=click.Path(dir_okay=False, path_type=Path), help="Write the run here.")
def main(graphs: int, seed: int, into: Path | None) -> None:
    """Draw graphs like topologies A and B of paper 000, and compare A and B with them.

    Example: python -m knotless_experiments.reproduction.irregular --graphs 50
    """
    rows = list(measured(graphs, seed))
    run = {
        "machine": machine(),
        "versions": versions(),
        "seed": seed,
        "ours": {name: figures_of(load(name)) for name in OURS},
        "columns": {key: [row[key] for row in rows] for key in rows[0]},
    }
    if into is not None:
        write_whole(into, json.dumps(run) + "\n")
    click.echo("\n".join(lines(run)))


if __name__ == "__main__":
    main()
