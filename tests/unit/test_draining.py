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
    assert not draining.see({A: (0, 20), B: (10, 0)})
    assert draining.late == []
    assert not draining.see({A: (0, 21), B: (21, 0)})  # the second round: 21 were sent before it
    assert not draining.see({A: (0, 30), B: (20, 0)})
    assert draining.see({A: (0, 30), B: (21, 0)})


def test_a_frame_that_moves_while_ports_are_read_is_not_missed() -> None:
    first, second = (A, B), (("s2", 1), ("s3", 2))
    draining = Draining([first, second], 2, {}, keeps_order=True)

    def counters(first: tuple[int, int], second: tuple[int, int]) -> dict[Port, tuple[int, int]]:
        return {
            A: (0, first[0]),
            B: (first[1], 0),
            ("s2", 1): (0, second[0]),
            ("s3", 2): (second[1], 0),
        }

    assert not draining.see(counters((1, 0), (0, 0)))
    # The sender of the second channel is read, the frame moves on, the other ports are read.
    assert not draining.see(counters((1, 1), (0, 0)))
    assert not draining.see(counters((1, 1), (1, 0)))
    assert not draining.see(counters((1, 1), (1, 0)))
    assert draining.see(counters((1, 1), (1, 1)))


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


@pytest.mark.parametrize("seed", range(500))
def test_no_old_frame_is_left_in_a_chain_of_queues(seed: int) -> None:
    """Frames go through a chain of first-in-first-out queues while new ones follow.

    Ports are read one after the other, in any order, and frames move in between.
    """
    dice = random.Random(seed)  # noqa: S311 - repeatable, not secret
    length = dice.randrange(1, 5)
    channels: list[tuple[Port, Port]] = [
        ((f"s{i}", 1), (f"s{i + 1}", 2)) for i in range(1, length + 1)
    ]
    queues = [deque(["old"] * dice.randrange(6)) for _ in channels]
    sent = [len(queue) + dice.randrange(9) for queue in queues]
    received = [count - len(queue) for count, queue in zip(sent, queues, strict=True)]

    def move() -> None:
        at = dice.randrange(-1, length)
        if at >= 0 and not queues[at]:
            return
        frame = "new" if at < 0 else queues[at].popleft()
        if at >= 0:
            received[at] += 1
        if at + 1 < length:
            queues[at + 1].append(frame)
            sent[at + 1] += 1

    def read() -> dict[Port, tuple[int, int]]:
        counters = {}
        ports = [(i, end) for i in range(length) for end in ("sends", "receives")]
        for i, end in dice.sample(ports, k=len(ports)):
            a, b = channels[i]
            if end == "sends":
                counters[a] = (0, sent[i])
            else:
                counters[b] = (received[i], 0)
            for _ in range(dice.randrange(6)):
                move()
        return counters

    draining = Draining(channels, length, {}, keeps_order=True)
    for _ in range(5000):
        if draining.see(read()):
            break
    else:
        raise AssertionError("it never ends")
    assert not any("old" in queue for queue in queues)
