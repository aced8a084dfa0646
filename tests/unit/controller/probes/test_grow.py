"""A fabric that grows by what was found: its file, the reload, and the rules until then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from knotless.base.errors import KnotlessError
from knotless.controller import runtime
from knotless.controller.desired import DesiredState
from knotless.controller.probes.discovery import Discovery
from knotless.controller.probes.frames import learning_rules, probe_rules, without_ports
from knotless.controller.probes.learner import Explorer
from knotless.controller.service import Service
from knotless.controller.updates.state import UpdateState
from knotless.forwarding.openflow.rules import CONTROLLER, Field, Output, Rule
from knotless.topologies import Fabric, Link, load
from knotless.topologies.formats.files import read, to_text
from tests.support.service_alone import service_alone
from tests.unit.controller.probes.test_discovery import show_links

RING = load("ring,4")
GROWN = replace(RING, links=(*RING.links, Link("s2", 8, "s4", 8)), grid=None)


TURNS = 5
"""More than a green thread needs to notice an event."""
Growing = tuple[Service, list[DesiredState]]


@pytest.fixture
def growing(tmp_path: Path) -> Growing:
    """Return a service, and the states to which it has changed."""
    (tmp_path / "learned.json").write_text(to_text(RING))
    path = tmp_path / "knotless.yaml"
    path.write_text("fabric: learned.json\ndiscovery: learn\nengine: updown\n")
    service, states = service_alone(path)
    for name in list(service.state.update.progress.waiting):
        service.state.update.confirm(name)
    return service, states


def test_a_larger_fabric_is_written_and_reloaded(growing: Growing, tmp_path: Path) -> None:
    service, states = growing
    service.grow(GROWN)
    assert [state.fabric for state in states] == [GROWN]
    assert read(tmp_path / "learned.json") == GROWN


def test_a_fabric_that_is_refused_is_not_left_in_the_file(growing: Growing, tmp_path: Path) -> None:
    service, states = growing
    moved = replace(RING, hosts=(replace(RING.hosts[0], port=9), *RING.hosts[1:]), grid=None)
    before = (tmp_path / "learned.json").read_text()
    with pytest.raises(KnotlessError, match="belongs to host h1 at s1:1 now"):
        service.grow(moved)
    assert states == []
    assert (tmp_path / "learned.json").read_text() == before


def test_a_file_that_was_edited_is_not_overwritten(growing: Growing, tmp_path: Path) -> None:
    service, states = growing
    edited = to_text(replace(RING, links=RING.links[:3], grid=None))
    (tmp_path / "learned.json").write_text(edited)
    with pytest.raises(KnotlessError, match=r"learned\.json was edited: reload it first"):
        service.grow(GROWN)
    assert states == []
    assert (tmp_path / "learned.json").read_text() == edited


def test_what_is_found_is_used_when_nothing_changes_and_after_a_refusal_later(
    growing: Growing, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, threads = growing[0].state, runtime.Threads()
    discovery = Discovery(0.0)
    explorer = Explorer(state=state, discovery=discovery, threads=threads)
    connections: Any = SimpleNamespace(undeclared=dict, session_of=lambda _name: None)
    rewritten: list[str] = []
    used: list[Fabric] = []

    def use() -> None:
        for fabric in explorer.findings():
            used.append(fabric)
            explorer.refuse(KnotlessError("not now"))

    def tick(now_s: float) -> int:
        """Look once; return how many larger fabrics have been used so far."""
        explorer.tick(now_s, connections, rewritten.append)
        for _ in range(TURNS):
            runtime.sleep(0)
        return len(used)

    monkeypatch.setattr(runtime, "now_s", lambda: 100.0)
    for switch in state.observed.switches.values():
        switch.connect({**dict.fromkeys(switch.needs, True), 8: switch.name in ("s2", "s4")})
    threads.spawn(use)
    assert tick(90.0) == 0
    show_links(discovery, GROWN)
    with monkeypatch.context() as patch:
        patch.setattr(UpdateState, "idle_task", None)
        assert tick(95.0) == 0, "a change of routes goes on"
    assert tick(100.0) == 1
    assert set(used[0].links) == set(GROWN.links)
    assert tick(129.0) == 1
    assert tick(131.0) == 2
    threads.close()


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
