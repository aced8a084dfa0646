"""Triangular systems of LU, solved in a wave over a grid of processes.

Each point needs its neighbours before it along z, y and x. In every plane of z a process waits
for the edges of two other processes and gives its own to two more: small messages, many.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from experiments.workloads.programs.communicator import Communicator

Values = NDArray[np.float64]
LOWER, UPPER = -1, 1
"""On which side of a point its neighbours lie: the wave begins there."""
Y, X = 1, 2


class Wavefront:
    """Solves on ``rows`` x ``columns`` points of y and x, and all of z.

    ``neighbour(axis, step)`` is the process next to this one, None where there is none. Points
    of a plane are computed diagonal by diagonal, each at once.
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
        # A plane is kept with one row and one column before its own.
        width = columns + 1
        index = ((y + 1) * width + x + 1)[self._order]
        before = np.stack((index - width, index - 1), axis=1)
        cuts = [slice(a, b) for a, b in zip((0, *ends[:-1]), ends, strict=True)]
        self._diagonals = [(cut, index[cut], before[cut]) for cut in cuts]

    def solve(self, v: Values, near: Values, side: int) -> None:
        """Take from each point of ``v`` in place what its neighbours on a side give it.

        ``v`` is (z, y, x, parts); ``near`` (z, y, x, parts, 3 parts) has the blocks by which the
        solution at the neighbours along z, y and x is multiplied.
        """
        rows, columns = self._shape
        parts = v.shape[-1]
        along_z, others = near[..., :parts], near[..., parts:]
        if side == UPPER:
            v, along_z, others = (each[::-1, ::-1, ::-1] for each in (v, along_z, others))
        others = others.reshape(len(v), rows * columns, parts, -1)[:, self._order]
        plane = np.zeros((rows + 1, columns + 1, parts))
        inner, points = plane[1:, 1:], plane.reshape(-1, parts)
        edges = (
            (Y, plane[0, 1:], plane[-1, 1:], np.empty((columns, parts))),
            (X, plane[1:, 0], plane[1:, -1], np.empty((rows, parts))),
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
