"""Otsuka et al.: what its claims compute beyond selectors."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from knotless.results.spread import Spread, spread_of
from knotless.traffic import theory
from knotless_experiments.framework.fabrics import FLAT, TABLE_1
from knotless_experiments.framework.routed import Routed
from knotless_experiments.reproduction.rows import Row, condition
from knotless_experiments.reproduction.selectors import ratios, typical, where
from knotless_experiments.studies.hops.presentation import slope

LINK_MBPS = 1000.0
"""The rate of the paper's links."""
OPEN_LOOP: dict[str, object] = {"part": "open-loop", "rate_mbps": LINK_MBPS, "delay_us": 1.0}
"""Our runs of the traffic of section 5.2, on links of the paper's rate."""
HOSTS = 16
ENGINES = {"mesh": "dor", "torus": "dor", "mtree": "updown", "flat": "updown"}
ENGINES |= {"fattree": "fattree", "clos": "updown"}
"""The routes of our NAS programs on each family."""
TREE = "mtree,4,4"
LOOPED = tuple(name for name in TABLE_1 if name != TREE)


def _engine(fabric: str) -> str:
    return ENGINES[fabric.partition(",")[0]]


def _papers_routes(fabric: str) -> dict[str, object]:
    """Return the columns of rows with the routes that the paper uses on a fabric."""
    if fabric == FLAT:
        return {"fabric": fabric}
    request = TABLE_1[fabric]
    return {"fabric": fabric, "engine": request.engine, "select": request.select}


def mean_of_hosts(rows: Sequence[Row], fabric: str, pattern: str) -> Spread | None:
    """Return the mean share of the line over all 16 hosts.

    A host that would send to itself counts as a full line. We infer that the paper counts in the
    same way: otherwise its prediction for the mesh (521 Mbit/s) does not follow.
    """
    test = where(protocol="udp", pattern=pattern, **OPEN_LOOP, **_papers_routes(fabric))
    means = []
    for row in rows:
        if test(row):
            line_mbps = row["rate_mbps"] / theory.load_per_payload("udp", tagged=True)
            flows = [mbps / line_mbps for mbps in row["flows_mbps"]]
            means.append(fmean([*flows, *[1.0] * (HOSTS - len(flows))]))
    return spread_of(means)


def looped_over_tree(rows: Sequence[Row], pattern: str) -> Spread | None:
    """Return the ratio of bandwidth on looped topologies to that on the M-tree."""
    test = where(protocol="udp", pattern=pattern, **OPEN_LOOP)
    here = [row for row in rows if test(row)]
    free = ("fabric", "engine", "vcs", "routes", "select")
    tree = where(**_papers_routes(TREE))
    by_fabric = {
        fabric: ratios(here, "mean_mbps", where(**_papers_routes(fabric)), tree, free)
        for fabric in LOOPED
    }
    return typical({(name, *key): v for name, each in by_fabric.items() for key, v in each.items()})


def over_all_looped(rows: Sequence[Row], fabric: str, pattern: str) -> Spread | None:
    """Return the bandwidth on a looped topology over the mean of that on all of them, per run."""
    own = mean_of_hosts(rows, fabric, pattern)
    others = [mean_of_hosts(rows, each, pattern) for each in LOOPED]
    means = [each.mean for each in others if each is not None]
    return None if own is None else spread_of([own.mean / fmean(means)])


def share_of_line(rows: Sequence[Row], pattern: str, tagging: str) -> Spread | None:
    """Return the share of a line that each flow gets on acyclic routes with PAUSE on all links."""
    case = {"pattern": pattern, "routes": "acyclic", "flow_control": "pause", "tagging": tagging}
    test = where(**case, protocol="udp", rate_mbps=LINK_MBPS, watchdog_us=None)
    return spread_of(
        [
            fmean(row["flows_mbps"]) * theory.load_per_payload("udp", tagged=True) / LINK_MBPS
            for row in rows
            if test(row)
        ]
    )


def growth_over_lines(rows: Sequence[Row], measure: str) -> Spread | None:
    """Return the time that a switch adds, over that of its line and link, per size and repeat."""
    test = where(measure=measure, tagging="switch")
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if test(row):
            key = (*condition(row, ("switches",)), row["repeat"])
            groups.setdefault(key, []).append(row)
    each = [(slope(here, "p50_us"), slope(here, "theory_us")) for here in groups.values() if here]
    return spread_of([ours / due for ours, due in each if ours is not None and due])


def fall_beyond(rows: Sequence[Row], switches: int) -> Spread | None:
    """Return how the bandwidth changes from ``switches`` to two more, over that from two fewer.

    It is 1 where the two changes are the same part of the bandwidth, and less than 1 where it falls
    faster from ``switches`` on.
    """
    here = [row for row in rows if where(measure="both-ways", tagging="switch")(row)]

    def change(above: int) -> dict[tuple[object, ...], list[float]]:
        test, before = where(switches=above), where(switches=above - 2)
        return ratios(here, "bandwidth_mbps", test, before, ("switches",))

    later, earlier = change(switches + 2), change(switches)
    return typical(
        {
            key: [a / b for a, b in zip(values, earlier[key], strict=False)]
            for key, values in later.items()
            if key in earlier
        }
    )


def lost_frames(
    rows: Sequence[Row], pattern: str, routes: str, flow_control: str, tagging: str
) -> Spread | None:
    """Return the share of sent frames that never arrived, in per cent, with UDP."""
    case = {"pattern": pattern, "routes": routes, "flow_control": flow_control, "tagging": tagging}
    test = where(**case, protocol="udp", rate_mbps=LINK_MBPS, watchdog_us=None)
    return spread_of(
        [
            100 * (1 - row["delivered_frames"] / row["sent_frames"])
            for row in rows
            if row["sent_frames"] and test(row)
        ]
    )


def speed(
    rows: Sequence[Row],
    fabrics: list[str],
    under: str,
    kernels: list[str],
    computing: float | None = None,
    classes: tuple[str, ...] = ("S", "W"),
) -> Spread | None:
    """Return the speed of NAS kernels on fabrics, divided by that on ``under``, same links."""
    test = where(kernel=kernels, processes=16, computing=computing, **{"class": classes})
    speeds = [
        {
            **row,
            "fabric": row["fabric"].partition(",rate=")[2],
            "name": Routed(row["fabric"]).name,
            "speed": 1 / row["seconds"],
        }
        for row in rows
        if test(row) and row["seconds"]
    ]
    below = where(name=under, engine=_engine(under))
    cases: dict[tuple[object, ...], list[float]] = {}
    for name in fabrics:
        above = where(name=name, engine=_engine(name))
        each = ratios(speeds, "speed", above, below, ("engine", "vcs", "routes"))
        cases |= {(name, *key): values for key, values in each.items()}
    return typical(cases)
