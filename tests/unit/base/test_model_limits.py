"""Limits that stand beside those of the core, in what does not load it."""

from __future__ import annotations

from knotless._core import graph as core
from knotless.topologies.numbering import MAX_PORT
from knotless.topologies.validate import MAX_DELAY_US


def test_topologies_have_the_limits_of_the_core() -> None:
    assert (MAX_PORT, MAX_DELAY_US) == (core.MAX_PORT, core.MAX_DELAY_US)
