"""The status of a fabric: what its controller does not call a problem, but users must know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from knotless.emulation import names as fabric_names
from knotless.emulation import processes, rest, runtime, state
from knotless.emulation.names import Names, names_of
from knotless.emulation.report import report
from knotless.emulation.state import State

INSTALLED = {"connected": True, "installed": True}
WAITING = {"connected": True, "installed": False}
AWAY = {"connected": False, "installed": False}
MISSING = "s2 (dpid 2) is not connected"


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Names:
    for module in (fabric_names, runtime):
        monkeypatch.setattr(module, "RUN_DIRECTORY", tmp_path)
    names = names_of("lab")
    names.directory.mkdir(parents=True)
    return names


@pytest.mark.parametrize(
    ("ready", "switches", "problems", "shown"),
    [
        (True, [INSTALLED, INSTALLED], [], []),
        (False, [INSTALLED, WAITING], [], ["switches that have not confirmed their rules: s2"]),
        (False, [INSTALLED, AWAY], [MISSING], [MISSING]),
        (
            False,
            [WAITING, AWAY],
            [MISSING],
            [MISSING, "switches that have not confirmed their rules: s1"],
        ),
        (False, [INSTALLED, INSTALLED], [], ["not ready: it has not read all switches yet"]),
        (False, [INSTALLED, INSTALLED], ["the routes stay"], ["the routes stay"]),
    ],
)
def test_switches_without_their_rules_are_a_problem(
    lab: Names,
    monkeypatch: pytest.MonkeyPatch,
    ready: bool,
    switches: list[dict[str, Any]],
    problems: list[str],
    shown: list[str],
) -> None:
    answer = {
        "ready": ready,
        "problems": problems,
        "switches": {f"s{number}": one for number, one in enumerate(switches, 1)},
    }
    monkeypatch.setattr(rest, "status", lambda _port: answer)
    assert _problems(lab, "ready") == [f"controller: {line}" for line in shown]
    assert _problems(lab, "starting") == [f"controller: {line}" for line in problems]


def test_routes_that_have_not_returned_are_a_problem(
    lab: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer: dict[str, Any] = {
        "ready": True,
        "problems": [],
        "switches": {"s1": INSTALLED},
        "links_down": [],
        "routes": {"failed": ["s1:2-s2:3"]},
    }
    monkeypatch.setattr(rest, "status", lambda _port: answer)
    line = "controller: routes still avoid what is up again: s1:2-s2:3"
    assert _problems(lab, "ready") == [line]
    answer["routes"]["settling"] = True
    assert _problems(lab, "ready") == []
    answer |= {"links_down": ["s1:2-s2:3"], "problems": ["link s1:2-s2:3 is down"]}
    assert _problems(lab, "ready") == ["controller: link s1:2-s2:3 is down"]


def _problems(names: Names, phase: str) -> list[str]:
    settings = {"controller": "remote"}
    state.write(names, State("lab", "ring,4", processes.ourselves(), phase, settings=settings))
    answer = report(names)
    assert answer is not None
    return [line for line in answer["problems"] if line.startswith("controller: ")]
