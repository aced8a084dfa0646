"""MG: four multigrid V-cycles for a Poisson equation; exchanges with near and far neighbours.

The grid is periodic and split in three dimensions. Each process keeps its block and a halo of one
layer of its neighbours' points. The coarsest grids, where a block would be thinner than two
points, are gathered, and every process computes all of them. (In NPB, processes become idle
instead; algorithm and results are the same.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knotless_experiments.messages.nas_kernels.kernel import Kernel, Verification
from knotless_experiments.messages.nas_kernels.randoms import SEED, uniform
from knotless_experiments.messages.programs.communicator import Communicator

Block = NDArray[np.float64]
Weights = tuple[float, float, float, float]
"""Weights of a point, and of its 6 face, 12 edge and 8 corner neighbours."""

RESIDUAL: Weights = (-8 / 3, 0.0, 1 / 6, 1 / 12)
SMOOTHER: Weights = (-3 / 8, 1 / 32, -1 / 64, 0.0)
RESTRICTION: Weights = (1 / 2, 1 / 4, 1 / 8, 1 / 16)
CYCLES = 4
CHARGES = 10
LEVELS = {"S": 5, "W": 7}
EXPECTED = {"S": 0.5307707005734e-04, "W": 0.6467329375339e-05}
"""The L2 norm of the residual."""
Index = tuple[slice | int, ...]
INNER = (slice(1, -1),) * 3


@dataclass(frozen=True)
class Grid:
    """The split of the 2^level points along each axis; ``place`` is this process's block."""

    level: int
    split: tuple[int, int, int]
    place: tuple[int, int, int]

    @property
    def points(self) -> int:
        """Points along each axis."""
        return 1 << self.level

    @property
    def shape(self) -> tuple[int, int, int]:
        """Points of the block."""
        z, y, x = (self.points // parts for parts in self.split)
        return z, y, x

    def empty(self) -> Block:
        """Return zeros, including the halo."""
        return np.zeros([points + 2 for points in self.shape])


def stencil(u: Block, weights: Weights) -> Block:
    """Return the weighted sum of the 27 points around each inner point."""
    centre, low, high = slice(1, -1), slice(None, -2), slice(2, None)
    cross = u[low, centre] + u[high, centre] + u[centre, low] + u[centre, high]
    corner = u[low, low] + u[low, high] + u[high, low] + u[high, high]
    line = u[centre, centre]
    x, left, right = (..., centre), (..., low), (..., high)
    total = weights[0] * line[x] + weights[1] * (line[left] + line[right] + cross[x])
    total += weights[2] * (cross[left] + cross[right] + corner[x])
    return total + weights[3] * (corner[left] + corner[right])


def refine(z: Block) -> Block:
    """Interpolate to twice the points, halo included: new points are means of neighbours."""
    for axis in range(3):
        before: Index = (slice(None),) * axis
        low, high = z[(*before, slice(None, -1))], z[(*before, slice(1, None))]
        shape = list(low.shape)
        shape[axis] *= 2
        z = np.stack((low, 0.5 * (low + high)), axis + 1).reshape(shape)
    return z


class Multigrid:
    """One process's blocks on all levels."""

    def __init__(self, communicator: Communicator, problem_class: str) -> None:
        self._communicator = communicator
        self._class = problem_class
        self._split = split(communicator.size)
        self._place = place_of(communicator.rank, self._split)
        self._top = LEVELS[problem_class]
        self._grids = {level: self._grid(level) for level in range(1, self._top + 1)}
        self._v = self._charges()
        self.norm = 0.0

    def _grid(self, level: int) -> Grid:
        if all((1 << level) // parts >= 2 for parts in self._split):
            return Grid(level, self._split, self._place)
        return Grid(level, (1, 1, 1), (0, 0, 0))

    def _charges(self) -> Block:
        """Return -1 at the ten smallest random numbers, +1 at the ten largest, otherwise 0."""
        grid = self._grids[self._top]
        numbers = uniform(SEED, grid.points**3)
        order = np.argpartition(numbers, (CHARGES, -CHARGES))
        whole = np.zeros(grid.points**3)
        whole[order[:CHARGES]], whole[order[-CHARGES:]] = -1.0, 1.0
        block = grid.empty()
        block[INNER] = self._part(whole.reshape((grid.points,) * 3), grid)
        return block

    @staticmethod
    def _part(whole: Block, grid: Grid) -> Block:
        ends = zip(grid.place, grid.shape, strict=True)
        return whole[tuple(slice(i * points, (i + 1) * points) for i, points in ends)]

    def _fill_halo(self, u: Block, grid: Grid) -> Block:
        """Fill the halo from the neighbours, axis by axis."""
        for axis, parts in enumerate(grid.split):
            before: Index = (slice(None),) * axis
            if parts == 1:
                u[(*before, 0)], u[(*before, -1)] = u[(*before, -2)], u[(*before, 1)]
                continue
            down, up = (rank_of(moved(grid, axis, step), grid.split) for step in (-1, 1))
            for to, send, source, fill in ((down, 1, up, -1), (up, -2, down, 0)):
                into = np.empty(u[(*before, fill)].shape)
                self._communicator.exchange(
                    to, np.ascontiguousarray(u[(*before, send)]), source, into
                )
                u[(*before, fill)] = into
        return u

    def _residual(self, u: Block, v: Block, grid: Grid) -> Block:
        r = grid.empty()
        r[INNER] = v[INNER] - stencil(u, RESIDUAL)
        return self._fill_halo(r, grid)

    def _smooth(self, u: Block, r: Block, grid: Grid) -> None:
        u[INNER] += stencil(r, SMOOTHER)
        self._fill_halo(u, grid)

    def _restrict(self, r: Block, grid: Grid, coarse: Grid) -> Block:
        """Return the weighted sums at every second point."""
        own = stencil(r, RESTRICTION)[1::2, 1::2, 1::2]
        if coarse.split != grid.split:
            own = self._gather(own, grid, coarse)
        s = coarse.empty()
        s[INNER] = own
        return self._fill_halo(s, coarse)

    def _gather(self, own: Block, grid: Grid, coarse: Grid) -> Block:
        whole = np.empty(coarse.shape)
        for rank, block in enumerate(self._communicator.allgather(own)):
            there = Grid(coarse.level, grid.split, place_of(rank, grid.split))
            self._part(whole, there)[...] = block
        return whole

    def _interpolate(self, z: Block, coarse: Grid, grid: Grid) -> Block:
        """Return the coarse correction on this grid's block, including the halo."""
        if coarse.split != grid.split:
            ends = zip(grid.place, grid.shape, strict=True)
            # The part for this block and its halo, from the whole coarse grid and its halo.
            z = z[tuple(slice(i * n // 2, (i + 1) * n // 2 + 2) for i, n in ends)]
        return refine(z)

    def _cycle(self, u: Block, r: Block) -> Block:
        """Do one V-cycle on u for the residual r, and return the new residual."""
        residuals = {self._top: r}
        for level in range(self._top, 1, -1):
            grid, coarse = self._grids[level], self._grids[level - 1]
            residuals[level - 1] = self._restrict(residuals[level], grid, coarse)
        z = self._grids[1].empty()
        self._smooth(z, residuals[1], self._grids[1])
        for level in range(2, self._top):
            grid = self._grids[level]
            finer = self._interpolate(z, self._grids[level - 1], grid)
            self._smooth(finer, self._residual(finer, residuals[level], grid), grid)
            z = finer
        grid = self._grids[self._top]
        u += self._interpolate(z, self._grids[self._top - 1], grid)
        self._smooth(u, self._residual(u, self._v, grid), grid)
        return self._residual(u, self._v, grid)

    def run(self) -> None:
        """Do all cycles, starting from zero."""
        grid = self._grids[self._top]
        u = grid.empty()
        r = self._residual(u, self._v, grid)
        for _ in range(CYCLES):
            r = self._cycle(u, r)
        squares = self._communicator.allreduce(np.array([(r[INNER] ** 2).sum()]))
        self.norm = float((squares[0] / grid.points**3) ** 0.5)

    def verification(self) -> Verification:
        """Compare the norm of the residual, with tolerance 1e-8."""
        return Verification([self.norm], [EXPECTED[self._class]], 1e-8)


def split(processes: int) -> tuple[int, int, int]:
    """Return the parts along z, y and x: axes are halved in turn, x first, as in NPB."""
    parts = [1, 1, 1]
    for bit in range(processes.bit_length() - 1):
        parts[2 - bit % 3] *= 2
    return parts[0], parts[1], parts[2]


def place_of(rank: int, parts: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return the block of a process; x varies fastest."""
    rest, x = divmod(rank, parts[2])
    z, y = divmod(rest, parts[1])
    return z, y, x


def rank_of(place: tuple[int, int, int], parts: tuple[int, int, int]) -> int:
    """Return the process of a block."""
    return (place[0] * parts[1] + place[1]) * parts[2] + place[2]


def moved(grid: Grid, axis: int, step: int) -> tuple[int, int, int]:
    """Return the block ``step`` further along an axis, with wrap-around."""
    place = list(grid.place)
    place[axis] = (place[axis] + step) % grid.split[axis]
    return place[0], place[1], place[2]


KERNEL = Kernel("mg", "multigrid", {"S": 64, "W": 512}, Multigrid)
