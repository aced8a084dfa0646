"""The stages of a push: which time stamps belong together."""

from __future__ import annotations

import pytest

from knotless_experiments.studies.primitives.stages import STAGES, stage_times_us


def push(start: int) -> tuple[list[int], list[int]]:
    """Return the time stamps of client and server for a push of 1,000 ns per stage."""
    stamps = [start + 1000 * stage for stage in range(len(STAGES))]
    return stamps[:4] + stamps[8:], stamps[4:8]


def test_stages_are_those_of_one_push() -> None:
    client, server = zip(*(push(start) for start in (0, 50_000, 100_000)), strict=True)
    assert stage_times_us(client, server) == [float(stage) for stage in range(len(STAGES))]


def test_a_push_whose_answer_was_not_noted_is_left_out() -> None:
    client, server = zip(*(push(start) for start in (0, 50_000, 100_000)), strict=True)
    late = [stamp + 3000 for stamp in server[1]]
    assert stage_times_us(client, [server[0], late, server[2]])[-1] == len(STAGES) - 1
    with pytest.raises(ValueError, match="no push"):
        stage_times_us(client[:1], server[1:])
