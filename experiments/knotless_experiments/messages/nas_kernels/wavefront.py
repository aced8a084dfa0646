"""Triangular systems of LU, solved by wavefronts over a grid of processes.

Each point depends on its preceding neighbours along z, y and x. In every z plane a process
receives the edges of two processes and sends its own to two others: many small messages.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from knotless_experiments.messages.programs.communicator import Communicator

Values = NDArray[np.float64]
LOWER, UPPER = -1, 1
"""The side of a point on which its preceding neighbours are; the wavefront starts there."""
Y, X = 1, 2


class Wavefront:
    """Solver on ``rows`` x ``columns`` points of y and x, and all of z.

    ``neighbour(axis, step)`` returns the process next to this one, or None if there is none. The
    points of a plane are computed diagonal by diagonal, those of one diagonal together.
    """

    def __init__(
        self,
        communicator: Communicator,
        neighbour: Callable[[int, int], int | None],
        rows: int,
        columns: int,
    ) -> None:
        self._communicator = communicator
        self._neighbour = neighbour
        self._shape = rows, columns
        y, x = np.divmod(np.arange(rows * columns), columns)
        self._order = np.argsort(y + x, kind="stable")
        ends = np.cumsum(np.bincount(y + x))
        # A plane has one more row and column, before its own, for the neighbours' points.
        width = columns + 1
        index = ((y + 1) * width + x + 1)[self._order]
        before = np.stack((index - width, index - 1), axis=1)
        cuts = [slice(a, b) for a, b in zip((0, *ends[:-1]), ends, strict=True)]
        self._diagonals = [(cut, index[cut], before[cut]) for cut in cuts]

    def solve(self, v: Values, near: Values, side: int) -> None:
        """Solve in place: subtract from each point the terms of its neighbours on ``side``.

        ``v`` is (z, y, x, components); ``near`` (z, y, x, components, 3 components) holds the
        blocks that multiply the solution at the neighbours along z, y and x.
        """
        rows, columns = self._shape
        components = v.shape[-1]
        along_z, others = near[..., :components], near[..., components:]
        if side == UPPER:
            v, along_z, others = (each[::-1, ::-1, ::-1] for each in (v, along_z, others))
        others = others.reshape(len(v), rows * columns, components, -1)[:, self._order]
        plane = np.zeros((rows + 1, columns + 1, components))
        inner, points = plane[1:, 1:], plane.reshape(-1, components)
        edges = (
            (Y, plane[0, 1:], plane[-1, 1:], np.empty((columns, components))),
            (X, plane[1:, 0], plane[1:, -1], np.empty((rows, components))),
        )
        for k in range(len(v)):
            inner[...] = v[k] - (along_z[k] @ inner[..., np.newaxis])[..., 0]
            for axis, first, _, into in edges:
                source = self._neighbour(axis, side)
                if source is not None:
                    self._communicator.receive(source, into)
                    first[...] = into
            for cut, index, before in self._diagonals:
                both = points[before].reshape(len(index), -1, 1)
                points[index] -= (others[k, cut] @ both)[..., 0]
            v[k] = inner
            for axis, _, last, _ in edges:
                to = self._neighbour(axis, -side)
                if to is not None:
                    self._communicator.send(to, np.ascontiguousarray(last))
