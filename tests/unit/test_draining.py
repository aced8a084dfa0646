"""When packets of older rules have left: rounds of counters."""

from __future__ import annotations

import random
from collections import deque

import pytest

from controller.draining import Draining, Port, channels_between
from topologies import load

A, B = ("s1", 2), ("s2", 3)


def test_both_channels_of_a_link_are_drained() -> None:
    assert channels_between(load("ring,3").links[:1]) == [
        (("s1", 2), ("s2", 3)),
        (("s2", 3), ("s1", 2)),
    ]


def test_a_round_ends_when_all_that_was_sent_before_it_has_arrived() -> None:
    draining = Draining([(A, B)], 2, {}, keeps_order=True)
    assert not draining.see({A: (0, 10), B: (7, 0)})
    assert draining.late == [(A, B)]
    assert not draining.see({A: (0, 15), B: (9, 0)})
    assert not draining.see({A: (0, 20), B: (10, 0)})  # the second round: 20 were sent before it
    assert not draining.see({A: (0, 30), B: (19, 0)})
    assert draining.see({A: (0, 30), B: (20, 0)})


def test_lost_frames_are_not_waited_for() -> None:
    draining = Draining([(A, B)], 1, {(A, B): 3}, keeps_order=True)
    assert not draining.see({A: (0, 10), B: (6, 0)})
    assert draining.see({A: (0, 11), B: (7, 0)})


def test_without_order_the_channel_must_have_been_empty() -> None:
    draining = Draining([(A, B)], 1, {}, keeps_order=False)
    assert not draining.see({A: (0, 10), B: (7, 0)})
    assert not draining.see({A: (0, 15), B: (12, 0)})
    assert not draining.see({A: (0, 16), B: (15, 0)})
    assert draining.see({A: (0, 15 + 1), B: (16, 0)}) is False
    assert draining.see({A: (0, 16), B: (16, 0)})


def test_without_channels_there_is_nothing_to_wait_for() -> None:
    assert Draining([], 5, {}, keeps_order=True).see({})


@pytest.mark.parametrize("seed", range(200))
def test_no_old_frame_is_left_in_a_chain_of_queues(seed: int) -> None:
    """Frames go through a chain of first-in-first-out queues while new ones follow."""
    dice = random.Random(seed)  # noqa: S311 - repeatable, not secret
    length = dice.randrange(1, 5)
    channels: list[tuple[Port, Port]] = [
        ((f"s{i}", 1), (f"s{i + 1}", 2)) for i in range(1, length + 1)
    ]
    queues = [deque(["old"] * dice.randrange(6)) for _ in channels]
    sent = [len(queue) + dice.randrange(9) for queue in queues]
    received = [count - len(queue) for count, queue in zip(sent, queues, strict=True)]
    draining = Draining(channels, length, {}, keeps_order=True)
    for _ in range(2000):
        counters = {}
        for (a, b), out, into in zip(channels, sent, received, strict=True):
            counters[a] = (0, out)
            counters[b] = (into, 0)
        if draining.see(counters):
            break
        for _ in range(dice.randrange(8)):
            at = dice.randrange(-1, length)
            frame = "new" if at < 0 else queues[at].popleft() if queues[at] else None
            if frame is None:
                continue
            if at >= 0:
                received[at] += 1
            if at + 1 < length:
                queues[at + 1].append(frame)
                sent[at + 1] += 1
    else:
        raise AssertionError("it never ends")
    assert not any("old" in queue for queue in queues)
