"""``knotless up --web`` on a real fabric: what its page is sent, and what it may do."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from scapy.utils import rdpcap

from knotless.emulation import processes
from knotless.emulation.daemon import Daemon
from knotless.emulation.names import Names
from knotless.topologies import load
from tests.support.fabric_fixtures import FREE_PORTS, Knotless, Remains
from tests.support.waiting import HANG_S, until

CYCLIC = ("--engine", "dor", "--vcs", "1", "--select", "low-port", "--flow-control", "pause")


class Server:
    """A client of the page's server."""

    def __init__(self, url: str, token: str) -> None:
        self._at, self._token = urlsplit(url), token

    def get(self, path: str) -> Any:
        return self._ask("GET", path, None)

    def act(self, name: str, **fields: Any) -> Any:
        return self._ask("POST", f"/api/actions/{name}", json.dumps(fields))

    def _ask(self, method: str, path: str, body: str | None) -> Any:
        connection = http.client.HTTPConnection(
            self._at.hostname or "", self._at.port, timeout=HANG_S
        )
        try:
            headers = {"Authorization": f"Bearer {self._token}"}
            connection.request(method, path, body, headers)
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def last(self) -> dict[str, Any]:
        """Return the last frame."""
        timeline = self.get("/api/timeline")
        number = timeline["first"] + len(timeline["times"]) - 1
        frames: list[dict[str, Any]] = self.get(f"/api/frames?first={max(0, number)}&count=1")
        return frames[0] if frames else {"knot": None, "rows": []}


@pytest.fixture
def server(names: Names, knotless: Knotless, remains: Remains) -> Iterator[Server]:
    words = ("up", "ring,4", *CYCLIC, "--allow-deadlock", "--name", names.name, *FREE_PORTS)
    done = knotless(*words, "--web", "--web-port", "0", "--json")
    try:
        assert done.returncode == 0, done.stderr
        yield Server(json.loads(done.stdout)["web"], names.token_file.read_text().strip())
    finally:
        knotless("down", "--name", names.name)
    assert remains(names) == []


@pytest.mark.smoke
def test_a_page_of_a_real_fabric(server: Server, names: Names) -> None:
    def settled() -> bool:
        state = server.get("/api/state")
        return all(
            (state.get(part) or {}).get(key)
            for part, key in (("fabric", "running"), ("emulator", "valid"), ("controller", "ready"))
        )

    until("fabric, emulator and controller are shown", settled)
    picture = server.get("/api/picture")
    assert (picture["fabric"], len(picture["channels"])) == ("ring,4", 16)
    text = server.get("/api/state")["controller"]["check"]["text"]
    assert text.startswith("CAN DEADLOCK under PAUSE: ")

    assert server.act("traffic-start", pattern="shift:1", rate_mbps=2)["traffic"]["flows"] == 4
    until("the load of a channel is shown", lambda: loads(server) >= {"h1", "s1:2"})
    assert server.get("/api/state")["traffic"]["pattern"] == "shift:1"
    captured = server.act("capture", link="s1:2", duration_s=0.5)
    assert captured["captured"] == "s1:2-s2:3"
    assert captured["file"] == str(names.captures_directory / "s1-2-s2-3.pcap")
    packets = rdpcap(captured["file"])
    assert len(packets) == captured["frames"] > 0
    assert "runs already" in server.act("freeze")["error"]
    assert server.act("traffic-stop")["stopped"]["pattern"] == "shift:1"

    cycle = ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]
    assert server.act("freeze")["cycle"] == cycle
    until("the page shows the deadlock", lambda: server.last()["knot"])
    knot = server.last()["knot"]
    assert knot["cycle"] == cycle
    assert {(flow["from"], flow["to"]) for flow in knot["waiting"]["s1:2/0"]} >= {("h1", "h3")}
    assert server.act("release") == {"released": True}
    until("the page shows that it is over", lambda: server.last()["knot"] is None)
    assert "no deadlock" in server.act("release")["error"]

    answer = server.act("cut", link="s1-s2")
    assert answer == {"link": "s1:2-s2:3", "up": False}
    until("the cut is shown", lambda: server.get("/api/state")["cut"])
    until(
        "the failure is told",
        lambda: "failures" in {event["kind"] for event in server.get("/api/events")},
    )
    assert server.act("mend", link="s1-s2")["up"]
    until("the mend is shown", lambda: not server.get("/api/state")["cut"])


def loads(server: Server) -> set[str]:
    """Return the channels that send in the last frame."""
    channels = server.get("/api/picture")["channels"]
    return {channels[row[0]]["name"] for row in server.last()["rows"] if row[2]}


@pytest.mark.usefixtures("server")
def test_traffic_ends_with_its_fabric_and_commands_do_what_the_page_does(
    names: Names, knotless: Knotless, tmp_path: Path
) -> None:
    def output_of(*words: str) -> dict[str, Any]:
        done = knotless(*words, "--name", names.name, "--json")
        assert done.returncode == 0, done.stderr
        output: dict[str, Any] = json.loads(done.stdout)
        return output

    assert output_of("freeze")["cycle"] == ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]
    assert output_of("release") == {"released": True}

    trace = tmp_path / "freeze.csv"
    checked = knotless(
        *("check", "--live", "--name", names.name, "--freeze", "--write-trace", str(trace))
    )
    assert checked.returncode == 1
    assert "h1 sends 122,880 bytes to h3" in checked.stdout
    assert output_of("traffic", "start", "--trace", str(trace))["traffic"]["flows"] == 4
    daemon = Daemon(names.emulator_socket, load("ring,4").switch_index)

    def is_frozen() -> bool:
        """Tell whether it is; send again what has left: on a busy machine, flows may not meet."""
        frozen = daemon.deadlock() is not None
        if not frozen and output_of("traffic", "status")["traffic"] is None:
            output_of("traffic", "start", "--trace", str(trace))
        return frozen

    until("the trace freezes it", is_frozen)
    deadlock = daemon.deadlock()
    assert deadlock is not None
    assert list(deadlock.cycle) == ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]
    assert output_of("release") == {"released": True}

    assert output_of("traffic", "start", "shift:1", "--rate", "2")["traffic"]["rate_mbps"] == 2
    file = tmp_path / "s1.pcap"
    captured = output_of("capture", "s1:2", str(file), "--duration", "0.3")
    assert len(rdpcap(str(file))) == captured["frames"] > 0
    pid = output_of("traffic", "status")["traffic"]["process"]
    assert knotless("down", "--name", names.name).returncode == 0
    assert processes.identify(pid) is None
