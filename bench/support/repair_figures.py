"""Cuts and mends of a benchmark, and what they come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from knotless.routing.plan import Plan

PHASES = ("under_way", "until_found", "until_repaired", "otherwise")
UNDER_WAY_S = 0.5
"""Longest time that a frame is under way for longer than the others of its host."""


@dataclass(frozen=True)
class Cut:
    """One cut, or mend: when the port was down, and when the routes were repaired.

    ``port`` of a silent cut is when frames began to be lost. ``detected``: the controller knew.
    """

    link: str
    failed: bool
    port: float
    detected: float | None
    served: float | None
    done: float | None
    tier: int | None
    planned_ahead: bool


def figures(plan: Plan, changes: Sequence[Cut], records: Any) -> dict[str, Any]:
    """Return the figures of a run: times in ms, from port-down on."""
    cuts = [cut for cut in changes if cut.failed]
    mends = [cut for cut in changes if not cut.failed]
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
        "found_ms": spread([cut.detected and cut.detected - cut.port for cut in cuts]),
        "repaired_ms": spread([cut.served and cut.served - cut.port for cut in cuts]),
        "first_frame_ms": spread(arrivals),
        "complete_ms": spread([cut.done and cut.done - cut.port for cut in cuts]),
        "mend_tiers": dict(Counter(str(cut.tier) for cut in mends)),
        "mends_planned_ahead": sum(cut.planned_ahead for cut in mends),
        "mended_ms": spread([cut.served and cut.served - cut.port for cut in mends]),
        "lost_frames": losses(records),
        "lost": losses_by_phase(cuts, records, len(plan.fabric.hosts)),
    }


def spread(seconds: Sequence[float | None]) -> dict[str, float | int | None]:
    """Return median, 99th percentile and maximum, times 1,000; ``none`` did not happen in time."""
    times_ms = [1000 * one for one in seconds if one is not None]
    if not times_ms:
        return {"median": None, "p99": None, "max": None, "none": len(seconds)}
    median, p99, most = (
        round(float(np.percentile(times_ms, percent)), 1) for percent in (50, 99, 100)
    )
    return {"median": median, "p99": p99, "max": most, "none": len(seconds) - len(times_ms)}


def losses(records: Any) -> int:
    """Return the frames that did not arrive although a later one of the same pair of hosts did."""
    return len(_lost(records)[0])


def losses_by_phase(cuts: Sequence[Cut], records: Any, hosts: int) -> dict[str, int]:
    """Return how many frames were lost that were sent in each phase of a cut.

    ``under_way`` were sent before the port was down, ``until_found`` before the controller knew it,
    ``until_repaired`` before all switches had new routes, ``otherwise`` at any other time. A host
    sends to all others in turn, so a lost frame was sent between the two others around it, and was
    under way for about as long: seconds, if the fabric is busy. One that may have been lost at
    another time counts for the cut.
    """
    lost = dict.fromkeys(PHASES, 0)
    ends = [(cut.port, cut.detected or np.inf, cut.served or np.inf) for cut in cuts]
    for after, sent, due in _times(records, hosts):
        for port, detected, served in ends:
            if after <= served and due > port - UNDER_WAY_S:
                first = (sent <= port, sent <= detected, True)
                lost[PHASES[first.index(True)]] += 1
                break
        else:
            lost["otherwise"] += 1
    return lost


def _times(records: Any, hosts: int) -> Iterator[tuple[float, float, float]]:
    """Yield for each lost frame when it was sent, at the earliest and about, and when it was due.

    It was due when both frames around it had arrived.
    """
    turns = _turns(records["source"], records["to"], records["number"], hosts)
    sources, to, numbers = _lost(records)
    lost_turns = _turns(sources, to, numbers, hosts)
    for source in np.unique(sources):
        mine, lost = records["source"] == source, lost_turns[sources == source]
        order = np.argsort(turns[mine])
        arrived = turns[mine][order]
        sent, arrival = (records[name][mine][order] for name in ("sent", "at"))
        places = np.searchsorted(arrived, lost)
        first, last = np.maximum(places - 1, 0), np.minimum(places, len(sent) - 1)
        yield from zip(
            sent[first].tolist(),
            np.interp(lost, arrived, sent).tolist(),
            np.maximum(arrival[first], arrival[last]).tolist(),
            strict=True,
        )


def _turns(sources: Any, to: Any, numbers: Any, hosts: int) -> Any:
    """Return the numbers of frames among all of the same source."""
    to_next = sources.astype(np.int64) + 1
    return numbers.astype(np.int64) * (hosts - 1) + (to.astype(np.int64) - to_next) % hosts


def _lost(records: Any) -> tuple[Any, Any, Any]:
    """Return source, destination and number of the lost frames."""
    order = np.lexsort((records["number"], records["to"], records["source"]))
    rows = records[order]
    same = (rows["source"][1:] == rows["source"][:-1]) & (rows["to"][1:] == rows["to"][:-1])
    missing = rows["number"][1:].astype(np.int64) - rows["number"][:-1] - 1
    gaps = np.flatnonzero(same & (missing > 0))
    counts = missing[gaps]
    before = np.repeat(gaps, counts)
    offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    numbers = rows["number"][before].astype(np.int64) + 1 + offsets
    return rows["source"][before], rows["to"][before], numbers


def users_of_links(plan: Plan, links: set[str]) -> Mapping[str, Any]:
    """Return for each link which pairs of hosts use it in the intact plan, shape (hosts, hosts)."""
    hosts = plan.fabric.hosts
    users = {link: np.zeros((len(hosts), len(hosts)), dtype=bool) for link in links}
    ends: dict[tuple[str, int], str] = {}
    for link in plan.fabric.links:
        if link.name in links:
            ends |= {(link.a, link.a_port): link.name, (link.b, link.b_port): link.name}
    for i, source in enumerate(hosts):
        for j, to in enumerate(hosts):
            if i != j:
                for hop in plan.path(source.name, to.name):
                    if (hop.switch, hop.out_port) in ends:
                        users[ends[hop.switch, hop.out_port]][i, j] = True
    return users
