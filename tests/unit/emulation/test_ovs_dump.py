"""Live rules are those of one moment, and judged by the multicast groups that are declared now."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from knotless.base.errors import EmulationError, RuleError
from knotless.emulation import names as fabric_names
from knotless.emulation import ovs_dump, processes, rest, runtime, state
from knotless.emulation.names import Names, names_of
from knotless.emulation.ovs_dump import live_multicast, read_live
from knotless.emulation.state import State
from knotless.routing.request import PlanRequest
from knotless.topologies import load
from knotless.topologies.formats.files import to_text

STARTED = {"1": ["h1", "h2"]}
CHANGED = {"2": ["h3", "h4"]}
RING = load("ring,4")


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Names:
    for module in (fabric_names, runtime):
        monkeypatch.setattr(module, "RUN_DIRECTORY", tmp_path)
    names = names_of("lab")
    names.directory.mkdir(parents=True)
    _start(names, "ryu")
    return names


def _start(names: Names, controller: str) -> None:
    request = PlanRequest.from_options(multicast=STARTED).as_settings()
    settings = request | {"controller": controller}
    state.write(
        names, State("lab", "ring,4", processes.ourselves(), phase="ready", settings=settings)
    )


def _answer(monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any] | None) -> None:
    def status_of(_ports: object) -> dict[str, Any]:
        if answer is None:
            raise EmulationError("the controller does not answer")
        return answer

    monkeypatch.setattr(rest, "status_of", status_of)


def _groups() -> dict[int, tuple[str, ...]]:
    return {group.number: group.members for group in live_multicast(RING, "lab")}


def test_they_are_those_that_the_controller_declares(
    lab: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = PlanRequest.from_options(multicast=CHANGED).as_settings()
    _answer(monkeypatch, {"request": request})
    assert _groups() == {2: ("h3", "h4")}
    _answer(monkeypatch, {"request": {**request, "multicast": {}}})
    assert _groups() == {}
    _start(lab, "remote")
    assert _groups() == {1: ("h1", "h2")}


@pytest.mark.parametrize("answer", [None, {}, {"request": {"engine": "x", "new": 1}}])
def test_they_are_those_of_its_files_if_it_does_not_answer(
    lab: Names, monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any] | None
) -> None:
    _answer(monkeypatch, answer)
    assert _groups() == {1: ("h1", "h2")}  # there are no files
    lab.controller_file.write_text(yaml.safe_dump({"fabric": "f", "multicast": CHANGED}))
    assert _groups() == {2: ("h3", "h4")}
    configured = PlanRequest.from_options(multicast=CHANGED).as_settings()
    options = {"multicast": {"3": ["h1", "h4"]}}
    for was, groups in ((configured, {3: ("h1", "h4")}), ({}, {2: ("h3", "h4")})):
        # Options of operators hold as long as nobody edits the file.
        lab.overrides_file.write_text(json.dumps({"options": options, "configured": was}))
        assert _groups() == groups
    for damaged in ("", "[]", '{"options": {}}'):
        lab.overrides_file.write_text(damaged)
        assert _groups() == {1: ("h1", "h2")}


def _hold(monkeypatch: pytest.MonkeyPatch, names: Names, readings: list[str]) -> None:
    """Have s2 hold one flow after the other, at each reading."""
    names.fabric_file.write_text(to_text(RING))

    def dump(_ovs: Path, switch: str, what: str) -> str:
        if what == "dump-groups":
            return ""
        priority = readings.pop(0) if switch == "s2" else "1"
        return f" cookie=0x0, table=0, priority={priority} actions=drop\n"

    monkeypatch.setattr(ovs_dump, "_dump", dump)
    monkeypatch.setattr(ovs_dump, "require_fabrics", lambda: None)


def test_rules_that_change_meanwhile_are_read_again(
    lab: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = ["1", "2", "3", "3", "4"]
    _hold(monkeypatch, lab, readings)
    _, rules, _ = read_live("lab")
    assert [rule.priority for rule in rules["s2"].rules] == [3]
    assert readings == ["4"]


def test_rules_that_change_all_the_time_are_an_error(
    lab: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    _hold(monkeypatch, lab, [str(number) for number in range(1, 100)])
    with pytest.raises(RuleError, match="rules change while they are read, those of s2 in the"):
        read_live("lab")
