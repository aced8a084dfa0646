"""The interface of the kernels of the NAS Parallel Benchmarks.

Sources: D. Bailey et al., The NAS Parallel Benchmarks, NAS report RNR-94-007 (1994): the
problems; NPB 2 and 3, NAS report NAS-95-020: classes S and W and their verification values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from knotless.base.errors import KnotlessError
from knotless_experiments.messages.programs.communicator import Communicator


class KernelError(KnotlessError):
    """The kernel or its class does not exist, or it cannot use so many processes."""


@dataclass(frozen=True)
class Verification:
    """Computed values, the official ones, and the specified limit of the relative error."""

    values: Sequence[float]
    expected: Sequence[float]
    limit: float

    @property
    def error(self) -> float:
        """The largest relative error of the values; absolute where the official value is 0."""
        pairs = zip(self.values, self.expected, strict=True)
        return max(abs(value - official) / (abs(official) or 1.0) for value, official in pairs)

    @property
    def passed(self) -> bool:
        """Whether the error is within the limit."""
        return self.error <= self.limit


class Work(Protocol):
    """One process of a kernel, ready to run."""

    def run(self) -> None:
        """Do the timed part."""

    def verification(self) -> Verification:
        """Return the comparison with the official values, the same in every process."""


@dataclass(frozen=True)
class Kernel:
    """A kernel. ``limits`` maps each class to the largest number of processes it can use."""

    name: str
    title: str
    limits: Mapping[str, int]
    make: Callable[[Communicator, str], Work]
    """Set up the kernel in one process; every process calls this."""
