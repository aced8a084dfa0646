"""Cuts and mends of a benchmark, and what they come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from routing.plan import Plan


@dataclass(frozen=True)
class Cut:
    """One cut, or mend: when the port was down, and when the routes were repaired.

    ``port`` of a silent cut is when frames began to be lost. ``found`` is when the controller knew.
    """

    link: str
    failed: bool
    port: float
    found: float | None
    served: float | None
    done: float | None
    tier: int | None
    planned_ahead: bool


def figures(plan: Plan, found: Sequence[Cut], records: Any) -> dict[str, Any]:
    """Return the figures of a run: times in ms, from port-down on."""
    cuts = [cut for cut in found if cut.failed]
    mends = [cut for cut in found if not cut.failed]
    users = users_of_links(plan, {cut.link for cut in cuts})
    arrivals = []
    for cut, after in zip(cuts, [*cuts[1:], None], strict=True):
        late = records["sent"] > cut.port
        late &= records["sent"] < (after.port if after else np.inf)
        mine = records[late]
        mine = mine[users[cut.link][mine["source"], mine["to"]]]
        arrivals.append(float(mine["at"].min()) - cut.port if len(mine) else None)
    return {
        "cuts": len(cuts),
        "tiers": dict(Counter(str(cut.tier) for cut in cuts)),
        "planned_ahead": sum(cut.planned_ahead for cut in cuts),
        "found_ms": spread([cut.found and cut.found - cut.port for cut in cuts]),
        "repaired_ms": spread([cut.served and cut.served - cut.port for cut in cuts]),
        "first_frame_ms": spread(arrivals),
        "complete_ms": spread([cut.done and cut.done - cut.port for cut in cuts]),
        "mend_tiers": dict(Counter(str(cut.tier) for cut in mends)),
        "mends_planned_ahead": sum(cut.planned_ahead for cut in mends),
        "mended_ms": spread([cut.served and cut.served - cut.port for cut in mends]),
        "lost_frames": losses(records),
    }


def spread(seconds: Sequence[float | None]) -> dict[str, float | int | None]:
    """Return median, 99th percentile and maximum, times 1,000; ``none`` did not happen in time."""
    known = [1000 * one for one in seconds if one is not None]
    if not known:
        return {"median": None, "p99": None, "max": None, "none": len(seconds)}
    median, p99, most = (round(float(np.percentile(known, at)), 1) for at in (50, 99, 100))
    return {"median": median, "p99": p99, "max": most, "none": len(seconds) - len(known)}


def losses(records: Any) -> int:
    """Return the frames that did not arrive although a later one of the same pair of hosts did."""
    order = np.lexsort((records["number"], records["to"], records["source"]))
    rows = records[order]
    same = (rows["source"][1:] == rows["source"][:-1]) & (rows["to"][1:] == rows["to"][:-1])
    missing = rows["number"][1:].astype(np.int64) - rows["number"][:-1] - 1
    return int(missing[same & (missing > 0)].sum())


def users_of_links(plan: Plan, links: set[str]) -> Mapping[str, Any]:
    """Return for each link which pairs of hosts use it in the intact plan, shape (hosts, hosts)."""
    hosts = plan.fabric.hosts
    found = {link: np.zeros((len(hosts), len(hosts)), dtype=bool) for link in links}
    ends: dict[tuple[str, int], str] = {}
    for link in plan.fabric.links:
        if link.name in links:
            ends |= {(link.a, link.a_port): link.name, (link.b, link.b_port): link.name}
    for i, source in enumerate(hosts):
        for j, to in enumerate(hosts):
            if i != j:
                for hop in plan.path(source.name, to.name):
                    if (hop.switch, hop.out_port) in ends:
                        found[ends[hop.switch, hop.out_port]][i, j] = True
    return found
