"""``knotless up --web`` on a real fabric: what its page is sent, and what it may do."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import pytest

from emulation.names import Names
from tests.integration.bare_fabric import until
from tests.integration.conftest import FREE_PORTS, Knotless, Remains

pytestmark = pytest.mark.integration

LIMIT_S = 40
CYCLIC = ("--engine", "dor", "--vcs", "1", "--select", "low-port", "--flow-control", "pause")
SEND = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
    while True:
        try:
            out.sendto(bytes(1400), (sys.argv[1], 5001))
        except OSError:
            pass
"""


class Server:
    """A client of the page's server."""

    def __init__(self, url: str, token: str) -> None:
        self._at, self._token = urlsplit(url), token

    def get(self, path: str) -> Any:
        return self._ask("GET", path, None)

    def act(self, name: str, **fields: Any) -> Any:
        return self._ask("POST", f"/api/actions/{name}", json.dumps(fields))

    def _ask(self, method: str, path: str, body: str | None) -> Any:
        connection = http.client.HTTPConnection(self._at.hostname or "", self._at.port, timeout=30)
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
        found: list[dict[str, Any]] = self.get(f"/api/frames?first={max(0, number)}&count=1")
        return found[0] if found else {"knot": None, "rows": []}


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


def test_a_page_of_a_real_fabric(server: Server, names: Names) -> None:
    def settled() -> bool:
        state = server.get("/api/state")
        return all(
            (state.get(part) or {}).get(key)
            for part, key in (("fabric", "running"), ("emulator", "valid"), ("controller", "ready"))
        )

    until("fabric, emulator and controller are shown", settled, LIMIT_S)
    picture = server.get("/api/picture")
    assert (picture["fabric"], len(picture["channels"])) == ("ring,4", 16)
    assert server.get("/api/state")["controller"]["check"]["acyclic"] is False

    with ExitStack() as stack:
        for source, target in (("h1", 3), ("h2", 4), ("h3", 1), ("h4", 2)):
            host = server_address(names, f"h{target}")
            command = ["ip", "netns", "exec", names.host_namespace(source), sys.executable]
            child = stack.enter_context(subprocess.Popen([*command, "-c", SEND, host]))
            stack.callback(child.kill)
        until("the page shows the deadlock", lambda: server.last()["knot"], LIMIT_S)
    knot = server.last()["knot"]
    assert knot["cycle"] == ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]
    flows = {(flow["from"], flow["to"]) for flow in knot["waiting"]["s1:2/0"]}
    assert flows == {("h1", "h3"), ("h4", "h2")}

    answer = server.act("cut", link="s1-s2")
    assert answer == {"link": "s1:2-s2:3", "up": False}
    until("the cut is shown", lambda: server.get("/api/state")["cut"], LIMIT_S)
    until(
        "the failure is told",
        lambda: "failures" in {event["kind"] for event in server.get("/api/events")},
        LIMIT_S,
    )
    assert server.act("mend", link="s1-s2")["up"]
    until("the mend is shown", lambda: not server.get("/api/state")["cut"], LIMIT_S)


def server_address(names: Names, host: str) -> str:
    """Return the address of a host of the fabric."""
    fabric = json.loads(names.fabric_file.read_text())
    return next(str(of["ip"]) for of in fabric["hosts"] if of["name"] == host)
