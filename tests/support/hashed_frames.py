"""The frames of a simulation beside the paths that the analysis gives its flows."""

from __future__ import annotations

from collections import Counter

import numpy as np

from knotless.routing.plan import Plan
from knotless.simulation import Load, Scenario, simulate
from knotless.simulation.result import Result
from knotless.traffic.contention import Lines
from knotless.traffic.patterns import pattern_named


def simulated_on_paths(plan: Plan, lines: Lines) -> Result:
    """Simulate a permutation of one message each; every channel must carry what ``lines`` say."""
    load = Load("acknowledged", message_bytes=1500)
    result = simulate(Scenario(plan, "permutation", load, seed=5))
    sent = dict(zip(result.channels.names, result.report.channel_tx_frames.tolist(), strict=True))
    # A message and its acknowledgement: frames on the path of the flow, and on that of its answer.
    counted = Counter[str]()
    for flows in pattern_named("permutation").phases(plan.fabric, 5):
        for ends in (flows, flows[:, ::-1]):
            for hop in lines.channels_of(np.ascontiguousarray(ends)):
                counted.update(lines.names()[c] for c in hop.tolist() if c < lines.count)
    assert {name: frames for name, frames in sent.items() if frames} == counted
    return result
