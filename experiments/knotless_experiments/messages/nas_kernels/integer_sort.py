"""IS: rank integer keys by a bucket sort; all-to-all of small, then of large messages."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from knotless_experiments.messages.nas_kernels.kernel import Kernel, Verification
from knotless_experiments.messages.nas_kernels.randoms import SEED, jump, uniform
from knotless_experiments.messages.programs.communicator import Communicator

Keys = NDArray[np.int32]
Ranks = NDArray[np.int64]

ITERATIONS = 10


@dataclass(frozen=True)
class Size:
    """A class: sizes as powers of two, and the expected ranks of the keys at five positions.

    In iteration i the ranks of the first ``rising`` keys are ``ranks + i + shift``, and those of
    the others ``ranks - i``.
    """

    keys_log2: int
    max_key_log2: int
    buckets_log2: int
    positions: tuple[int, ...]
    ranks: tuple[int, ...]
    rising: int
    shift: int


SIZES = {
    "S": Size(16, 11, 9, (48427, 17148, 23627, 62548, 4431), (0, 18, 346, 64917, 65463), 3, 0),
    "W": Size(
        *(20, 16, 10),
        positions=(357773, 934767, 875723, 898999, 404505),
        ranks=(1249, 11698, 1039987, 1043896, 1048018),
        rising=2,
        shift=-2,
    ),
}


class IntegerSort:
    """One process's keys: an equal part of the sequence."""

    def __init__(self, communicator: Communicator, problem_class: str) -> None:
        self._communicator = communicator
        self._size = size = SIZES[problem_class]
        self._own = 2**size.keys_log2 // communicator.size
        self._first = communicator.rank * self._own
        numbers = uniform(jump(SEED, 4 * self._first), 4 * self._own).reshape(-1, 4)
        # The specification adds them one by one; another order rounds a few keys differently.
        total = ((numbers[:, 0] + numbers[:, 1]) + numbers[:, 2]) + numbers[:, 3]
        self.keys: Keys = (2**size.max_key_log2 / 4 * total).astype(np.int32)
        self._mine: Keys = self.keys[:0]
        self._lowest = self._below = 0
        self._ranks: Ranks = np.zeros(1, np.int64)
        self._wrong = 0

    def run(self) -> None:
        """Rank all keys ten times, changing two keys each time, and count wrong ranks."""
        for iteration in range(1, ITERATIONS + 1):
            if self._communicator.rank == 0:
                self.keys[iteration] = iteration
                self.keys[iteration + ITERATIONS] = 2**self._size.max_key_log2 - iteration
            self._rank(iteration)

    def _rank(self, iteration: int) -> None:
        size, communicator = self._size, self._communicator
        shift = size.max_key_log2 - size.buckets_log2
        buckets = 2**size.buckets_log2
        bucket = self.keys >> shift
        here = np.bincount(bucket, minlength=buckets)
        # The keys with known ranks are sent together with the bucket sizes.
        test_keys: Ranks = np.zeros(len(size.positions), np.int64)
        for i, position in enumerate(size.positions):
            if self._first <= position < self._first + self._own:
                test_keys[i] = self.keys[position - self._first]
        everywhere = communicator.allreduce(np.concatenate((here, test_keys)).astype(np.int32))
        sizes = everywhere[:buckets].astype(np.int64)
        test_keys = everywhere[buckets:].astype(np.int64)
        owner = self._owners(sizes)
        counts = np.bincount(owner, weights=here, minlength=communicator.size).astype(np.int32)
        ordered = self.keys[np.argsort(bucket, kind="stable")]
        parts = np.split(ordered, np.cumsum(counts)[:-1])
        each = communicator.alltoall(list(counts.reshape(-1, 1)), [(1,)] * communicator.size)
        got = communicator.alltoall(parts, [(int(count[0]),) for count in each])
        self._mine = np.concatenate(got)
        self._lowest = int(np.searchsorted(owner, communicator.rank)) << shift
        self._below = int(sizes[: self._lowest >> shift].sum())
        # A key's rank is the number of smaller keys; ranks[k] is the rank of key lowest + k.
        span = int((owner == communicator.rank).sum()) << shift
        counted = np.cumsum(np.bincount(self._mine - self._lowest, minlength=span))
        self._ranks = self._below + np.concatenate(([0], counted))
        for i, key in enumerate(test_keys):
            if owner[key >> shift] == communicator.rank:
                rising = i < size.rising
                expected = size.ranks[i] + (iteration + size.shift if rising else -iteration)
                self._wrong += int(self._ranks[key - self._lowest] != expected)

    def _owners(self, sizes: Ranks) -> Ranks:
        """Return the process of each bucket: consecutive buckets, similar numbers of keys."""
        before = np.cumsum(sizes) - sizes
        owner: Ranks = before * self._communicator.size // 2**self._size.keys_log2
        return np.minimum(owner, self._communicator.size - 1)

    def verification(self) -> Verification:
        """Compare: no wrong ranks, no keys out of order after the last ranking, no keys missing."""
        ordered = np.sort(self._mine)
        place = self._below + np.arange(len(ordered))
        key = ordered - self._lowest
        out = int(((self._ranks[key] > place) | (place >= self._ranks[key + 1])).sum())
        ends = np.array([*(ordered[[0, -1]] if len(ordered) else (0, 0)), len(ordered)])
        every = [end for end in self._communicator.allgather(ends) if end[2]]
        out += sum(int(a[1] > b[0]) for a, b in pairwise(every))
        sums = self._communicator.allreduce(np.array([self._wrong, out]))
        total = sum(int(end[2]) for end in every)
        return Verification(
            [float(sums[0]), float(sums[1]), float(total)],
            [0.0, 0.0, float(2**self._size.keys_log2)],
            0.0,
        )


KERNEL = Kernel("is", "integer sort", {"S": 128, "W": 256}, IntegerSort)
