"""A controller's questions to the link emulator of a fabric."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from knotless.base.link_problems import link_problems, measurement_notes
from knotless.controller import emulator
from knotless.controller.emulator import SILENT_AFTER, EmulatorError, EmulatorWatch


def test_an_emulator_that_no_longer_answers_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has never answered may not have started; one late answer is none."""
    answers = [False, False, False, False, True, False, True, *[False] * SILENT_AFTER, True]
    waiting = iter(answers)

    def ask(_path: Path, _what: str) -> Mapping[str, Any]:
        if next(waiting):
            return {"stretch_now": 1.0}
        raise EmulatorError("no answer")

    monkeypatch.setattr(emulator, "ask", ask)
    problems: list[list[str]] = []
    watch = EmulatorWatch(
        Path("socket"), lambda *_, **__: None, lambda status: problems.append(link_problems(status))
    )
    for _ in answers:
        watch.look()
    assert [i for i, lines in enumerate(problems) if lines] == [6 + SILENT_AFTER]
    assert problems[6 + SILENT_AFTER] == ["link emulator: it does not answer"]


def test_what_is_over_is_a_note_and_no_problem() -> None:
    late, now = "3 frames were lost", "the kernel lost 2 frames"
    status = {"problems": [now, late], "past": [late]}
    assert link_problems(status) == [f"link emulator: {now}"]
    assert measurement_notes(status) == [f"measurements since the last reset do not count: {late}"]
    assert measurement_notes({}) == []
