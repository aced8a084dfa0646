"""Losses of links: counted, kept in a file, and forgotten when counters begin again."""

from __future__ import annotations

from pathlib import Path

import pytest

from knotless.controller.config import ConfigError
from knotless.controller.updates.quiescence import ChannelLosses, CountedRounds, Loss, count_losses

A, B, C = ("s1", 2), ("s2", 3), ("s3", 2)


def test_counters_that_stay_the_same_count_all_that_was_lost() -> None:
    moving = [{A: (0, 10), B: (4, 0)}, {A: (0, 12), B: (7, 0)}]
    assert count_losses([(A, B)], moving) == {(A, B): Loss(8, 12, 4)}
    still = [*moving, {A: (0, 12), B: (7, 0)}]
    assert count_losses([(A, B)], still) == {(A, B): Loss(5, 12, 7)}


def test_nothing_is_known_of_a_port_without_counters() -> None:
    assert count_losses([(A, C)], [{A: (0, 10)}, {A: (0, 10)}]) == {}


def test_a_file_keeps_what_was_lost(tmp_path: Path) -> None:
    first = ChannelLosses.beside(tmp_path / "state.json")
    first.read()  # there is none yet
    first.add({(A, B): Loss(3, 10, 7)})
    first.add({(B, A): Loss(-2, 1, 3), (A, B): Loss(4, 11, 7)})
    assert (tmp_path / "state-lost.json").exists()
    second = ChannelLosses.beside(tmp_path / "state.json")
    now = {A: (3, 11), B: (7, 1)}
    assert (second.frames((A, B), now), second.frames((B, A), now)) == (0, 0)
    second.read()
    assert (second.frames((A, B), now), second.frames((B, A), now)) == (4, -2)
    assert second.frames((A, C), {**now, C: (0, 0)}) == 0
    lost = {(A, B): second.frames((A, B), now)}
    draining = CountedRounds([(A, B)], 1, lost, keeps_order=False)
    assert [draining.see(now) for _ in range(2)] == [False, True]


@pytest.mark.parametrize("now", [{A: (0, 9), B: (7, 0)}, {A: (0, 10), B: (6, 0)}])
def test_a_port_that_has_begun_to_count_again_has_lost_nothing(
    now: dict[tuple[str, int], tuple[int, int]],
) -> None:
    losses = ChannelLosses()
    losses.add({(A, B): Loss(3, 10, 7)})
    assert losses.frames((A, B), now) == 0


@pytest.mark.parametrize("text", ["", "[]", '{"s1:2-s2:3": [1, 2]}', '{"s1:2-s2:3": ["a", 2, 3]}'])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "state-lost.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"state-lost\.json: .*; delete the file to do without"):
        ChannelLosses.beside(tmp_path / "state.json").read()
