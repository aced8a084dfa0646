"""Shared by tests of a change of routes."""

from __future__ import annotations

from knotless.controller.updates.state import UpdateState


def confirm_all(transition: UpdateState) -> None:
    """Have all switches confirm that they hold the rules of the current step."""
    for name in transition.progress.waiting:
        transition.confirm(name)
