"""A controller that reads its configuration again, and what it tells meanwhile."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_switch import FakeSwitch
from tests.support.lone_controller import LoneController, lone_controller
from tests.support.openflow_messages import VALID
from tests.support.waiting import HANG_S, until

CONFIG = (
    "fabric: ring,4\nengine: updown\nconnect_timeout_s: 1\ndiscovery: none\nreread_interval_s: 3600"
)
PORTS = 3
PACKETS = 5000


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[LoneController]:
    with lone_controller(tmp_path, CONFIG, token=True) as running:
        yield running


def change(controller: LoneController, old: str, new: str) -> None:
    text = controller.config.read_text()
    assert old in text
    controller.config.write_text(text.replace(old, new))


def post(controller: LoneController, **headers: str) -> tuple[int, dict[str, Any]]:
    """Ask for a reload; return status and answer."""
    connection = HTTPConnection("127.0.0.1", controller.rest, timeout=HANG_S)
    with contextlib.closing(connection):
        connection.request("POST", "/reload", b"", headers)
        answer = connection.getresponse()
        content: dict[str, Any] = json.loads(answer.read())
        return answer.status, content


def reload(controller: LoneController) -> tuple[int, dict[str, Any]]:
    return post(controller, Authorization=f"Bearer {controller.token()}")


@pytest.mark.smoke
def test_a_change_needs_the_token(controller: LoneController) -> None:
    good = {"Authorization": f"Bearer {controller.token()}"}
    status, answer = post(controller)
    assert (status, list(answer)) == (401, ["error"])
    assert post(controller, Authorization="Bearer wrong")[0] == 401
    assert post(controller, **good, Origin="http://evil.example")[0] == 403
    assert post(controller, **good, Host="evil.example")[0] == 403
    assert post(controller, **good) == (200, {"result": "unchanged", "switches": []})
    assert controller.token() not in controller.log()


@pytest.mark.smoke
def test_the_same_plan_changes_nothing(controller: LoneController) -> None:
    change(controller, "connect_timeout_s: 1", "connect_timeout_s: 600")
    until("problems", lambda: controller.status()["problems"] != [])
    controller.process.send_signal(signal.SIGHUP)
    until("the reload", lambda: "reloaded: nothing changes" in controller.log())
    assert controller.status()["problems"] == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("engine: updown", "engine: magic", "there is no routing engine 'magic'"),
        ("engine: updown", "engin: updown", "unknown key 'engin'"),
        (
            "ring,4",
            "ring,5",
            "fabric: port 2 of s4 belongs to link s4:2-s1:3 now, and to link s4:2-s5:3",
        ),
        ("engine: updown", "engine: dor\nvcs: 1\nselect: low-port", "CAN DEADLOCK"),
        ("port:", "host: 127.0.0.2, port:", "rest: it changes only when the controller restarts"),
    ],
)
def test_an_invalid_file_changes_nothing(
    controller: LoneController, old: str, new: str, words: str
) -> None:
    before = controller.status()
    change(controller, old, new)
    status, answer = reload(controller)
    assert status == 422
    assert words in answer["error"]
    assert "\n" not in answer["error"]
    lines = [line for line in controller.log().splitlines() if "not reloaded" in line]
    assert len(lines) == 1
    after = controller.status()
    assert (after["plan"], after["engine"]) == (before["plan"], before["engine"])
    assert any("the configuration was not reloaded" in line for line in after["problems"])
    change(controller, new, old)
    assert reload(controller)[0] == 200
    assert not any("not reloaded" in line for line in controller.status()["problems"])


@contextlib.contextmanager
def connected(controller: LoneController, first: int = 1) -> Iterator[list[FakeSwitch]]:
    """Connect the switches from this dpid on, of which none has rules."""
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(contextlib.closing(FakeSwitch(controller.openflow, dpid, PORTS)))
            for dpid in range(first, 5)
        ]


def await_installed(controller: LoneController, switches: list[FakeSwitch]) -> None:
    def are_installed() -> bool:
        return all(each.answer_all() for each in switches) and len(controller.installed()) == 4

    until("all switches are installed", are_installed)


def test_nothing_is_written_before_all_switches_are_read(tmp_path: Path) -> None:
    config = CONFIG.replace("connect_timeout_s: 1", "connect_timeout_s: 600")
    with (
        lone_controller(tmp_path, config, token=True) as controller,
        contextlib.closing(FakeSwitch(controller.openflow, 1, PORTS)) as switch,
    ):

        def is_connected() -> bool:
            return switch.answer_all() and controller.status()["switches"]["s1"]["connected"]

        until("s1 is connected", is_connected)
        change(controller, "engine: updown", "engine: updown\nroot: s3")
        controller.process.send_signal(signal.SIGHUP)
        reloaded = "reloaded: the rules of "
        until("the change", lambda: switch.answer_all() and reloaded in controller.log())
        assert controller.status()["routes"]["changing"]
        assert controller.status()["routes"]["waiting_for"] == ["s1", "s2", "s3", "s4"]
        assert switch.changes == 0
        with connected(controller, 2) as others:
            await_installed(controller, [switch, *others])
            assert controller.status()["request"]["root"] == "s3"
            assert switch.changes > 0


def test_a_switch_that_is_missing_holds_up_the_others_for_a_stated_time(
    controller: LoneController,
) -> None:
    with connected(controller, 2) as others:
        three = ["s2", "s3", "s4"]
        until(
            "three switches",
            lambda: all(each.answer_all() for each in others) and controller.installed() == three,
        )
        status = controller.status()
        line = "s1 (dpid 1) is not connected: it counts as failed until its rules have been read"
        assert line in status["problems"]
        assert "s1" in status["routes"]["failed"]
        with contextlib.closing(FakeSwitch(controller.openflow, 1, PORTS)) as switch:
            await_installed(controller, [switch, *others])


class EventReader:
    """A client of ``/events``; ``seen`` holds pairs of kind and data."""

    def __init__(self, controller: LoneController) -> None:
        self.socket = socket.create_connection(("127.0.0.1", controller.rest), timeout=HANG_S)
        self.socket.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.file = self.socket.makefile("rb")
        assert self.file.readline() == b"HTTP/1.1 200 OK\r\n"
        while self.file.readline() != b"\r\n":
            pass

    def next(self) -> tuple[str, dict[str, Any]]:
        fields: dict[str, str] = {}
        while line := self.file.readline().decode().strip():
            name, _, value = line.partition(": ")
            fields[name] = value
        return fields["event"], json.loads(fields["data"])

    def until(self, kind: str) -> dict[str, Any]:
        while True:
            event, data = self.next()
            if event == kind:
                return data

    def close(self) -> None:
        self.file.close()
        self.socket.close()


def test_events_tell_what_happens(controller: LoneController) -> None:
    with contextlib.closing(EventReader(controller)) as events:
        with connected(controller) as switches:
            await_installed(controller, switches)
            by_name = dict(zip(("s1", "s2", "s3", "s4"), switches, strict=True))
            names = {events.until("connected")["switch"] for _ in switches}
            assert names == by_name.keys()
            assert events.until("takeover")["switches"] == 4
            for _ in switches:
                installed = events.until("installed")
                assert installed["added"] == by_name.pop(installed["switch"]).changes
            assert by_name == {}
            assert events.until("ready")
            switch = switches[0]
            switch.report_port(2, up=False)
            assert events.until("port") | {"time": 0} == {
                **{"time": 0, "switch": "s1", "port": 2, "up": False}
            }
            assert events.until("failures")["failed"] == ["s1:2-s2:3"]
            assert events.until("problem")["text"]
            assert "s1:2-s2:3" in controller.status()["links_down"]
            switch.report_port(2, up=True)
            until("the link is up", lambda: controller.status()["links_down"] == [])
        assert events.until("disconnected")["switch"] in {"s1", "s2", "s3", "s4"}
        reload(controller)
        assert events.until("reload")["result"] == "unchanged"


def test_metrics_count_what_happened(controller: LoneController) -> None:
    def metric(name: str) -> float:
        with socket.create_connection(("127.0.0.1", controller.rest), timeout=HANG_S) as client:
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            text = client.makefile("rb").read().decode()
        (value,) = (line.split()[-1] for line in text.splitlines() if line.startswith(name + " "))
        return float(value)

    assert metric('knotless_switches{state="declared"}') == 4
    assert metric('knotless_switches{state="installed"}') == 0
    with connected(controller) as switches:
        await_installed(controller, switches)
        assert metric('knotless_switches{state="installed"}') == 4
        changes = sum(switch.changes for switch in switches)
        assert metric('knotless_rule_changes_total{command="add"}') == changes
        assert metric("knotless_install_seconds_count") == 4
        switch = switches[0]
        switch.report_port(2, up=False)
        switch.socket.sendall(VALID["packet-in"] * PACKETS)
        dropped = "knotless_dropped_messages_total"
        until("packets are dropped", lambda: metric(dropped) > 0)
        until("a link is down", lambda: metric('knotless_links{state="down"}') == 1)
    assert metric("knotless_rules") > 0
    assert metric("knotless_problems") > 0
    reload(controller)
    assert metric('knotless_reloads_total{result="unchanged"}') == 1
