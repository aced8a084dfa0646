"""LU: flow in a cube by successive over-relaxation; wavefronts of many small messages.

As in NPB, the inner points of the cube are split along x and y, and each process has all of z.
A step solves a lower and then an upper triangular system (section 4.3 of the report). Then each
process sends the two outermost layers of its points to its neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knotless_experiments.messages.nas_kernels import navier_stokes as flow
from knotless_experiments.messages.nas_kernels.kernel import Kernel, Verification
from knotless_experiments.messages.nas_kernels.navier_stokes import Jacobian, State
from knotless_experiments.messages.nas_kernels.wavefront import LOWER, UPPER, Wavefront, X, Y
from knotless_experiments.messages.programs.communicator import Array, Communicator

RELAXATION = 1.2
DIFFUSION = (1.0, 0.75, 0.75)
"""Coefficients of the second differences added to the equations, along z, y and x."""
DAMPING = 0.25
"""Coefficient of the fourth differences subtracted from the equations."""
HALO = 2
"""Layers of neighbours' or boundary points that a process keeps around its own points."""
Z = 0


@dataclass(frozen=True)
class Size:
    """A class: points along each edge, number and length of steps, and the expected results.

    ``residuals`` and ``errors`` are norms over all points, one for each component of the state;
    ``surface`` is a surface integral of the pressure.
    """

    points: int
    steps: int
    step: float
    residuals: tuple[float, ...]
    errors: tuple[float, ...]
    surface: float


SIZES = {
    "S": Size(
        *(12, 50, 0.5),
        residuals=(
            *(1.6196343210976702e-02, 2.1976745164821318e-03, 1.5179927653399185e-03),
            *(1.5029584435994323e-03, 3.4264073155896461e-02),
        ),
        errors=(
            *(6.4223319957960924e-04, 8.4144342047347926e-05, 5.8588269616485186e-05),
            *(5.8474222595157350e-05, 1.3103347914111294e-03),
        ),
        surface=7.8418928865937083,
    ),
    "W": Size(
        *(33, 300, 1.5e-3),
        residuals=(
            *(0.1236511638192e02, 0.1317228477799e01, 0.2550120713095e01),
            *(0.2326187750252e01, 0.2826799444189e02),
        ),
        errors=(
            *(0.4867877144216e00, 0.5064652880982e-01, 0.9281818101960e-01),
            *(0.8570126542733e-01, 0.1084277417792e01),
        ),
        surface=0.1161399311023e02,
    ),
}


def own(field: Array, axis: int = Z, offset: int = 0) -> Array:
    """Return a process's own points of an array with a halo, or those shifted by ``offset``."""
    where = [slice(HALO, -HALO)] * 3
    where[axis] = slice(HALO + offset, field.shape[axis] - HALO + offset)
    return field[tuple(where)]


class LowerUpper:
    """One process's points: a rectangle of x and y, and all of z."""

    def __init__(self, communicator: Communicator, problem_class: str) -> None:
        self._communicator = communicator
        self._size = size = SIZES[problem_class]
        log2 = communicator.size.bit_length() - 1
        self._grid = (1, 1 << log2 // 2, 1 << (log2 + 1) // 2)
        self._place = (0, *divmod(communicator.rank, self._grid[X]))
        inner, spacing = size.points - 2, 1.0 / (size.points - 1)
        ends = [
            share(inner, parts, place) for parts, place in zip(self._grid, self._place, strict=True)
        ]
        # The index of each own and halo point along each axis; 0 is on the boundary.
        self._numbers = [np.arange(a + 1 - HALO, b + 1 + HALO) for a, b in ends]
        rows, columns = (b - a for a, b in ends[Y:])
        self._wavefront = Wavefront(communicator, self._neighbour, rows, columns)
        self._first, self._second = 0.5 / spacing, 1.0 / spacing**2
        self._spacing = spacing
        exact = flow.exact(*self._places())
        self._forcing = self._right_side(exact)
        self._exact = own(exact)
        self._u = np.where(self._inside(), flow.initial(*self._places()), exact)
        self._residual = np.zeros_like(self._exact)

    def _places(self) -> list[State]:
        """Return the coordinates z, y and x of all points, as arrays that broadcast together."""
        numbers = np.meshgrid(*self._numbers, indexing="ij", sparse=True)
        return [self._spacing * each for each in numbers]

    def _inside(self) -> NDArray[np.bool_]:
        """Return which points are inside the cube, with a last axis for the state's components."""
        last = self._size.points - 1
        inside = [(numbers > 0) & (numbers < last) for numbers in self._numbers]
        z, y, x = np.meshgrid(*inside, indexing="ij", sparse=True)
        return np.asarray(z & y & x)[..., np.newaxis]

    def _neighbour(self, axis: int, step: int) -> int | None:
        """Return the process next to this one, or None at the boundary."""
        place = list(self._place)
        place[axis] += step
        if not 0 <= place[axis] < self._grid[axis]:
            return None
        return place[Y] * self._grid[X] + place[X]

    def _right_side(self, u: State) -> State:
        """Return the right side of the equations (without the forcing) at the own points."""
        total = np.zeros_like(own(u))
        for axis in (Z, Y, X):
            along = 3 - axis
            carried = flow.flux(u, along)
            total -= self._first * (own(carried, axis, 1) - own(carried, axis, -1))
            spread = flow.viscous(u, along) + DIFFUSION[axis] * u
            bent = own(spread, axis, 1) - 2.0 * own(spread) + own(spread, axis, -1)
            total += self._second * bent
            w = self._mirrored(u, axis)
            outer, near = own(w, axis, -2) + own(w, axis, 2), own(w, axis, -1) + own(w, axis, 1)
            total -= DAMPING * (outer - 4.0 * near + 6.0 * own(w))
        return total

    def _mirrored(self, u: State, axis: int) -> State:
        """Return u with an odd extension beyond the boundaries, and 0 on them.

        Then the report's fourth differences at and next to the boundary (5, -4, 1 and
        -4, 6, -4, 1) have the same form as everywhere else.
        """
        w = np.moveaxis(u.copy(), axis, 0)
        if self._neighbour(axis, -1) is None:
            w[HALO - 1], w[HALO - 2] = 0.0, -w[HALO]
        if self._neighbour(axis, 1) is None:
            w[-HALO], w[1 - HALO] = 0.0, -w[-HALO - 1]
        return np.moveaxis(w, 0, axis)

    def _fill_halo(self) -> None:
        """Fill the halo from the neighbours along y and x."""
        for axis in (Y, X):
            u = np.moveaxis(self._u, axis, 0)
            for step, sent, filled in (
                (1, slice(-2 * HALO, -HALO), slice(0, HALO)),
                (-1, slice(HALO, 2 * HALO), slice(-HALO, None)),
            ):
                into = np.empty_like(u[filled], order="C")
                if self._shift(axis, step, np.ascontiguousarray(u[sent]), into):
                    u[filled] = into

    def _shift(self, axis: int, step: int, data: Array, into: Array) -> bool:
        """Send to the next process, receive from the previous; return whether it exists."""
        to, source = self._neighbour(axis, step), self._neighbour(axis, -step)
        if to is not None and source is not None:
            self._communicator.exchange(to, data, source, into)
        elif to is not None:
            self._communicator.send(to, data)
        elif source is not None:
            self._communicator.receive(source, into)
        return source is not None

    def _couplings(self) -> tuple[Jacobian, dict[int, Jacobian]]:
        """Return the diagonal block of each point, and the blocks of its neighbours by triangle.

        The blocks of the neighbours along z, y and x are side by side.
        """
        centre = np.zeros((*self._exact.shape, flow.COMPONENTS)) + np.eye(flow.COMPONENTS)
        sides: dict[int, list[Jacobian]] = {LOWER: [], UPPER: []}
        for axis in (Z, Y, X):
            along = 3 - axis
            carried = self._first * flow.flux_jacobian(self._u, along)
            spread = flow.viscous_jacobian(self._u, along) + DIFFUSION[axis] * np.eye(
                flow.COMPONENTS
            )
            spread *= self._second
            centre += 2.0 * self._size.step * own(spread)
            for side, blocks in sides.items():
                near = side * own(carried, axis, side) - own(spread, axis, side)
                blocks.append(self._size.step * near)
        return centre, {side: np.concatenate(blocks, -1) for side, blocks in sides.items()}

    def _advance(self) -> None:
        """Do one step: forward through the lower triangle, backward through the upper one."""
        centre, near = self._couplings()
        v = solve(centre, self._size.step * self._residual[..., np.newaxis])[..., 0]
        for side in (LOWER, UPPER):
            self._wavefront.solve(v, RELAXATION * solve(centre, near[side]), side)
        own(self._u)[...] += v / (RELAXATION * (2.0 - RELAXATION))

    def _refresh(self) -> None:
        self._fill_halo()
        self._residual = self._right_side(self._u) - self._forcing

    def run(self) -> None:
        """Do all steps, then compute the norms of the residual."""
        self._refresh()
        for _ in range(self._size.steps):
            self._advance()
            self._refresh()
        self.residuals = self._norms(self._residual)

    def _norms(self, values: State) -> list[float]:
        squares = self._communicator.allreduce((values**2).sum((Z, Y, X)))
        norms: list[float] = np.sqrt(squares / (self._size.points - 2) ** 3).tolist()
        return norms

    def _surface(self) -> float:
        """Return the integral of the pressure over the six faces of a box inside the cube."""
        last = self._size.points - 2
        weights, faces = [], []
        for numbers, ends in zip(self._numbers, ((2, last), (1, last - 1), (1, last)), strict=True):
            mine = numbers[HALO:-HALO]
            at_end = (mine == ends[0]) | (mine == ends[1])
            within = (ends[0] <= mine) & (mine <= ends[1])
            weights.append(self._spacing * (within - 0.5 * at_end))
            faces.append(1.0 * at_end)
        push = flow.pressure(own(self._u))
        total = sum(
            np.einsum(
                "zyx,z,y,x->", push, *(faces[a] if a == axis else weights[a] for a in range(3))
            )
            for axis in range(3)
        )
        return float(self._communicator.allreduce(np.array([total]))[0])

    def verification(self) -> Verification:
        """Compare norms of residual and error, and the surface integral, with tolerance 1e-8."""
        values = [*self.residuals, *self._norms(self._exact - own(self._u)), self._surface()]
        size = self._size
        return Verification(values, [*size.residuals, *size.errors, size.surface], 1e-8)


def solve(blocks: Jacobian, right: Array) -> Array:
    """Return the solutions x of block x = right, for each block."""
    return np.linalg.solve(blocks, right)


def share(points: int, parts: int, part: int) -> tuple[int, int]:
    """Return the first and the end (exclusive) point of a part; earlier parts may have one more."""
    least, more = divmod(points, parts)
    first = part * least + min(part, more)
    return first, first + least + (part < more)


KERNEL = Kernel("lu", "lower-upper relaxation", {"S": 16, "W": 64}, LowerUpper)
