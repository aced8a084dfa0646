"""``knotless status`` and the commands that change running fabrics: their answers."""

from __future__ import annotations

from typing import Any

import pytest

from knotless.cli.answer import Screen, answer_lines
from knotless.cli.commands._running import change_answer
from knotless.cli.commands.status import status_answer

CYCLE = ["s1:2/0", "s2:2/0"]
EMULATOR = {
    **{"deadlock": None, "storms": [], "faulty_lines": [], "frames_in_network": 1234},
    **{"stretch": 1.5, "stretch_now": 2.0, "holds": {}, "slowest_switch": None},
}


def fabric(**changes: Any) -> dict[str, Any]:
    """Return a report of a running fabric."""
    controller = {
        **{"engine": "updown", "request": {"multipath": "ecmp"}},
        **{"switches": {"s1": {"rules": 3}, "s2": {"rules": 4}}},
        **{"check": {"flow_control": "pause", "cycle": []}},
    }
    return {
        **{"name": "mine", "fabric": "ring,4", "phase": "ready", "problems": [], "notes": []},
        **{"advice": [], "emulator": EMULATOR, "controller": controller, "settings": {}},
        **{"controller_url": "http://127.0.0.1:1", "real_time_programs": None},
        **{"parts": {"emulator": {"pid": 7, "alive": True}}, **changes},
    }


def lines(one: dict[str, Any], screen: Screen | None = None, *, details: bool = False) -> list[str]:
    return [*answer_lines(status_answer(one), screen or Screen(), details=details)]


@pytest.mark.parametrize(
    ("changes", "first"),
    [
        ({}, "ring,4 with updown, ECMP as 'mine': ready, cannot deadlock under PAUSE"),
        ({"phase": "starting", "controller": None}, "ring,4 as 'mine': starting"),
        (
            {"problems": ["emulator has died"], "controller": None},
            "ring,4 as 'mine': ready, with a problem",
        ),
        (
            {"emulator": {**EMULATOR, "deadlock": {"cycle": CYCLE}}, "problems": ["deadlock: ..."]},
            "ring,4 with updown, ECMP as 'mine': deadlocked",
        ),
    ],
)
def test_a_status_begins_with_how_the_fabric_is(changes: dict[str, Any], first: str) -> None:
    assert lines(fabric(**changes))[0] == first


def test_a_status_says_pace_in_words_and_what_holds_it_in_details() -> None:
    one = fabric()
    shown = lines(one)
    assert "  pace    a virtual second takes 1.50 s, 2.00 s now" in shown
    assert "  rules   7 on 2 switches" in shown
    assert "  frames  1,234 under way" in shown
    assert not any("stretch" in line for line in shown)
    assert any("stretch 1.50 (2.00 now)" in line for line in lines(one, details=True))


def test_problems_come_before_figures_and_hints_are_for_terminals() -> None:
    one = fabric(problems=["link s1:2-s2:3 is down"], notes=["cut: s1:2-s2:3 (no carrier)"])
    shown = lines(one)
    assert shown[1] == "  problem: link s1:2-s2:3 is down"
    assert shown[-1] == "  cut: s1:2-s2:3 (no carrier)"
    assert lines(one, Screen(100))[-1] == "  use it: knotless attach --name mine"


@pytest.mark.parametrize(
    ("proven", "more", "word"),
    [
        (True, {}, "proven"),
        (True, {"seconds": 0.5}, "changed, proven"),
        (False, {}, "NOT PROVEN"),
        (False, {"seconds": 0.5}, "changed, NOT PROVEN"),
    ],
)
def test_a_change_says_whether_it_is_done(proven: bool, more: dict[str, Any], word: str) -> None:
    step = {
        **{"step": 1, "action": "all", "rules_changed": 2, "dropped_pairs": 0, "drain": False},
        **{"acyclic": True, "lost": 0, "dependencies": 3, "sha256": "0"},
    }
    certificate = {
        **{"fabric": "ring,4", "proven": proven, "flow_control": "pause", "dropped_pairs": 0},
        **{"steps": [step], "before": "0"},
    }
    answer = {"certificate": certificate, "tier": 1, "steps": [step], "rules_changed": 2}
    shown = [*answer_lines(change_answer({**answer, **more, "drained": ["s2"]}), Screen())]
    assert shown[0].startswith(f"ring,4: {word} under PAUSE, in one step")
    assert "  drained: s2" in shown
    done = "  done   500 ms after the request: frames follow the new routes"
    assert (done in shown) == bool(more)
