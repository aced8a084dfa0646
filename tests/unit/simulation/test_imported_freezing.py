"""Imported fabrics whose packets are of several kinds: one kind is sent at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from unittest.mock import Mock

import pytest

from knotless.base.flow_control import FlowControl
from knotless.importers.fabric import RulesFabric
from knotless.simulation import imported_freezing
from knotless.simulation.freezing import Freeze
from knotless.simulation.imported_freezing import find_freeze_of_imported

CANNOT, UNDECIDED, FREEZES = Freeze(False), Freeze(None, reason="too long"), Freeze(True)


def found(monkeypatch: pytest.MonkeyPatch, kinds: Sequence[Freeze]) -> Freeze:
    """Return the answer if these are those of the kinds of packets."""
    answers: Mapping[Any, Freeze] = dict(enumerate(kinds))
    traffics = [Mock(state=number) for number in answers]
    fabric = Mock(spec=RulesFabric, traffics=traffics, flow_control=FlowControl.PAUSE)
    monkeypatch.setattr(imported_freezing, "find_freeze", lambda state, *_, **__: answers[state])
    return find_freeze_of_imported(fabric, Mock(acyclic=False))


def test_each_kind_is_tried_until_one_freezes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, [CANNOT, UNDECIDED, FREEZES]) is FREEZES


def test_one_kind_that_is_undecided_leaves_it_open(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, [CANNOT, UNDECIDED, CANNOT]) is UNDECIDED


def test_several_kinds_may_close_the_cycle_together(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = found(monkeypatch, [CANNOT, CANNOT])
    assert answer.freezes is None
    assert "several kinds" in answer.reason
    assert found(monkeypatch, [CANNOT]) is CANNOT
