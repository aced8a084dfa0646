"""Faults of the controller that are planted on purpose: the invariants must find each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from knotless.controller.updates.quiescence import CountedRounds
from knotless.controller.updates.scheduler import UpdateScheduler
from knotless.controller.updates.state import UpdateState

_task = UpdateState._task


def _confirms_all(state: UpdateState, _name: str) -> None:
    """A step begins when one switch has confirmed the one before."""
    state._waiting.clear()


def _without_in_flight(state: UpdateState, *goal_and_union: Any) -> Any:
    """Packets of older rules are left out of the proof."""
    in_flight, state._in_flight = state._in_flight, ()
    try:
        return _task(state, *goal_and_union)
    finally:
        state._in_flight = in_flight


def _is_done(_rounds: CountedRounds, *_counters: object) -> bool:
    """Quiescence is reported at the first look."""
    return True


def _nothing(*_: Any, **__: Any) -> None:
    """Something that happens is ignored."""


def _no_quiescence(_state: UpdateState) -> bool:
    """No step waits for packets of older rules."""
    return False


PLANTED: Mapping[str, tuple[type, str, Any]] = {
    "a step begins before all barriers": (UpdateState, "confirm", _confirms_all),
    "undrained generations are left out of the proof": (UpdateState, "_task", _without_in_flight),
    "quiescence is reported at the first look": (CountedRounds, "see", _is_done),
    "a link that returns is ignored": (UpdateState, "link_returned", _nothing),
    "a link that fails is ignored": (UpdateScheduler, "_aim", _nothing),
    "a frame of older rules is not waited for": (
        UpdateState,
        "awaits_quiescence",
        property(_no_quiescence),
    ),
}


@contextmanager
def planted(name: str) -> Iterator[Callable[..., object]]:
    """Run the controller with a fault meanwhile."""
    kind, attribute, replacement = PLANTED[name]
    with patch.object(kind, attribute, replacement):
        yield replacement
