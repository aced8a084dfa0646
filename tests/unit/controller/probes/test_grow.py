"""A fabric that grows by what was found: its file, the reload, and the rules until then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from knotless.base.errors import KnotlessError
from knotless.controller import config
from knotless.controller.desired import DesiredState
from knotless.controller.probes.frames import learning_rules, probe_rules, without_ports
from knotless.controller.service import Service
from knotless.forwarding.openflow.rules import CONTROLLER, Field, Output, Rule
from knotless.topologies import Link, load
from knotless.topologies.formats.files import read, to_text

RING = load("ring,4")
GROWN = replace(RING, links=(*RING.links, Link("s2", 8, "s4", 8)), grid=None)


@pytest.fixture
def service(tmp_path: Path) -> Service:
    (tmp_path / "learned.json").write_text(to_text(RING))
    path = tmp_path / "knotless.yaml"
    path.write_text("fabric: learned.json\ndiscovery: learn\nengine: updown\n")
    service = Service(path, config.read(path))
    for name in list(service.state.update.waiting):
        service.state.update.confirm(name)
    return service


def changes(service: Service, monkeypatch: pytest.MonkeyPatch) -> list[DesiredState]:
    states: list[DesiredState] = []
    monkeypatch.setattr(service, "_change_to", states.append, raising=False)
    return states


def test_a_larger_fabric_is_written_and_reloaded(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = changes(service, monkeypatch)
    service.grow(GROWN)
    assert [state.fabric for state in states] == [GROWN]
    assert read(tmp_path / "learned.json") == GROWN


def test_a_fabric_that_is_refused_is_not_left_in_the_file(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = changes(service, monkeypatch)
    moved = replace(RING, hosts=(replace(RING.hosts[0], port=9), *RING.hosts[1:]), grid=None)
    before = (tmp_path / "learned.json").read_text()
    with pytest.raises(KnotlessError, match="belongs to host h1 at s1:1 now"):
        service.grow(moved)
    assert states == []
    assert (tmp_path / "learned.json").read_text() == before


def test_a_file_that_was_edited_is_not_overwritten(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = changes(service, monkeypatch)
    edited = to_text(replace(RING, links=RING.links[:3], grid=None))
    (tmp_path / "learned.json").write_text(edited)
    with pytest.raises(KnotlessError, match=r"learned\.json was edited: reload it first"):
        service.grow(GROWN)
    assert states == []
    assert (tmp_path / "learned.json").read_text() == edited


def of_port(rules: frozenset[Rule], port: int) -> list[Rule]:
    return [rule for rule in rules if Field("in_port", port) in rule.match]


def test_ports_of_links_only_send_probes_to_the_controller() -> None:
    rules = learning_rules([1, 2, 3], [1, 2], [2])
    (probes,) = of_port(rules, 3)
    assert probes in probe_rules([3], [])
    closed = [rule for rule in of_port(rules, 1) if len(rule.match) == 1]
    opened = [rule for rule in of_port(rules, 2) if len(rule.match) == 1]
    assert [rule.actions for rule in (*closed, *opened)] == [(), (Output(CONTROLLER),)]
    # A port that has become one of the fabric is neither closed nor listened to.
    assert without_ports(rules, [1, 2]) == frozenset({probes})
