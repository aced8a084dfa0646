"""The stages of a push, as in table 3 of Yamamoto et al. (RHiNET-1), and their start times."""

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
"""The client's first four, the server's four, the client's last three."""
_BEFORE = 4
_SERVED = 4


def stage_times_us(client: Sequence[Sequence[int]], server: Sequence[Sequence[int]]) -> list[float]:
    """Return the median start of each stage since the call, over pushes recorded by both sides.

    Times are nanoseconds of one clock. A push is matched with the answer between its frame's
    departure and its answer's arrival. Raises ValueError if there is no match.
    """
    pushes = []
    answers = iter(server)
    answer = next(answers, None)
    for own in client:
        while answer is not None and answer[0] < own[_BEFORE - 2]:
            answer = next(answers, None)
        if answer is not None and answer[_SERVED - 2] <= own[_BEFORE]:
            stamps = [*own[:_BEFORE], *answer, *own[_BEFORE:]]
            pushes.append([(stamp - own[0]) / 1000 for stamp in stamps])
    if not pushes:
        raise ValueError("no push was recorded by both sides together with its answer")
    return [statistics.median(column) for column in zip(*pushes, strict=True)]
