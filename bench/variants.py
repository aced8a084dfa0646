"""Frames per second of a fabric with one setting or another, in turns.

The hosts send at full rate on links that are faster than the machine, so the machine is the limit.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from bench import emulation_time
from experiments.framework.routed import Routed
from experiments.studies.agreement.cases import Case
from routing.request import PlanRequest


def case(name: str, spec: str, pattern: str, setting: str, value: Any) -> Case:
    """Return the case of a fabric with a setting of :class:`emulation.network.EmulatedFabric`."""
    routed = Routed(spec, PlanRequest(engine="updown"), settings=((setting, value),))
    return Case(name, routed, pattern, "pause")


def measure(
    rounds: int,
    fabrics: Sequence[tuple[str, str]],
    setting: str,
    values: Sequence[Any],
    window_s: float,
) -> Iterator[dict[str, Any]]:
    """Yield a row for each round, fabric (spec and pattern) and value, in alternating order.

    ``window_s`` is virtual time.
    """
    for number in range(rounds):
        for spec, pattern in fabrics:
            for value in values if number % 2 == 0 else values[::-1]:
                one = case(setting, spec, pattern, setting, value)
                fabric = one.routed.fabric
                ports = 2 * len(fabric.links) + len(fabric.hosts)
                for line in emulation_time.run(one, [0], window_s):
                    yield {
                        **{"spec": spec, "ports": ports, setting: value, "pair": number},
                        **{"good": line.good, **asdict(line)},
                    }


def ratio(values: Sequence[float], others: Sequence[float]) -> str:
    """Return median and range of the ratios of two columns, pair by pair."""
    ratios = [one / other for one, other in zip(values, others, strict=True)]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def spread(values: Sequence[int]) -> str:
    """Return median and range."""
    return f"{statistics.median(values):,.0f} ({min(values):,} to {max(values):,})"
