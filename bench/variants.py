"""Frames per second of a fabric with one setting or another, in turns.

The hosts send at full rate on links that are faster than the machine, so the machine is the limit.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click
from rich.console import Console

from bench import emulation_time
from bench.entry import as_stored
from knotless.base.flow_control import FlowControl
from knotless.experiments.framework.routed import Routed
from knotless.experiments.studies.agreement.cases import Case
from knotless.routing.request import PlanRequest


def measure(
    pairs: int,
    fabrics: Sequence[tuple[str, str]],
    setting: str,
    values: Sequence[Any],
    window_s: float,
) -> Iterator[dict[str, Any]]:
    """Yield a row for each pair, fabric (spec and pattern) and value of a setting.

    Settings are those of :class:`knotless.emulation.network.EmulatedFabric`. The value that comes
    first changes with each pair. ``window_s`` is virtual time.
    """
    for pair in range(pairs):
        for spec, pattern in fabrics:
            for value in values if pair % 2 == 0 else values[::-1]:
                routed = Routed(spec, PlanRequest(engine="updown"), settings=((setting, value),))
                ports = 2 * len(routed.fabric.links) + len(routed.fabric.hosts)
                case = Case(setting, routed, pattern, FlowControl.PAUSE)
                for line in emulation_time.run(case, [0], window_s):
                    of_run = {"spec": spec, "ports": ports, setting: value, "pair": pair}
                    yield {**of_run, "good": line.good, **asdict(line)}


def report(
    begun: Mapping[str, Any],
    measured: Iterable[Mapping[str, Any]],
    table_of: Callable[[Mapping[str, Any]], Sequence[str]],
    *,
    as_json: bool,
) -> None:
    """Show each row when it is measured, then all of them; exit with 1 if one is not good.

    ``begun`` is what :func:`bench.entry.about` returned.
    """
    console = Console(stderr=True)
    rows = []
    for row in measured:
        console.print(row, highlight=False)
        rows.append(row)
    click.echo(
        as_stored(begun, rows=rows) if as_json else "\n".join(table_of({**begun, "rows": rows}))
    )
    if not all(row["good"] for row in rows):
        sys.exit(1)


def ratio(values: Sequence[float], others: Sequence[float]) -> str:
    """Return median and range of the ratios of two columns, pair by pair."""
    ratios = [one / other for one, other in zip(values, others, strict=True)]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def spread(values: Sequence[int]) -> str:
    """Return median and range."""
    return f"{statistics.median(values):,.0f} ({min(values):,} to {max(values):,})"
