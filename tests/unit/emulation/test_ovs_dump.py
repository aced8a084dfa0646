"""The multicast groups by which live rules are judged: those that are declared now."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from knotless.base.errors import EmulationError
from knotless.emulation import names as fabric_names
from knotless.emulation import processes, rest, runtime, state
from knotless.emulation.names import Names, names_of
from knotless.emulation.ovs_dump import live_multicast
from knotless.emulation.state import State
from knotless.routing.request import PlanRequest
from knotless.topologies import load

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
    request = PlanRequest.from_options(multicast=STARTED).model_dump(mode="json")
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
    request = PlanRequest.from_options(multicast=CHANGED).model_dump(mode="json")
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
    configured = PlanRequest.from_options(multicast=CHANGED).model_dump(mode="json")
    options = {"multicast": {"3": ["h1", "h4"]}}
    for was, groups in ((configured, {3: ("h1", "h4")}), ({}, {2: ("h3", "h4")})):
        # Options of operators hold as long as nobody edits the file.
        lab.overrides_file.write_text(json.dumps({"options": options, "configured": was}))
        assert _groups() == groups
    for damaged in ("", "[]", '{"options": {}}'):
        lab.overrides_file.write_text(damaged)
        assert _groups() == {1: ("h1", "h2")}
