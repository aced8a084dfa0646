"""What a kernel of the NAS Parallel Benchmarks is to those who run it.

Sources: D. Bailey et al., The NAS Parallel Benchmarks, NAS report RNR-94-007 (1994): the
problems; NPB 2 and 3, NAS report NAS-95-020: classes S and W and their verification values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from common.errors import KnotlessError
from experiments.workloads.programs.communicator import Communicator


class KernelError(KnotlessError):
    """A kernel, class or number of processes that there is not."""


@dataclass(frozen=True)
class Verification:
    """What a kernel computed beside the official values; ``limit`` is the specified one.

    ``error`` is the largest relative error among the values.
    """

    values: Sequence[float]
    expected: Sequence[float]
    limit: float

    @property
    def error(self) -> float:
        """The largest relative error."""
        pairs = zip(self.values, self.expected, strict=True)
        return max(abs(value - right) / (abs(right) or 1.0) for value, right in pairs)

    @property
    def passed(self) -> bool:
        """Whether it is within the limit."""
        return self.error <= self.limit


class Work(Protocol):
    """A kernel that is set up on one process."""

    def run(self) -> None:
        """Do what is timed."""

    def verification(self) -> Verification:
        """Return the result and what it should be; every process gets the same."""


@dataclass(frozen=True)
class Kernel:
    """One kernel. ``limits`` gives, for each class, the most processes it can use."""

    name: str
    title: str
    limits: Mapping[str, int]
    make: Callable[[Communicator, str], Work]
    """Set up on one process; called by all of them."""
