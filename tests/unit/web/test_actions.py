"""Traffic, deadlocks on purpose and captures, as the page asks for them; the fabric is a fake."""

from __future__ import annotations

import contextlib
import json
import math
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from knotless.base.errors import EmulationError, KnotlessError
from knotless.emulation import (
    captures,
    demonstration,
    namespaces,
    processes,
    running_traffic,
    state,
    traffic_program,
)
from knotless.emulation import names as names_module
from knotless.emulation.cuts import Cables
from knotless.emulation.names import Names
from knotless.emulation.processes import Process
from knotless.emulation.running_traffic import RunningTraffic
from knotless.emulation.state import State
from knotless.topologies import load
from knotless.topologies.formats import files
from knotless.web.actions import actions_of
from tests.support.fake_fabric import FakeFabric


@pytest.fixture
def fake() -> FakeFabric:
    return FakeFabric(load("ring,4"))


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake: FakeFabric) -> Iterator[Names]:
    """A ring that seems to run, owned by this process, with its emulator."""
    monkeypatch.setattr(names_module, "RUN_DIRECTORY", tmp_path)
    monkeypatch.setattr(running_traffic, "machine_lock", contextlib.nullcontext)
    monkeypatch.setattr(Cables, "cuts", lambda _: [])
    test_names = Names("t")
    test_names.directory.mkdir()
    test_names.fabric_file.write_text(json.dumps(files.to_json(fake.fabric)))
    settings = {"links": "emulated", "controller": "none", "flow_control": "pause"}
    owner = processes.ourselves()
    state.write(test_names, State("t", "ring,4", owner, "ready", 1.0, settings=settings))
    with fake.emulator(test_names.emulator_socket):
        yield test_names


def sends(names: Names, process: Process) -> None:
    """Make traffic seem to run."""
    running = RunningTraffic("tornado", 2.5, 1, 4, 1.0, process)
    fields = {**vars(running), "process": vars(process)}
    names.traffic_file.write_text(json.dumps(fields))


@pytest.mark.parametrize(
    ("action", "fields", "message"),
    [
        ("traffic-start", {}, "'pattern' is missing"),
        ("traffic-start", {"pattern": 3}, "'pattern' must be str"),
        ("traffic-start", {"pattern": "shiftt:2"}, "there is no pattern"),
        ("traffic-start", {"pattern": "x" * 9000}, "there is no pattern"),
        ("traffic-start", {"pattern": "shift:4"}, "every host would send to itself"),
        ("traffic-start", {"pattern": "shift"}, "is run in phases"),
        ("traffic-start", {"pattern": "tornado", "rate_mbps": True}, "must be a number"),
        ("traffic-start", {"pattern": "tornado", "rate_mbps": "1"}, "must be a number"),
        ("traffic-start", {"pattern": "tornado", "rate_mbps": 0}, "must be from 0.001 to 100000"),
        ("traffic-start", {"pattern": "tornado", "rate_mbps": math.nan}, "must be from"),
        ("traffic-start", {"pattern": "tornado", "rate_mbps": 10**400}, "must be from"),
        ("traffic-start", {"pattern": "tornado", "seed": -1}, "must be from 0 to"),
        ("traffic-start", {"pattern": "tornado", "command": "x"}, "'command' is unknown here"),
        ("traffic-stop", {"name": "other"}, "'name' is unknown here"),
        ("freeze", {"x": 1}, "'x' is unknown here"),
        ("release", {}, "there is no deadlock to release"),
        ("capture", {}, "'link' is missing"),
        ("capture", {"link": "../../etc/passwd"}, "no link '../../etc/passwd'"),
        ("capture", {"link": "s1:2", "file": "/etc/passwd"}, "'file' is unknown here"),
        ("capture", {"link": "s1:2", "duration_s": 61}, "must be from 0 to 60"),
        ("capture", {"link": "s1:2", "duration_s": math.inf}, "must be from 0 to 60"),
    ],
)
def test_wrong_requests_are_one_line_and_change_nothing(
    names: Names, action: str, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(KnotlessError, match=message) as raised:
        actions_of(names)[action](fields)
    assert len(str(raised.value)) < 300
    assert not names.traffic_file.exists()
    assert not names.captures_directory.exists()


def test_a_capture_of_the_page_goes_to_one_directory_and_is_bounded(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = actions_of(names)["capture"]
    answer = capture({"link": "s1:2", "duration_s": 0.01})
    file = names.captures_directory / "s1-2-s2-3.pcap"
    assert answer == {"captured": "s1:2-s2:3", "file": str(file), "frames": 7}
    assert names.captures_directory.stat().st_mode & 0o077 == 0
    monkeypatch.setattr(captures, "MOST_BYTES", 24)
    # It ends at its length, long before the time is over.
    assert capture({"link": "s2-s1", "duration_s": 60})["frames"] == 7
    monkeypatch.setattr(captures, "MOST_BYTES_IN_ALL", 40)
    assert capture({"link": "s1:2"})["frames"] == 7
    with pytest.raises(EmulationError, match="remove some captures there"):
        capture({"link": "h1"})


def test_only_traffic_that_runs_is_shown_and_stopped(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[Process] = []
    monkeypatch.setattr(processes, "end", ended.extend)
    actions = actions_of(names)
    assert actions["traffic-stop"]({}) == {"stopped": None}
    sends(names, Process(2**22, 5))
    assert running_traffic.running(names) is None
    assert actions["traffic-stop"]({}) == {"stopped": None}
    assert ended == []
    ours = processes.ourselves()
    sends(names, ours)
    with pytest.raises(EmulationError, match="traffic tornado runs already"):
        actions["traffic-start"]({"pattern": "shift:2"})
    assert actions["traffic-stop"]({})["stopped"]["pattern"] == "tornado"
    assert ended == [ours]
    names.traffic_file.write_text('{"pattern": "x"}')
    assert running_traffic.running(names) is None


def test_a_release_empties_the_fabric_and_restores_its_flow_control(
    names: Names, fake: FakeFabric
) -> None:
    fake.freeze(1000)
    with pytest.raises(EmulationError, match="deadlocked already"):
        demonstration.freeze(names)
    assert actions_of(names)["release"]({}) == {"released": True}
    assert fake.resets == ["none", "pause"]


def test_the_program_gets_the_flows_of_a_pattern(names: Names) -> None:
    fabric = load("ring,4,hosts=2")
    messages: running_traffic.BySource = {
        0: [(4, 0.0, None), (5, 0.5, 7)],
        3: [(4, 0.0, None)],
    }
    wanted = running_traffic._wanted(names, fabric, messages, 10.0)
    spaces = [f"/run/netns/kn-t.h{number}" for number in (1, 4, 5, 6)]
    assert wanted["receivers"] == spaces[2:]
    assert [sender["namespace"] for sender in wanted["senders"]] == spaces[:2]
    addresses = [host.ip for host in fabric.hosts]
    assert [sender["messages"] for sender in wanted["senders"]] == [
        [(addresses[4], 0.0, None), (addresses[5], 0.5, 7)],
        [(addresses[4], 0.0, None)],
    ]
    # 1,538 bytes with preamble and gap at 10 Mbit/s.
    assert wanted["senders"][0]["interval_s"] == pytest.approx(8 * 1538 / 10e6)


@dataclass
class Ends:
    """Two receivers of datagrams and a clock."""

    sockets: list[socket.socket]
    now_s: float = 100.0

    def came(self) -> list[int]:
        """Return how many datagrams each has received since the last call."""
        counts = []
        for end in self.sockets:
            count = 0
            with contextlib.suppress(BlockingIOError):
                while end.recv(2000):
                    count += 1
            counts.append(count)
        return counts


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ends]:
    monkeypatch.setattr(namespaces, "inside", lambda _: contextlib.nullcontext())
    with contextlib.ExitStack() as stack:
        own = Ends([])
        port = 0
        for address in ("127.0.0.1", "127.0.0.2"):
            end = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            end.bind((address, port))
            end.setblocking(False)
            port = end.getsockname()[1]
            own.sockets.append(end)
        monkeypatch.setattr(traffic_program, "DISCARD_PORT", port)
        monkeypatch.setattr("knotless.emulation.traffic_program.time.monotonic", lambda: own.now_s)
        yield own


@contextlib.contextmanager
def sender_of(
    ends: Ends, interval_s: float, *messages: tuple[str, float, int | None]
) -> Iterator[traffic_program.Sender]:
    sender = traffic_program.Sender("ours", interval_s, messages)
    sender.begin(ends.now_s)
    with sender.socket:
        yield sender


def test_a_sender_takes_its_destinations_in_turn_and_keeps_its_rate(ends: Ends) -> None:
    endless = (("127.0.0.1", 0.0, None), ("127.0.0.2", 0.0, None))
    with sender_of(ends, 1.0, *endless) as sender:
        assert sender.send()
        assert ends.came() == [1, 0]
        assert sender.send()
        assert ends.came() == [0, 0]
        ends.now_s += 3.0
        assert sender.send()
        assert ends.came() == [1, 2]
        # After a long time without room it does not send all at once.
        ends.now_s += 1e6
        assert sender.send()
        assert sum(ends.came()) == traffic_program.MOST_AT_ONCE


def test_messages_begin_at_their_times_and_end(ends: Ends) -> None:
    messages = (("127.0.0.2", 2.0, 3), ("127.0.0.1", 0.0, 5))
    with sender_of(ends, 1.0, *messages) as sender:
        assert sender.send()
        ends.now_s += 1.5
        assert sender.send()
        assert ends.came() == [2, 0]
        ends.now_s += 2.5  # two before the other begins and one of it are due, then they take turns
        assert sender.send()
        assert ends.came() == [2, 1]
        ends.now_s += 100.0
        assert sender.send()
        assert ends.came() == [1, 2]
        assert sender.next_s == math.inf


def test_what_begins_later_is_waited_for(ends: Ends) -> None:
    with sender_of(ends, 0.0, ("127.0.0.1", 0.0, 2), ("127.0.0.2", 7.0, 1)) as sender:
        assert sender.send()
        assert ends.came() == [2, 0]
        assert sender.next_s == 107.0
        ends.now_s = 107.0
        assert sender.send()
        assert ends.came() == [0, 1]
