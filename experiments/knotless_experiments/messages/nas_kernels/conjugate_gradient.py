"""CG: the smallest eigenvalue of a sparse matrix by inverse iteration with conjugate gradients.

Processes form a grid of rows and columns, as in NPB 2. A matrix-vector product is summed along
each row of the grid; then each process exchanges its part with the transposed process.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knotless_experiments.messages.nas_kernels.kernel import Kernel, Verification
from knotless_experiments.messages.nas_kernels.randoms import SEED, uniform
from knotless_experiments.messages.programs.communicator import Communicator, distances

CONDITION = 0.1
OUTER_ITERATIONS = 15
INNER_ITERATIONS = 25
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Size:
    """A class: order of the matrix, non-zeros of each random vector, shift, expected result."""

    order: int
    nonzeros: int
    shift: float
    zeta: float


SIZES = {
    "S": Size(1400, 7, 10.0, 8.5971775078648),
    "W": Size(7000, 8, 12.0, 10.362595087124),
}


def sparse_vectors(size: Size) -> list[tuple[NDArray[np.int64], Vector]]:
    """Return (indices, values) of each row's random sparse vector; entry i of row i is 0.5."""
    power = 1 << (size.order - 1).bit_length()
    # The benchmark draws one number before it makes the matrix. At most a third of the draws are
    # rejected, so three draws (six numbers) for each entry are more than enough.
    numbers = uniform(SEED, 1 + 6 * size.order * size.nonzeros)[1:].reshape(-1, 2)
    draws = zip((power * numbers[:, 1]).astype(np.int64).tolist(), numbers[:, 0], strict=True)
    rows = []
    for row in range(size.order):
        entries: dict[int, float] = {}
        while len(entries) < size.nonzeros:
            index, value = next(draws)
            if index < size.order and index not in entries:
                entries[index] = value
        entries[row] = 0.5
        rows.append((np.array(list(entries)), np.array(list(entries.values()))))
    return rows


def matrix(size: Size) -> tuple[NDArray[np.int64], NDArray[np.int64], Vector]:
    """Return rows, columns and values of the matrix, sorted by row and column.

    It is the sum of w_i x_i x_i^T plus (condition - shift) times the identity. The weights w_i
    decrease geometrically from 1 to the condition.
    """
    ratio = CONDITION ** (1.0 / size.order)
    keys, values, weight = [], [], 1.0
    for indices, x in sparse_vectors(size):
        keys.append((indices[:, np.newaxis] * size.order + indices).ravel())
        values.append((weight * x[:, np.newaxis] * x).ravel())
        weight *= ratio
    keys.append(np.arange(size.order) * (size.order + 1))
    values.append(np.full(size.order, CONDITION - size.shift))
    unique, where = np.unique(np.concatenate(keys), return_inverse=True)
    total: Vector = np.bincount(where, weights=np.concatenate(values)).astype(np.float64)
    return unique // size.order, unique % size.order, total


class ConjugateGradient:
    """One process's block of the matrix, at row ``r`` and column ``c`` of the grid."""

    def __init__(self, communicator: Communicator, problem_class: str) -> None:
        self._communicator = communicator
        self._size = size = SIZES[problem_class]
        log2 = communicator.size.bit_length() - 1
        self._columns = 1 << (log2 + 1) // 2
        self._grid_rows = 1 << log2 // 2
        self._r, self._c = divmod(communicator.rank, self._columns)
        # Short vectors are padded with zeros, which change no product.
        self._width = -(-size.order // self._columns)
        self._height = self._width * self._columns // self._grid_rows
        rows, columns, values = matrix(size)
        top, left = self._r * self._height, self._c * self._width
        mine = (rows >= top) & (rows < top + self._height)
        mine &= (columns >= left) & (columns < left + self._width)
        self._row, self._column = rows[mine] - top, columns[mine] - left
        self._value = values[mine]
        self._left = left
        self.zeta = 0.0

    def _row_sum(self, values: Vector) -> Vector:
        """Return the sum over the row of the grid, by recursive doubling."""
        total = values.copy()
        theirs = np.empty_like(total)
        for distance in distances(self._columns):
            partner = self._r * self._columns + (self._c ^ distance)
            self._communicator.exchange(partner, total, partner, theirs)
            total = total + theirs
        return total

    def _dot(self, a: Vector, b: Vector) -> float:
        return float(self._row_sum(np.array([a @ b]))[0])

    def _product(self, vector: Vector) -> Vector:
        """Return the matrix times ``vector``; both are the part of this column of the grid."""
        weights = self._value * vector[self._column]
        part: Vector = np.bincount(self._row, weights, self._height).astype(np.float64)
        total = self._row_sum(part)
        # Column c's part is computed in grid row c // pieces. One process there needs a part of
        # ours.
        pieces = self._columns // self._grid_rows
        row, piece = divmod(self._c, pieces)
        partner = row * self._columns + self._r * pieces + piece
        start = piece * self._width
        if partner == self._communicator.rank:
            return total[start : start + self._width]
        mine = np.empty(self._width)
        self._communicator.exchange(partner, total[start : start + self._width], partner, mine)
        return mine

    def _solve(self, x: Vector) -> Vector:
        """Return an approximate solution z of A z = x, after INNER_ITERATIONS steps."""
        z, r = np.zeros_like(x), x.copy()
        p, rho = r.copy(), self._dot(r, r)
        for _ in range(INNER_ITERATIONS):
            q = self._product(p)
            alpha = rho / self._dot(p, q)
            z += alpha * p
            r -= alpha * q
            before, rho = rho, self._dot(r, r)
            p = r + rho / before * p
        # NPB computes the residual norm with one more product. The result does not need it, but
        # its communication is part of the benchmark.
        rest = x - self._product(z)
        self.residual = self._dot(rest, rest) ** 0.5
        return z

    def run(self) -> None:
        """Do all iterations."""
        x = np.zeros(self._width)
        x[: max(0, min(self._width, self._size.order - self._left))] = 1.0
        for _ in range(OUTER_ITERATIONS):
            z = self._solve(x)
            norms = self._row_sum(np.array([x @ z, z @ z]))
            self.zeta = self._size.shift + 1.0 / float(norms[0])
            x = z / norms[1] ** 0.5

    def verification(self) -> Verification:
        """Compare the eigenvalue, with tolerance 1e-10."""
        return Verification([self.zeta], [self._size.zeta], 1e-10)


KERNEL = Kernel("cg", "conjugate gradient", {"S": 256, "W": 1024}, ConjugateGradient)
