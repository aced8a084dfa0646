"""Rounds of counters, after which packets of older rules have left."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass

import pytest

from knotless.controller.observed import Port, channels_between
from knotless.controller.updates.quiescence import (
    CountedRounds,
    PriorityRounds,
)
from knotless.topologies import load

A, B = ("s1", 2), ("s2", 3)


def test_both_channels_of_a_link_are_drained() -> None:
    assert channels_between(load("ring,3").links[:1]) == [
        (("s1", 2), ("s2", 3)),
        (("s2", 3), ("s1", 2)),
    ]


def test_a_round_ends_when_all_that_was_sent_before_it_has_arrived() -> None:
    draining = CountedRounds([(A, B)], 2, {}, keeps_order=True)
    assert not draining.see({A: (0, 10), B: (7, 0)})
    assert draining.late == [(A, B)]
    assert not draining.see({A: (0, 15), B: (9, 0)})
    assert not draining.see({A: (0, 20), B: (10, 0)})
    assert draining.late == []
    # The second round: 21 were sent before it.
    assert not draining.see({A: (0, 21), B: (21, 0)})
    assert not draining.see({A: (0, 30), B: (20, 0)})
    assert draining.see({A: (0, 30), B: (21, 0)})


def test_a_frame_that_moves_while_ports_are_read_is_not_missed() -> None:
    first, second = (A, B), (("s2", 1), ("s3", 2))
    draining = CountedRounds([first, second], 2, {}, keeps_order=True)

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
    draining = CountedRounds([(A, B)], 1, {(A, B): 3}, keeps_order=True)
    assert not draining.see({A: (0, 10), B: (6, 0)})
    assert draining.see({A: (0, 11), B: (7, 0)})


def test_without_order_the_channel_must_have_been_empty() -> None:
    draining = CountedRounds([(A, B)], 1, {}, keeps_order=False)
    assert not draining.see({A: (0, 10), B: (7, 0)})
    assert not draining.see({A: (0, 15), B: (12, 0)})
    assert not draining.see({A: (0, 16), B: (15, 0)})
    assert draining.see({A: (0, 15 + 1), B: (16, 0)}) is False
    assert draining.see({A: (0, 16), B: (16, 0)})


def test_without_channels_there_is_nothing_to_wait_for() -> None:
    assert CountedRounds([], 5, {}, keeps_order=True).see({})


def test_probes_that_overtake_do_not_count_for_older_frames() -> None:
    draining = CountedRounds([(A, B)], 1, {}, keeps_order=True)
    assert not draining.see({A: (0, 10), B: (7, 0)}, {A: (4, 1)}, {A: (4, 1)})
    # Three frames have arrived: of four probes that may have left, and of three that waited.
    assert not draining.see({A: (0, 13), B: (10, 0)}, {A: (7, 4)}, {A: (7, 4)})
    assert not draining.see({A: (0, 16), B: (13, 0)}, {A: (7, 1)}, {A: (7, 1)})
    assert draining.see({A: (0, 17), B: (14, 0)}, {A: (7, 0)}, {A: (7, 0)})


@dataclass
class Prober:
    """The probes of a channel: given to the switch, counted as sent, and heard."""

    any: bool
    given: int = 0
    counted: int = 0
    heard: int = 0

    def move(self, rng: random.Random) -> tuple[int, int]:
        """Give, count or hear one; return how many were counted as sent, and have arrived."""
        if self.heard < self.counted and rng.random() < 0.5:
            self.heard += 1
            return 0, 1
        if self.counted < self.given and rng.random() < 0.5:
            self.counted += 1
            return 1, 0
        self.given += 1
        return 0, 0


@pytest.mark.seeds(500)
def test_no_old_frame_is_left_in_a_chain_of_queues(seed: int) -> None:
    """Frames go through a chain of first-in-first-out queues while new ones follow.

    Ports are read one after the other, in any order, and frames move in between. Half of the
    switches also get probes, which wait a little, and then overtake all other frames.
    """
    rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
    length = rng.randrange(1, 5)
    channels: list[tuple[Port, Port]] = [
        ((f"s{i}", 1), (f"s{i + 1}", 2)) for i in range(1, length + 1)
    ]
    queues = [deque(["old"] * rng.randrange(6)) for _ in channels]
    sent = [len(queue) + rng.randrange(9) for queue in queues]
    received = [count - len(queue) for count, queue in zip(sent, queues, strict=True)]
    probes = [Prober(rng.random() < 0.5) for _ in channels]

    def move() -> None:
        position = rng.randrange(-1, length)
        if position >= 0 and probes[position].any and rng.random() < 0.5:
            counted, arrived = probes[position].move(rng)
            sent[position] += counted
            received[position] += arrived
            return
        if position >= 0 and not queues[position]:
            return
        frame = "new" if position < 0 else queues[position].popleft()
        if position >= 0:
            received[position] += 1
        if position + 1 < length:
            queues[position + 1].append(frame)
            sent[position + 1] += 1

    def read() -> dict[Port, tuple[int, int]]:
        counters = {}
        ports = [(i, end) for i in range(length) for end in ("sends", "receives")]
        for i, end in rng.sample(ports, k=len(ports)):
            a, b = channels[i]
            if end == "sends":
                counters[a] = (0, sent[i])
            else:
                counters[b] = (received[i], 0)
            for _ in range(rng.randrange(6)):
                move()
        return counters

    def probed() -> dict[Port, tuple[int, int]]:
        counts = zip(channels, probes, strict=True)
        return {a: (prober.given, prober.given - prober.heard) for (a, _), prober in counts}

    draining = CountedRounds(channels, length, {}, keeps_order=True)
    for _ in range(5000):
        earlier = probed()
        if draining.see(read(), earlier, probed()):
            break
    else:
        raise AssertionError("it never ends")
    assert not any("old" in queue for queue in queues)


def left_in_a_chain(seed: int, rounds: int | None = None, *, has_host: bool = False) -> int:
    """Return the old frames in a chain of channels when :class:`PriorityRounds` is done.

    Each channel has three queues, of which random ones stand still for a while, and a frame may
    change its priority from one channel to the next. New ones follow all the time.
    """
    rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
    length = rng.randrange(1, 5)
    queues = [[deque(["old"] * rng.randrange(4)) for _ in range(3)] for _ in range(length)]
    arrived = [[rng.randrange(9) for _ in range(3)] for _ in range(length)]

    def move(paused: tuple[int, int]) -> None:
        position, priority = rng.randrange(-1, length), rng.randrange(3)
        if position >= 0 and ((position, priority) == paused or not queues[position][priority]):
            return
        frame = "new" if position < 0 else queues[position][priority].popleft()
        if position >= 0:
            arrived[position][priority] += 1
        if position + 1 < length:
            queues[position + 1][rng.randrange(3)].append(frame)

    draining = PriorityRounds(rounds or length, ["s0:2"] if has_host else [])
    for _ in range(5000):
        counted = {
            (f"s{position}:2", str(priority)): (
                arrived[position][priority],
                len(queues[position][priority]),
            )
            for position in range(length)
            for priority in range(3)
        }
        if draining.see(counted):
            return sum(queue.count("old") for by_priority in queues for queue in by_priority)
        paused = rng.randrange(length), rng.randrange(3)
        for _ in range(rng.randrange(12)):
            move(paused)
    raise AssertionError("it never ends")


@pytest.mark.seeds(300)
def test_no_old_frame_is_left_where_priorities_are_counted(seed: int) -> None:
    assert left_in_a_chain(seed) == 0
    assert left_in_a_chain(seed, has_host=True) == 0


def test_too_few_rounds_leave_old_frames() -> None:
    assert any(left_in_a_chain(seed, rounds=1) for seed in range(300))


def test_nothing_under_way_is_seen_at_once() -> None:
    assert PriorityRounds(9).see({("h1", "0"): (5, 0), ("s1:2", "3"): (8, 0)})
    draining = PriorityRounds(9)
    assert not draining.see({("s1:2", "0"): (5, 1), ("s1:2", "3"): (8, 0)})
    assert draining.late == [("s1:2", "0")]
    # It was lost.
    assert draining.see({("s1:2", "0"): (5, 0), ("s1:2", "3"): (8, 0)})


def test_a_host_that_floods_its_link_is_waited_for_once() -> None:
    host, link = ("h1", "0"), ("s1:2", "0")
    draining = PriorityRounds(3, ["h1"])
    assert not draining.see({host: (0, 100), link: (0, 1)})
    assert not draining.see({host: (99, 100), link: (7, 1)})
    assert draining.late == [host]
    # The second round and the third one do not wait for the frames that follow.
    assert not draining.see({host: (100, 100), link: (8, 1)})
    assert draining.late == [link]
    assert not draining.see({host: (101, 100), link: (9, 1)})
    assert draining.see({host: (102, 100), link: (10, 1)})


def test_a_probe_that_was_sent_later_and_has_arrived_ends_a_round_whatever_was_lost() -> None:
    draining = CountedRounds([(A, B)], 2, {}, keeps_order=True)
    counters = {A: (0, 10), B: (7, 0)}
    assert not draining.see(counters, crossed=(5, {A: 5}))
    assert not draining.see(counters, crossed=(6, {A: 5}))
    assert draining.late == [(A, B)]
    assert not draining.see(counters, crossed=(7, {A: 6}))
    assert draining.late == []
    assert not draining.see(counters, crossed=(7, {A: 7}))
    assert not draining.see(counters, crossed=(8, {A: 7}))
    assert draining.see(counters, crossed=(8, {A: 8}))


def test_where_frames_overtake_each_other_no_probe_ends_a_round() -> None:
    draining = CountedRounds([(A, B)], 1, {}, keeps_order=False)
    counters = {A: (0, 10), B: (7, 0)}
    assert not draining.see(counters, crossed=(5, {A: 5}))
    assert not draining.see(counters, crossed=(6, {A: 6}))
