"""Links that fail one after the other, each soon after the one before."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from bench.support.repair_figures import spread
from bench.support.watch import CHANGE_S, Watch
from knotless.emulation.network import EmulatedFabric
from knotless.topologies.fabric import Fabric, Link
from knotless.topologies.failures import Failures, hosts_by_part, pairs_apart

NEXT_S = 1.0
"""Time from a cut to the next one."""
RETURN_LIMIT_S = 60.0


def sets_of_links(fabric: Fabric, count: int, sets: int, seed: int) -> list[list[Link]]:
    """Return sets of links, in the order of their failures, without which all hosts connect."""
    rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
    chosen: list[list[Link]] = []
    while len(chosen) < sets:
        links = rng.sample(fabric.links, count)
        failures = Failures.from_names(fabric, [link.name for link in links])
        if not pairs_apart(hosts_by_part(fabric, failures)):
            chosen.append(links)
    return chosen


def cut_in_a_row(lab: EmulatedFabric, watch: Watch, links: Sequence[Link]) -> list[dict[str, Any]]:
    """Cut links, mend them and wait until the routes have returned; return how each was served.

    ``served_s`` counts from the cut until all switches have confirmed the new routes, and is None
    if nothing had to change or it took longer than the benchmark waits.
    """
    served = []
    for number, link in enumerate(links, 1):
        begin = time.time()
        lab.cables.cut(lab.cables.one(link.name))
        event = _rerouted(watch, begin, {each.name for each in links[:number]})
        served.append(
            {
                "served_s": None if event is None else event["time"] - begin,
                "tier": None if event is None else event["tier"],
            }
        )
        time.sleep(max(0.0, begin + NEXT_S - time.time()))
    for link in links:
        lab.cables.mend(lab.cables.one(link.name))
    until = time.monotonic() + RETURN_LIMIT_S
    while _is_away(lab) and time.monotonic() < until:
        time.sleep(0.1)
    return served


def _rerouted(watch: Watch, begin: float, names: set[str]) -> dict[str, Any] | None:
    until = time.time() + CHANGE_S
    while time.time() < until:
        for time_s, event, fields in watch.events:
            if time_s >= begin and event == "rerouted" and names <= {*fields["failed"]}:
                return fields
        time.sleep(0.002)
    return None


def _is_away(lab: EmulatedFabric) -> bool:
    status = lab.controller_status()
    routes = status["routes"]
    is_busy = routes["changing"] or routes["older_rules"] or routes.get("settling")
    return bool(is_busy or routes["failed"] or status["links_down"] or not status["ready"])


def figures_in_a_row(runs: Sequence[Sequence[dict[str, Any]]]) -> dict[str, Any]:
    """Return, by the number of the failure, times in ms, tiers, and how many had no new routes."""
    figures: dict[str, Any] = {"sets": len(runs)}
    for number, served in enumerate(zip(*runs, strict=True), 1):
        figures[f"failure_{number}"] = {
            "served_ms": spread([each["served_s"] for each in served]),
            "tiers": dict(Counter(str(each["tier"]) for each in served)),
        }
    return figures
