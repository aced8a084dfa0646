"""Distributions of the sizes of flows: published ones, and files of users.

A file has a line ``bytes,probability`` for each point of the cumulative distribution, after a
header of these words; lines that begin with # are comments. Between two points the distribution is
linear: the probability falls equally on each whole size above the first point, up to the second.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from itertools import accumulate, pairwise
from pathlib import Path

from knotless.base.errors import KnotlessError
from knotless.base.files import read_text
from knotless.base.model_limits import MAX_BYTES
from knotless.base.printable import shortened
from knotless.traffic.theory import packet_wire_bytes

_Function = Callable[[int], int]

PUBLISHED = ("websearch", "hadoop")
"""Names of the distributions that are in this package; their files name their source."""
HEADER = "bytes,probability"
MAX_POINTS = 100_000
MAX_FILE_BYTES = 8 << 20


class SizesError(KnotlessError):
    """A distribution of sizes that does not exist, or makes no sense."""


@dataclass(frozen=True)
class SizeDistribution:
    """A cumulative distribution of sizes; ``points`` are (bytes, probability), in order."""

    name: str
    points: tuple[tuple[int, float], ...]

    @property
    def mean_bytes(self) -> float:
        """The mean size in bytes."""
        return self._mean(lambda size: size * (size + 1) // 2, lambda size: size)

    def mean_line_bytes(self, packet_bytes: int) -> float:
        """Return the mean of the bytes that a flow takes on an untagged line, gaps included.

        Flows are divided into packets of at most ``packet_bytes``.
        """
        packets = [0, *(packet_wire_bytes(size, tagged=False) for size in range(1, packet_bytes))]
        full = packet_wire_bytes(packet_bytes, tagged=False)
        sums = list(accumulate(packets))

        def total(size: int) -> int:
            """Return the sum over all sizes up to this one."""
            whole, rest = divmod(size, packet_bytes)
            of_blocks = packet_bytes * full * whole * (whole - 1) // 2 + whole * sums[-1]
            return of_blocks + (rest + 1) * whole * full + sums[rest]

        def one(size: int) -> int:
            whole, rest = divmod(size, packet_bytes)
            return whole * full + packets[rest]

        return self._mean(total, one)

    def _mean(self, total: _Function, one: _Function) -> float:
        """Return the mean of ``one(size)``; ``total(size)`` is its sum over sizes from 1."""
        first, share = self.points[0]
        mean = share * one(max(1, first))
        for (below, lower), (above, upper) in pairwise(self.points):
            if above > below:
                mean += (upper - lower) * (total(above) - total(below)) / (above - below)
            else:
                mean += (upper - lower) * one(max(1, above))
        return mean


def sizes_named(text: str) -> SizeDistribution:
    """Return the published distribution of this name, or that of a CSV file.

    Raises
    ------
    SizesError
        There is no such distribution or file, or a line of it makes no sense.

    """
    if (name := text.lower()) in PUBLISHED:
        return parse(name, files(__package__).joinpath(f"{name}.csv").read_text(encoding="utf-8"))
    if not text.endswith(".csv"):
        names = ", ".join(PUBLISHED)
        raise SizesError(f"sizes {shortened(text)!r}: must be {names} or the name of a .csv file")
    return parse(text, read_text(Path(text), SizesError, MAX_FILE_BYTES))


def parse(name: str, text: str) -> SizeDistribution:
    """Return the distribution that a file describes; raises SizesError, with the line."""
    points: list[tuple[int, float]] = []
    header = False
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        where = f"{shortened(name)}: line {number}"
        if not header:
            if line.replace(" ", "") != HEADER:
                raise SizesError(f"{where} must be {HEADER}")
            header = True
            continue
        point = _point(line, where)
        if points and (point[0] < points[-1][0] or point[1] < points[-1][1]):
            raise SizesError(f"{where}: bytes and probabilities must not decrease")
        points.append(point)
        if len(points) > MAX_POINTS:
            raise SizesError(f"{where}: more than {MAX_POINTS} points")
    if not points or points[-1][1] != 1 or not points[-1][0]:
        raise SizesError(f"{shortened(name)}: the last line must have a probability of 1")
    return SizeDistribution(name, tuple(points))


def _point(line: str, where: str) -> tuple[int, float]:
    size, comma, probability = (part.strip() for part in line.partition(","))
    if not (comma and size.isascii() and size.isdigit() and len(size) < 20):
        raise SizesError(f"{where}: {shortened(line)!r} is not {HEADER}")
    if int(size) > MAX_BYTES:
        raise SizesError(f"{where}: {size} bytes are more than {MAX_BYTES}")
    try:
        share = float(probability)
    except ValueError:
        share = math.nan
    if not 0 <= share <= 1:
        raise SizesError(f"{where}: {shortened(probability)!r} is not a probability of 0 to 1")
    return int(size), share
