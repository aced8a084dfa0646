"""Controllers of a world, each in a process of its own, alone or as an application of Ryu."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ryu.base.app_manager import AppManager
from ryu.controller.ofp_handler import OFPHandler

from knotless.base.errors import KnotlessError
from knotless.controller import process, runtime
from knotless.controller.app import KnotlessController
from knotless.controller.process import OPENFLOW_PORT
from knotless.controller.switches import Switches
from tests.seeded.hub import Process
from tests.seeded.streams import ListeningSocket, Stream

if TYPE_CHECKING:
    from tests.seeded.world import World


class Holdings(NamedTuple):
    """What a process of a controller holds: if it grows from fault to fault, something leaks."""

    threads: int
    connections: int
    sessions: int
    queued: int
    bytes: int


class Controller:
    """One controller; it can be killed and started again, and keeps its disk."""

    def __init__(self, world: World, name: str, config: Path, rest_port: int) -> None:
        self.world, self.name, self.config, self.rest_port = world, name, config, rest_port
        self.disk: dict[str, str] = {}
        self.starts = 0
        self.hung_until_s = 0.0
        self._reset()

    def _reset(self) -> None:
        self.process = Process(f"{self.name}.{self.starts}")
        self.bricks: dict[str, Any] = {}
        self.last_app: process.Controller | None = None
        """The controller, also if its process has ended: what it has sent still arrives."""
        self.listeners: dict[int, ListeningSocket] = {}
        self.signal_handlers: dict[int, Any] = {}
        self.died_of: str | None = None
        self.mastered_s: dict[str, float] = {}
        """When each switch has last made it its master, or confirmed that."""

    @property
    def is_running(self) -> bool:
        """Whether its process lives."""
        return self.starts > 0 and self.process.is_alive

    @property
    def app(self) -> process.Controller | None:
        """The controller, once it has begun."""
        return self.last_app if self.is_running else None

    @property
    def term(self) -> int:
        """The last term that the application knows of; 0 where it elects nobody."""
        switches = None if self.last_app is None else self.last_app.switches
        roles = switches.roles if isinstance(switches, Switches) else None
        return 0 if roles is None else roles.election.term

    def holdings(self) -> Holdings:
        """Return what the process holds of threads, connections, queued messages and files."""
        switches = self.app.switches if self.app is not None else None
        sessions = switches.connections.sessions.values() if isinstance(switches, Switches) else ()
        queued = sum(brick.events.qsize() for brick in self.bricks.values())
        queued += sum(session.connection.waiting for session in sessions)
        return Holdings(
            self.world.hub.threads(self.process),
            sum(
                connection.controller is self
                for switch in self.world.switches.values()
                for connection in switch.connections
            ),
            len(sessions),
            queued,
            sum(map(len, self.disk.values())),
        )

    def listening(self, *, ofp_port: bool) -> ListeningSocket | None:
        """Return the socket that accepts switches, or operators."""
        if not self.is_running:
            return None
        return self.listeners.get(OPENFLOW_PORT if ofp_port else self.rest_port)

    def start(self) -> None:
        """Start a new process; no other may start before it listens."""
        self.starts += 1
        self._reset()
        hub = self.world.hub
        hub.call_at(hub.now_s, self.process, runtime.spawn, self._main)

    def _main(self) -> None:
        try:
            if self.world.setting.with_ryu:
                self._start_ryu()
            else:
                self.last_app = process.Controller(lambda _settings: process.Options())
                self.last_app.serve_forever()
        except (KnotlessError, SystemExit) as error:
            self.died_of = f"{type(error).__name__}: {error}"
            self.kill()

    def _start_ryu(self) -> None:
        manager = AppManager()
        for kind in (OFPHandler, KnotlessController):
            manager._instantiate(None, kind)
        self.last_app = self.bricks["KnotlessController"].controller
        manager._update_bricks()
        for brick in list(self.bricks.values()):
            brick.start()

    def kill(self) -> None:
        """End the process: nothing of it runs any more, and its connections are reset."""
        self.process.is_alive = False
        self.world.record("kill", self.name, b"")
        for switch in self.world.switches.values():
            for connection in list(switch.connections):
                if connection.controller is self:
                    connection.stream.end_down()

    def hang(self, seconds: float) -> None:
        """Stop for some time, as a process that is suspended."""
        self.process.hangs_until_s = self.hung_until_s = self.world.hub.now_s + seconds

    def configure(self, option: str, value: str) -> None:
        """Set an option in the file of the configuration."""
        lines = self.config.read_text().splitlines()
        lines = [line for line in lines if not line.startswith(f"{option}:")]
        self.config.write_text("\n".join([*lines, f"{option}: {value}"]) + "\n")

    def reload(self) -> None:
        """Send SIGHUP."""
        handler = self.signal_handlers.get(signal.SIGHUP)
        if self.is_running and callable(handler):
            hub = self.world.hub
            hub.call_at(hub.now_s, self.process, handler, signal.SIGHUP, None)

    def request(self, path: str, body: dict[str, Any], token: str) -> None:
        """Have an operator request a change over HTTP; the answer is recorded."""
        listening = self.listening(ofp_port=False)
        if listening is None:
            return
        content = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Length: {len(content)}\r\nContent-Type: application/json\r\n\r\n"
        )
        name = f"operator-{self.process.name}-{self.world.events}"
        operator = _Operator(self.world, name, path, body)
        stream = Stream(self.world, self.process, name, operator)
        operator.stream = stream
        hub = self.world.hub
        hub.call_at(hub.now_s, self.process, listening.offer, stream)
        stream.send_up(head.encode() + content)


class _Operator:
    """Reads an answer and closes the connection."""

    def __init__(self, world: World, name: str, path: str, body: dict[str, Any]) -> None:
        self._world, self._name, self._answer = world, name, b""
        self._path, self._body = path, body
        self.stream: Stream | None = None

    def received(self, data: bytes) -> None:
        self._answer += data

    def ended(self) -> None:
        status = self._answer.split(b"\r\n", 1)[0]
        self._world.record("answer", self._name, status)
        code = int(status.split()[1]) if status else None
        self._world.service.answered(self._path, self._body, code)
        if self.stream is not None:
            self.stream.end_up()
