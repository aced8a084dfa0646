"""The simulator beside those of others: CAMINOS (cycle by cycle) and csg-htsim (packet by packet).

Their runs are stored in ``tests/data/other_simulators``; docs/decisions/settled-comparisons.md has
the whole comparison.
"""

from __future__ import annotations

import csv
import re
from statistics import fmean

import pytest

from knotless.routing.plan import make_plan
from knotless.simulation import Buffers, Load, Scenario, simulate
from knotless.simulation.traffic import line_bytes
from knotless.topologies import load
from knotless.traffic.patterns.pattern import pattern_of
from tests.support import REPOSITORY

FOLDER = REPOSITORY / "tests" / "data" / "other_simulators"
RATE_MBPS = 100_000.0
OVERHEAD_BYTES = line_bytes(1000, 1000) - 1000
"""Bytes of the line that a packet takes beside its payload."""

# --- CAMINOS: a cycle is the time of a phit on a line; a packet has 16, a buffer 64 ------------

PHIT_BYTES, PACKET_PHITS, BUFFER_PHITS = 64, 16, 64
CYCLE_US = 8 * PHIT_BYTES / RATE_MBPS
LINK_CYCLES = 10
NETWORKS = {"torus": ("torus,5,5", "dor"), "dragonfly": ("dragonfly,a=4,h=2,p=2,g=9", "dragonfly")}


def latency_cycles(network: str, offered: float) -> float:
    """Return our mean latency of a network at a load."""
    spec, engine = NETWORKS[network]
    # A link is shorter by the cycle that the head of a packet takes to arrive.
    delay_us = (LINK_CYCLES - 1) * CYCLE_US
    result = simulate(
        Scenario(
            make_plan(load(f"{spec},rate={RATE_MBPS:g},delay={delay_us:.5f}"), engine),
            "uniform",
            Load("poisson", offered),
            flow_control="credits",
            buffers=Buffers(credit=BUFFER_PHITS * PHIT_BYTES),
            packet_bytes=PACKET_PHITS * PHIT_BYTES - OVERHEAD_BYTES,
            cut_through=PHIT_BYTES,
            warm_up_us=10_000 * CYCLE_US,
            duration_us=40_000 * CYCLE_US,
            seed=1,
        )
    )
    assert result.lost_frames == 0
    return float(result.summary()["latency_us"]["mean"]) / CYCLE_US


def their_latency_cycles(network: str, offered: float) -> float:
    rows = csv.DictReader((FOLDER / "caminos" / "results.csv").read_text().splitlines())
    return fmean(
        float(row["delay_cycles"])
        for row in rows
        if (row["fabric"], float(row["load"])) == (network, offered)
    )


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("offered", [0.01, 0.2, 0.3])
def test_latencies_far_below_saturation_are_those_of_caminos(network: str, offered: float) -> None:
    theirs = their_latency_cycles(network, offered)
    assert latency_cycles(network, offered) == pytest.approx(theirs, rel=0.05)


def test_the_configurations_describe_the_same_networks() -> None:
    for name, (spec, _) in NETWORKS.items():
        text = (FOLDER / "caminos" / f"{name}.cfg").read_text()
        assert f"servers: {len(load(spec).hosts)}, load: 0.1, message_size: {PACKET_PHITS} " in text
        assert text.count(f"delay: {LINK_CYCLES} ") == 3
        assert f"flit_size: {PACKET_PHITS}," in text


# --- csg-htsim: flow completion times of a traffic matrix -----------------------------------------

PAYLOAD_BYTES, HEADER_BYTES = 1500, 64
"""What csg-htsim adds to each packet."""
CONNECTION = re.compile(r"(\d+)->(\d+) id \d+ start 0 size (\d+)")


def matrix(name: str) -> tuple[list[tuple[int, int]], int]:
    """Return the pairs of a traffic matrix, and the size of each flow in bytes."""
    found = CONNECTION.findall((FOLDER / "csg-htsim" / f"{name}.cm").read_text())
    (size,) = {size for _, _, size in found}
    return [(int(source), int(to)) for source, to, _ in found], int(size)


def their_completion_us(name: str) -> list[float]:
    rows = csv.DictReader((FOLDER / "csg-htsim" / f"{name}-fct.csv").read_text().splitlines())
    return [float(row["fct_us"]) for row in rows]


def completion_us(pairs: list[tuple[int, int]], flow_bytes: int) -> list[float]:
    """Return our completion times of flows, until each is acknowledged."""
    # A packet that fills a line for as long as one of the reference does, overhead included.
    packet_bytes = PAYLOAD_BYTES + HEADER_BYTES - OVERHEAD_BYTES
    packets = -(-flow_bytes // PAYLOAD_BYTES)
    fabric = load(f"fattree3,8,rate={RATE_MBPS:g},delay=1")
    result = simulate(
        Scenario(
            make_plan(fabric, "fattree", multipath="ecmp", hash_seed=1),
            pattern_of("matrix", "flows of a traffic matrix", tuple(pairs)),
            Load("acknowledged", message_bytes=packets * packet_bytes),
            flow_control="pause",
            buffers=Buffers(xoff=15 * PAYLOAD_BYTES, xon=12 * PAYLOAD_BYTES),
            packet_bytes=packet_bytes,
            completions=True,
            seed=1,
        )
    )
    assert result.completions is not None
    assert len(result.completions.fct_ps) == len(pairs)
    return [float(ps) / 1e6 for ps in result.completions.fct_ps]


def test_an_incast_ends_when_that_of_csg_htsim_does() -> None:
    pairs, flow_bytes = matrix("i64")
    ours = completion_us(pairs, flow_bytes)
    assert max(ours) == pytest.approx(max(their_completion_us("i64")), rel=0.05)


def test_a_flow_alone_takes_as_long_as_the_soonest_of_csg_htsim() -> None:
    # The soonest flow of the permutation shares no line, but for acknowledgements.
    pairs, flow_bytes = matrix("p128")
    (alone,) = completion_us(pairs[:1], flow_bytes)
    assert alone == pytest.approx(min(their_completion_us("p128")), rel=0.05)
