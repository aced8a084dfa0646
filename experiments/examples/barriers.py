"""Barrier algorithms on a fabric, simulated: the mean time of a barrier."""

from __future__ import annotations

import sys

from knotless.routing.request import PlanRequest
from knotless_experiments.messages.logp import ALGORITHMS, PAPER_001
from knotless_experiments.workloads.barriers.case import Case, Settings, Testbed
from knotless_experiments.workloads.barriers.simulated import SimulatedTestbed

SETTINGS = Settings(
    barriers=50,
    lists=0,
    computing_us=0.0,
    costs=PAPER_001,
    message_bytes=16,
    cut_through=0,
    rate_mbps=100.0,
    delay_us=1.0,
    seed=1,
)


def main(spec: str) -> None:
    """Print a line for each algorithm."""
    testbed = Testbed(spec, PlanRequest(), networks=1)
    cases = [Case(testbed, algorithm, hosts=None) for algorithm in ALGORITHMS]
    with SimulatedTestbed.build(testbed, SETTINGS, cases, print) as simulated:
        for case in cases:
            passages, _ = simulated.run(case)
            if passages is not None:
                mean_us = passages.without_warm_up().durations_us.mean()
                print(f"{case.algorithm:20} {mean_us:7.1f} us")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "mesh,4,4")
