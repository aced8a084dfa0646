"""The comparison of flow completion times with those of csg-htsim."""

from __future__ import annotations

import numpy as np
import pytest

from bench.validation import (
    ALIGNED,
    MATRICES,
    SHOWN,
    Matrix,
    completion_us,
    read_matrix,
    reference_us,
    statistics,
    table_of,
)


@pytest.mark.parametrize(("name", "flows"), [("i64", 64), ("p128", 128)])
def test_matrices_and_references_are_of_the_same_flows(name: str, flows: int) -> None:
    matrix = read_matrix(name)
    assert len(matrix.pairs) == len(reference_us(name)) == flows
    assert len({source for source, _ in matrix.pairs}) == flows
    assert max(max(pair) for pair in matrix.pairs) < 128
    # A flow of an idle network needs at least the time of its packets on one line.
    least = matrix.flow_bytes / 1500 * ALIGNED.packet_line_bytes * 8 / 100e3
    assert reference_us(name).min() > least


def test_a_flow_alone_takes_as_long_as_the_shortest_of_the_reference() -> None:
    # The soonest flow of the permutation shares no line, but for acknowledgements.
    matrix = read_matrix("p128")
    (alone,) = completion_us(Matrix(matrix.pairs[:1], matrix.flow_bytes), ALIGNED, 1)
    assert alone == pytest.approx(reference_us("p128").min(), rel=0.05)


def test_completion_times_follow_from_the_seed_of_the_hash() -> None:
    matrix = read_matrix("p128")
    small = Matrix(matrix.pairs[:16], 150_000)
    times = [completion_us(small, ALIGNED, seed).tolist() for seed in (1, 1, 2)]
    assert times[0] == times[1] != times[2]


def test_the_table_has_medians_and_differences() -> None:
    rows = []
    for name, variants in MATRICES.items():
        values = dict.fromkeys(("min", *SHOWN), 100.0)
        rows.append({"matrix": name, "variant": None, "seed": None, **values})
        for variant in variants:
            for seed, value in enumerate((90.0, 110.0, 120.0), 1):
                more = dict.fromkeys(("min", *SHOWN), value)
                rows.append({"matrix": name, "variant": variant.name, "seed": seed, **more})
    machine = {
        "cores": 2,
        "cpu": "c",
        "memory_mib": 1,
        "system": "s",
        "kernel": "k",
        "load_1min": 0,
    }
    lines = table_of({"rows": rows, "machine": machine, "load_1min_after": 0.0})
    assert lines[3] == "| `i64.cm`, aligned |" + " 110 (90 to 120), +10.0% |" * 3
    assert len([line for line in lines if line.startswith("| `")]) == 2 + 2 + 2


def test_percentiles_of_completion_times() -> None:
    found = statistics(np.arange(101, dtype=np.float64))
    assert found == {"min": 0.0, "p50": 50.0, "p95": 95.0, "p99": 99.0, "max": 100.0}
