"""Which packets wait under PFC, given what each priority group pauses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knotless.routing.flow_control import Edges
from knotless.routing.graphs.channels import PRIORITIES


def lossless_waits(
    pausing: NDArray[np.bool_], dependencies: Edges
) -> tuple[NDArray[np.int64], Edges]:
    """Return the nodes of dependencies under PFC, as :meth:`TableFabric.waits` does."""
    holds, holds_vc = dependencies[:, :2].T
    group = holds_vc % PRIORITIES
    lossless = np.any(pausing[holds, group], axis=1)
    rows, requests, requests_group = requested(pausing, dependencies)
    rows, requests, requests_group = (
        column[lossless[rows]] for column in (rows, requests, requests_group)
    )
    return rows, np.stack([holds[rows], group[rows], requests, requests_group], axis=1)


def requested(
    pausing: NDArray[np.bool_], dependencies: Edges
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of dependencies that wait, and the channel and priority group of each."""
    requests, vc = dependencies[:, 2:4].T
    rows, groups = np.nonzero(pausing[requests, :, vc // PRIORITIES])
    return rows, requests[rows], groups
