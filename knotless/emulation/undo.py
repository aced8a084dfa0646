"""Operations of several effects: if one fails, those before it are taken back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from knotless.base.errors import EmulationError

Step = Callable[[], object]


@contextmanager
def taking_back() -> Iterator[list[Step]]:
    """Give a list for what takes back each effect; if the block fails, it is called, last first.

    What cannot be taken back either is said in the :class:`EmulationError`.
    """
    steps: list[Step] = []
    try:
        yield steps
    except BaseException as error:
        for step in reversed(steps):
            try:
                step()
            except EmulationError as other:
                raise EmulationError(
                    f"{error}; what was done before is not taken back: {other}"
                ) from error
        raise
