"""The pseudo-random numbers of the NAS Parallel Benchmarks (NAS report RNR-94-007, section 2.3).

x' = 5^13 x mod 2^46, and the number is x' / 2^46. Products wrap modulo 2^64, a multiple of 2^46,
so 64-bit arithmetic gives exactly the specified numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MULTIPLIER = 5**13
MODULUS = 2**46
SEED = 314159265


def jump(seed: int, steps: int) -> int:
    """Return the state after ``steps`` numbers have been drawn from ``seed``."""
    return seed * pow(MULTIPLIER, steps, MODULUS) % MODULUS


def uniform(seed: int, count: int) -> NDArray[np.float64]:
    """Return the next ``count`` numbers in (0, 1) after the state ``seed``."""
    states = np.empty(count, np.uint64)
    if count:
        states[0] = jump(seed, 1)
    filled = 1
    while filled < count:
        more = min(filled, count - filled)
        factor = np.uint64(pow(MULTIPLIER, filled, MODULUS))
        states[filled : filled + more] = states[:more] * factor & np.uint64(MODULUS - 1)
        filled += more
    return states.astype(np.float64) * 2.0**-46
