"""EP: Gaussian deviates from pairs of random numbers; almost no communication."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knotless_experiments.messages.nas_kernels.kernel import Kernel, Verification
from knotless_experiments.messages.nas_kernels.randoms import jump, uniform
from knotless_experiments.messages.programs.communicator import Communicator

Sums = NDArray[np.float64]

SEED = 271828183
BATCH_PAIRS = 2**16
ANNULI = 10
PAIRS_LOG2 = {"S": 24, "W": 25}
EXPECTED = {
    "S": (-3.247834652034740e3, -6.958407078382297e3),
    "W": (-2.863319731645753e3, -6.320053679109499e3),
}
"""Sums of the first and of the second deviates of all pairs."""


class EmbarrassinglyParallel:
    """One process's batches: every ``size``-th, starting at its rank."""

    def __init__(self, communicator: Communicator, problem_class: str) -> None:
        self._communicator = communicator
        self._class = problem_class
        self.sums: Sums = np.zeros(2, np.float64)
        self.counts: Sums = np.zeros(ANNULI)

    def run(self) -> None:
        """Draw all pairs, keep those in the unit circle (Marsaglia's polar method), and sum up."""
        batches = 2 ** PAIRS_LOG2[self._class] // BATCH_PAIRS
        for batch in range(self._communicator.rank, batches, self._communicator.size):
            numbers = uniform(jump(SEED, 2 * BATCH_PAIRS * batch), 2 * BATCH_PAIRS)
            x, y = 2 * numbers[0::2] - 1, 2 * numbers[1::2] - 1
            square = x * x + y * y
            inside = np.flatnonzero(square <= 1)
            square = square[inside]
            factor = np.sqrt(-2 * np.log(square) / square)
            x, y = x[inside] * factor, y[inside] * factor
            annulus = np.maximum(np.abs(x), np.abs(y)).astype(np.int64)
            self.counts += np.bincount(annulus, minlength=ANNULI)
            self.sums += (x.sum(), y.sum())
        self.sums = self._communicator.allreduce(self.sums)
        self.counts = self._communicator.allreduce(self.counts)

    def verification(self) -> Verification:
        """Compare both sums, with tolerance 1e-8."""
        return Verification(self.sums.tolist(), EXPECTED[self._class], 1e-8)


KERNEL = Kernel("ep", "embarrassingly parallel", {"S": 256, "W": 512}, EmbarrassinglyParallel)
