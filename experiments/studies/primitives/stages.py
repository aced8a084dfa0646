"""The stages of a push, as in table 3 of Yamamoto et al. (RHiNET-1): when each begins."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

STAGES = (
    "push is called",
    "request posted",
    "frame built",
    "frame given to the kernel",
    "frame taken from the kernel at the other process",
    "area written, answer posted",
    "answer built",
    "answer given to the kernel",
    "answer taken from the kernel",
    "operation complete",
    "push returns",
)
"""The asker's first four, the server's four, the asker's last three."""
_BEFORE = 4
_SERVED = 4


def stage_times_us(asker: Sequence[Sequence[int]], server: Sequence[Sequence[int]]) -> list[float]:
    """Return the median time of each stage since the call, over pushes that both have noted.

    Times are nanoseconds of one clock. A push is matched with the answer that lies between its
    frame's departure and its answer's arrival. Raises ValueError when none is.
    """
    found = []
    answers = iter(server)
    answer = next(answers, None)
    for own in asker:
        while answer is not None and answer[0] < own[_BEFORE - 2]:
            answer = next(answers, None)
        if answer is not None and answer[_SERVED - 2] <= own[_BEFORE]:
            stamps = [*own[:_BEFORE], *answer, *own[_BEFORE:]]
            found.append([(stamp - own[0]) / 1000 for stamp in stamps])
    if not found:
        raise ValueError("no push and its answer were noted by both")
    return [statistics.median(column) for column in zip(*found, strict=True)]
