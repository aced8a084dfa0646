"""Problems of emulated links, one line each, as commands, page and metrics tell them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from knotless.base import forwarding_loops
from knotless.base.broadcasts import problems as broadcast_problems
from knotless.base.pause_storms import problems as storm_problems


def deadlock_text(cycle: Sequence[str]) -> str:
    """Return which channel waits for which, around the ``cycle`` of a deadlock."""
    return " waits for ".join([*cycle, *cycle[:1]])


def link_problems(status: Mapping[str, Any]) -> list[str]:
    """Return the problems in the emulator's status, a deadlock first.

    ``status`` is that of docs/emulator-protocol.md; keys that are missing report nothing. What is
    over, and has only spoiled a measurement, is no problem: see :func:`measurement_notes`.
    """
    deadlock = status.get("deadlock")
    past = status.get("past", ())
    return [
        *([f"deadlock: {deadlock_text(deadlock['cycle'])}"] if deadlock else []),
        *forwarding_loops.problems(status),
        *storm_problems(status),
        *broadcast_problems(status),
        *(
            f"link emulator: {problem}"
            for problem in status.get("problems", ())
            if problem not in past
        ),
    ]


def measurement_notes(status: Mapping[str, Any]) -> list[str]:
    """Return why what was measured since the last reset does not count, where that is over.

    Loops of frames that are over are named as well.
    """
    return [
        *(
            f"measurements since the last reset do not count: {line}"
            for line in status.get("past", ())
        ),
        *forwarding_loops.past(status),
    ]
