"""Computing the papers' figures from rows: those that are more than one ratio."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.reproduction import page
from experiments.reproduction.claim import Claim
from experiments.reproduction.claims import CLAIMS
from experiments.reproduction.elsewhere import ELSEWHERE
from runs.spread import Spread

Rows = Sequence[dict[str, Any]]


def claim(place: str, *words: str) -> Claim:
    (found,) = [c for c in CLAIMS if c.place == place and all(word in c.what for word in words)]
    return found


def mean(place: str, *words: str, rows: Rows) -> float:
    spread = claim(place, *words).compute(rows)
    assert spread is not None
    return spread.mean


def test_every_claim_has_its_own_place_or_words() -> None:
    named = [(c.paper, c.place, c.what) for c in CLAIMS]
    assert len(set(named)) == len(named)
    assert set(ELSEWHERE) == {c.paper for c in CLAIMS} == set(page.PAPERS)


def barrier(engine: str, vcs: int, times_us: list[float]) -> dict[str, Any]:
    return {"fabric": "irregular-a", "engine": engine, "vcs": vcs, "list_means_us": times_us}


def test_the_list_of_most_gain_is_the_one_where_the_ratio_is_least() -> None:
    rows = [
        barrier("updown", 1, [50.0, 60.0, 40.0]),
        barrier("updown", 2, [1.0, 1.0, 1.0]),
        barrier("dl", 2, [48.0, 45.0, 39.0]),
        barrier("updown", 1, [50.0, 60.0, 40.0]),
        barrier("dl", 2, [40.0, 51.0, 40.0]),
        barrier("dl", 2, [7.0]),  # with one list there is no choice
    ]
    found = claim("Table 3, A, in brackets", "DL").compute(rows)
    assert found == Spread(0.775, 0.75, 0.8, 2)


def test_table_1_is_taken_from_plans_with_trees() -> None:
    row = {"fabric": "mesh,4,4", "vlan_assignment": "tree", "max_channel_load": 16, "vlans": 4}
    rows = [row, {**row, "vlan_assignment": "default", "max_channel_load": 99, "vlans": 1}]
    assert mean("Table 1, mesh 4x4, figure 6", "CP", rows=rows) == 16
    assert mean("Table 1, mesh 4x4", "VLANs", rows=rows) == 4


def test_loops_are_compared_with_the_tree_for_each_pattern() -> None:
    common = {"part": "open-loop", "protocol": "udp", "rate_mbps": 5.0}
    rows = [
        {**common, "fabric": fabric, "pattern": pattern, "mean_mbps": mbps}
        for fabric, pattern, mbps in (
            *(("mtree,4,4", "transpose", 2.0), ("mtree,4,4", "bit-reversal", 1.0)),
            *(("torus,4,4", "transpose", 3.0), ("mesh,4,4", "bit-reversal", 3.5)),
            *(("flat,16", "transpose", 9.0), ("torus,4,4", "shuffle", 9.0)),
        )
    ]
    assert mean("Figure 10, UDP", rows=rows) == 2.5
    slower = {**rows[2], "rate_mbps": 1.0, "mean_mbps": 0.1}
    assert mean("Figure 10, UDP", rows=[slower, *rows]) == 2.5


def test_two_fabrics_are_compared_at_the_same_load() -> None:
    def row(configuration: str, schedule: str, datagrams: int, of_line: float) -> dict[str, Any]:
        case = {"configuration": configuration, "share": 100, "schedule": schedule}
        return {**case, "datagrams": datagrams, "of_line": of_line}

    rows = [row("S2", "contention-free", 64, 0.8), row("S2'", "shift", 48, 0.4)]
    assert claim("Figure 17, S2", "proposed").compute(rows) is None
    assert mean("Figure 17, S2", "proposed", rows=[*rows, row("S2'", "shift", 64, 0.8)]) == 1.0


def test_only_the_four_fabrics_of_rhinet_count_for_table_9() -> None:
    def row(fabric: str, engine: str, vcs: int, mbps: float) -> dict[str, Any]:
        case = {"part": "open-loop", "pattern": "transpose", "select": "spread"}
        return {**case, "fabric": fabric, "engine": engine, "vcs": vcs, "mean_mbps": mbps}

    rows = [row("irregular-a", "updown", 1, 2.0), row("irregular-a", "dl", 2, 3.0)]
    rows += [row("ring,4", "updown", 1, 2.0), row("ring,4", "dl", 2, 9.0)]
    assert mean("Table 9, simulation", "over up", rows=rows) == 1.5


def test_algorithms_are_compared_with_shuffle_exchange_on_one_network() -> None:
    def row(algorithm: str, hosts: int, us: float, networks: int = 1) -> dict[str, Any]:
        case = {"fabric": "flat,32", "algorithm": algorithm, "hosts": hosts}
        return {**case, "networks": networks, "mean_us": us}

    rows = [row("shuffle", 32, 10.0), row("tree3", 31, 12.0), row("tree3", 31, 5.0, networks=2)]
    assert mean("Barrier, one switch, ratio", "3-way", rows=rows) == 1.2


def test_path_analysis_gives_the_throughput_ratio() -> None:
    row = {"configuration": "S1", "schedule": "shift", "share": 100, "throughput_ratio": 0.5}
    assert mean("Figures 19 to 22", "S1", "shift", rows=[{**row, "of_line": None}]) == 0.5
    assert mean("Figures 19 to 22", "S1", "shift", rows=[{**row, "of_line": 0.4}]) == 0.4


def test_a_ratio_to_zero_is_not_shown() -> None:
    assert page.over(Spread(0.0, 0.0, 0.0, 1), 0.0) == page.NOWHERE
    assert page.over(Spread(3.0, 3.0, 3.0, 1), 2.0) == "1.50"
