"""Figures that benchmarks of repairs count."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.support.all_to_all import RECORD
from bench.support.repair_figures import Cut, losses, losses_by_phase

HOSTS = 4
PERIOD_S = 0.1


def all_to_all(frames: int, lost: set[tuple[int, int]], latency_s: float = 0.001) -> Any:
    """Return what arrives if each host sends to the next ones in turn, without ``lost``.

    These are (source, how many frames it had sent before).
    """
    rows = []
    for source in range(HOSTS):
        for turn in range(frames):
            if (source, turn) not in lost:
                number, after = divmod(turn, HOSTS - 1)
                sent = source / 100 + turn * PERIOD_S
                rows.append((source, (source + 1 + after) % HOSTS, number, sent, sent + latency_s))
    return np.array(rows, dtype=RECORD)


def cut(port: float, detected: float, served: float) -> Cut:
    return Cut("s1-s2", True, port, detected, served, served, 1, True)


def test_lost_frames_are_those_before_others_of_their_hosts() -> None:
    assert losses(all_to_all(60, set())) == 0
    assert losses(all_to_all(60, {(0, 7), (0, 10), (0, 13), (3, 20)})) == 4
    assert losses(all_to_all(60, {(0, 59)})) == 0, "it may still arrive"


def test_lost_frames_are_counted_by_the_phase_in_which_they_were_sent() -> None:
    cuts = [cut(1.05, 1.25, 1.45), cut(3.05, 3.25, 3.45)]
    records = all_to_all(60, {(0, 10), (0, 11), (0, 12), (0, 13), (0, 14), (1, 34), (2, 22)})
    assert losses_by_phase(cuts, records, HOSTS) == {
        "under_way": 1,
        "until_found": 2,
        "until_repaired": 3,
        "otherwise": 1,
    }


def test_a_frame_that_was_sent_long_before_can_be_under_way() -> None:
    for latency_s, phase in ((0.001, "otherwise"), (1.5, "under_way")):
        records = all_to_all(60, {(0, 20)}, latency_s)
        assert losses_by_phase([cut(3.05, 3.25, 3.45)], records, HOSTS)[phase] == 1


def test_a_cut_that_is_never_repaired_has_no_end() -> None:
    open_end = Cut("s1-s2", True, 1.05, None, None, None, None, False)
    phases = losses_by_phase([open_end], all_to_all(60, {(0, 40)}), HOSTS)
    assert phases["until_found"] == 1
