"""Events and metrics of a controller, without any client or switch."""

from __future__ import annotations

import json
from http import HTTPStatus

import pytest

from knotless.base.http_rules import HttpError
from knotless.controller.config import Config
from knotless.controller.desired import DesiredState
from knotless.controller.rest import events as module
from knotless.controller.rest.api import Stream
from knotless.controller.rest.events import Events
from knotless.controller.rest.metrics import Metrics
from knotless.controller.status import Status
from knotless.controller.updates.fabric_state import FabricState
from knotless.topologies import load


@pytest.fixture
def events() -> Events:
    return Events(clock=lambda: 1000.25, heartbeat_s=0.01)


def client(events: Events) -> Stream:
    stream = events.response().stream
    assert stream is not None
    return stream


def test_every_client_reads_every_event_from_its_beginning_on(events: Events) -> None:
    first = client(events)
    events.tell("port", switch="s1", port=2, up=False)
    second = client(events)
    events.tell("ready")
    text = next(first).decode()
    head, data = text.split("data: ")
    assert head == "id: 1\nevent: port\n"
    assert json.loads(data) == {"time": 1000.25, "switch": "s1", "port": 2, "up": False}
    assert next(first) == next(second) == b'id: 2\nevent: ready\ndata: {"time": 1000.25}\n\n'


def test_a_text_with_line_breaks_stays_one_event(events: Events) -> None:
    stream = client(events)
    events.tell("problem", text="one\n\nevent: forged\n")
    assert next(stream).count(b"\n\n") == 1


def test_an_idle_client_gets_a_comment(events: Events) -> None:
    assert next(client(events)).startswith(b": ")


def test_a_slow_client_is_dropped_and_the_others_are_not(
    events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 5)
    slow, fast = client(events), client(events)
    for number in range(10):
        events.tell("ready", number=number)
        assert json.loads(next(fast).decode().split("data: ")[1])["number"] == number
    assert events.clients == 1
    with pytest.raises(StopIteration):
        next(slow)


def test_the_number_of_clients_is_bounded(events: Events, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CLIENTS", 2)
    first, _ = client(events), client(events)
    with pytest.raises(HttpError) as raised:
        events.response()
    assert raised.value.status == HTTPStatus.SERVICE_UNAVAILABLE
    first.close()
    first.close()
    assert events.clients == 1
    client(events)


def test_two_controllers_count_apart() -> None:
    desired = DesiredState.compute(Config(fabric="ring,4"), load("ring,4"))
    one, two = (Metrics(Status(FabricState(desired)), lambda: 0.0) for _ in range(2))
    one.dropped.inc(3)
    assert b"knotless_dropped_messages_total 3.0" in one.response().body
    assert b"knotless_dropped_messages_total 0.0" in two.response().body


def test_gauges_follow_the_status() -> None:
    status = Status(FabricState(DesiredState.compute(Config(fabric="ring,4"), load("ring,4"))))
    metrics = Metrics(status, lambda: 0.0)
    switch = status.state.observed.switches[1]
    switch.connect({1: True, 2: False, 3: True})
    text = metrics.response().body.decode()
    for line in (
        'knotless_switches{state="declared"} 4.0',
        'knotless_switches{state="connected"} 1.0',
        'knotless_links{state="up"} 3.0',
        'knotless_links{state="down"} 1.0',
        "knotless_problems 1.0",
        f"knotless_rules {status.state.desired.rule_count:.1f}",
    ):
        assert line in text.splitlines(), line
    assert "knotless_stretch" not in text
    assert "knotless_deadlock" not in text
    status.see_links({"stretch_now": 2.5, "deadlock": None})
    lines = metrics.response().body.decode().splitlines()
    assert {"knotless_stretch 2.5", "knotless_deadlock 0.0", "knotless_problems 1.0"} <= set(lines)


def test_a_deadlock_of_emulated_links_is_a_problem_of_metrics_and_status() -> None:
    status = Status(FabricState(DesiredState.compute(Config(fabric="ring,4"), load("ring,4"))))
    metrics = Metrics(status, lambda: 0.0)
    before = len(status.problems(0.0))
    status.see_links({"deadlock": {"cycle": ["s1:2/0", "s2:2/0"]}})
    lines = metrics.response().body.decode().splitlines()
    assert {"knotless_deadlock 1.0", f"knotless_problems {before + 1:.1f}"} <= set(lines)
    shown = status.as_json(0.0)["link_problems"]
    assert shown == ["deadlock: s1:2/0 waits for s2:2/0 waits for s1:2/0"]
    status.see_links({})
    assert "knotless_deadlock" not in metrics.response().body.decode()
