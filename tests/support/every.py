"""One test for many cases of one check: all of them are tried, and each that fails is named."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Case = TypeVar("Case")


def holds_for_every(
    check: Callable[[Case], object], cases: Iterable[Case], name: Callable[[Case], str] = str
) -> None:
    """Call a check with each case; AssertionError with the names and reasons of all that fail."""
    tried, failed = 0, []
    for case in cases:
        tried += 1
        try:
            check(case)
        except AssertionError as error:
            failed.append(f"{name(case)}: {error}")
    assert tried, "there is no case"
    assert not failed, "\n".join(failed)
