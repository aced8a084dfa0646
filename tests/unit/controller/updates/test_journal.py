"""A change that is not complete: the file that keeps it, and controllers that start with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from knotless.base.errors import KnotlessError
from knotless.base.flow_control import FlowControl
from knotless.base.http_rules import HttpError
from knotless.controller.config import ConfigError
from knotless.controller.service import Service
from knotless.controller.updates.journal import BegunUpdate, UpdateJournal
from knotless.controller.updates.planning import FabricUnion
from knotless.topologies import Host, Link, load
from knotless.topologies.formats.files import to_json, to_text
from knotless.topologies.union import union
from tests.support.service_alone import service_alone

RING = load("ring,4")
CHORD = Link("s2", 8, "s4", 8)
SAME_IP = Host("h5", "02:00:00:00:02:09", RING.hosts[0].ip, "s2", 9)
"""It comes when h1, which has its IP, goes away."""
NEW = replace(RING, hosts=(*RING.hosts[1:], SAME_IP), links=(*RING.links[1:], CHORD), grid=None)


def begun() -> BegunUpdate:
    return BegunUpdate(FabricUnion(RING).extended(NEW), FlowControl.PAUSE)


def test_a_file_keeps_what_exists_and_is_removed_at_the_end(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    first = UpdateJournal.beside(state)
    assert first.read() is None
    first.end(begun())
    first.begin(begun())
    assert (tmp_path / "state-change.json").exists()
    second = UpdateJournal.beside(state)
    entry = second.read()
    assert entry is not None
    expected = begun().union
    assert (entry.union.staying, entry.flow_control) == (expected.staying, "pause")
    assert set(entry.union.fabric.hosts) == set(expected.fabric.hosts)
    assert set(entry.union.fabric.links) == set(union(RING, NEW).links)
    assert entry.union.staying == frozenset({"h2", "h3", "h4"})
    second.end(begun())
    assert list(tmp_path.iterdir()) == []
    second.end(begun())


def test_without_a_state_file_nothing_is_kept() -> None:
    nothing = UpdateJournal.beside(None)
    nothing.begin(begun())
    assert nothing.read() is None
    nothing.end(begun())


def changed(**fields: object) -> str:
    content = {"fabric": to_json(RING), "staying": ["h1"], "flow_control": "pause"}
    return json.dumps(content | fields)


DAMAGED = {
    "": "invalid JSON",
    "[]": "input should be an object",
    "{}": "fabric: it is missing",
    changed(staying=["h9"]): "staying: there is no host 'h9'",
    changed(flow_control="auto"): "flow_control: ",
    changed(fabric={}): "fabric: name is missing",
    changed(fabric=to_json(replace(RING, links=RING.links[:1], grid=None))): "cannot be reached",
    changed(more=1): "unknown key 'more'",
}


@pytest.fixture
def serve(tmp_path: Path) -> Callable[[str], Service]:
    def start(fabric: str) -> Service:
        path = tmp_path / "knotless.yaml"
        path.write_text(f"fabric: {fabric}\nengine: updown\nstate_file: state.json\n")
        return service_alone(path)[0]

    return start


@pytest.mark.parametrize(("text", "words"), DAMAGED.items())
def test_a_damaged_file_is_named_and_not_used(
    text: str, words: str, tmp_path: Path, serve: Callable[[str], Service]
) -> None:
    path = tmp_path / "state-change.json"
    path.write_text(text)
    with pytest.raises(ConfigError) as raised:
        UpdateJournal(path).read()
    service = serve("ring,4")
    assert service.state.leads
    assert service.state.observed.fabric == RING
    (note,) = (line for line in service.status.problems(0.0) if "as it began" in line)
    assert note.startswith(f"{path}: ")
    assert words in str(raised.value)
    assert str(raised.value) in note
    assert note.endswith("steps to ring,4 are proven without what else there was")
    assert "\n" not in note
    # It is removed when all switches have these rules.
    UpdateJournal(path).end(begun())
    assert not path.exists()


def test_a_file_of_another_network_is_named_and_not_used(
    tmp_path: Path, serve: Callable[[str], Service]
) -> None:
    UpdateJournal(tmp_path / "state-change.json").begin(begun())
    service = serve("mesh,3,3")
    assert service.state.leads
    assert len(service.state.observed.switches) == 9
    (note,) = (line for line in service.status.problems(0.0) if "another fabric" in line)
    assert "state-change.json: it is of another fabric: " in note
    assert "belongs to" in note


def test_a_controller_that_finds_the_file_changes_nothing_before_it_has_read_the_switches(
    tmp_path: Path, serve: Callable[[str], Service]
) -> None:
    more = replace(RING, links=(*RING.links, CHORD), grid=None)
    UpdateJournal(tmp_path / "state-change.json").begin(
        BegunUpdate(FabricUnion(more).extended(RING), FlowControl.SWITCH)
    )
    service = serve("ring,4")
    state = service.state
    assert (state.leads, state.is_interrupted) == (False, True)
    assert state.update.flow_control == "switch"
    assert CHORD in state.observed.fabric.links
    assert state.update.union.staying == frozenset(RING.host_index)
    shown: Any = service.status.as_json(1e9)
    assert shown["ready"] is False
    assert shown["routes"]["changing"] is True
    assert shown["routes"]["leaving"] == [f"link {CHORD.name}"]
    assert any("a change that was interrupted goes on" in line for line in shown["problems"])
    with pytest.raises(HttpError, match="a change that was interrupted goes on"):
        service.peers.require_active()
    (tmp_path / "fabric.json").write_text(to_text(more))
    serve("fabric.json")  # only to write the configuration
    with pytest.raises(KnotlessError, match="a change of routes goes on and waits for s1, s2, s3"):
        service.reload()


def test_a_standby_learns_when_the_active_controller_has_completed_the_change(
    tmp_path: Path, serve: Callable[[str], Service]
) -> None:
    more = replace(RING, links=(*RING.links, CHORD), grid=None)
    service = serve("ring,4")
    active = UpdateJournal(tmp_path / "state-change.json", shared=True)
    service.state.stand_by()
    service.state.resume(BegunUpdate(FabricUnion(more).extended(RING), FlowControl.PAUSE))
    service.peers.follow_fabric(service.state.withdraw)
    assert CHORD in service.state.observed.fabric.links
    # The active one has not been reloaded, or the change goes on.
    active.begin(BegunUpdate(FabricUnion(more), FlowControl.PAUSE))
    active.end(BegunUpdate(FabricUnion(more), FlowControl.PAUSE))
    service.peers.follow_fabric(service.state.withdraw)
    active.begin(BegunUpdate(FabricUnion(more).extended(RING), FlowControl.PAUSE))
    service.peers.follow_fabric(service.state.withdraw)
    assert CHORD in service.state.observed.fabric.links
    active.end(BegunUpdate(FabricUnion(RING), FlowControl.PAUSE))
    assert (active.read(), active.completed()) == (None, RING)
    service.peers.follow_fabric(service.state.withdraw)
    assert service.state.observed.fabric == RING
    assert service.state.update.union.staying is None
