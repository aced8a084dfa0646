"""An emulator's control socket and a controller's HTTP interface, with answers that a test sets."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from knotless.topologies.fabric import Fabric
from knotless.topologies.formats import files
from knotless.web.picture import Picture

CYCLE = ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]


class FakeFabric:
    """The state of a fabric that does not exist; the test changes it."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.now_us = 0
        self.deadlock: dict[str, Any] | None = None
        self.switches: dict[str, Any] = {
            switch.name: {"connected": True, "installed": True, "rules": 3}
            for switch in fabric.switches
        }
        self.problems: list[str] = []
        self.loops: list[dict[str, Any]] = []
        self.last_change: dict[str, Any] | None = None
        self.pausing_hosts: list[dict[str, Any]] = []
        self.changes: list[dict[str, Any]] = []
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.events: list[bytes] = []
        self.resets: list[str] = []
        self._counters = {
            channel.name: {"sent": 0, "probes": 0, "paused_us": 0, "queue": 0, "dropped": 0}
            for channel in Picture(fabric).channels
        }

    def pass_time(self, microseconds: int, **loads: float) -> None:
        """Let virtual time pass, with loads of channels, ``s1_2=0.5``."""
        self.now_us += microseconds
        for name, load in loads.items():
            counters = self._counters[name.replace("_", ":")]
            counters["sent"] += round(load * microseconds * 10 / 8 / 1000)

    def send_probes(self, channel: str, count: int) -> None:
        """Let probes of the controller pass a channel."""
        self._counters[channel]["probes"] += count

    def freeze(self, microseconds: int) -> None:
        """Let time pass in a deadlock of the ring."""
        self.now_us += microseconds
        for channel in CYCLE:
            counters = self._counters[channel.partition("/")[0]]
            counters["paused_us"] += microseconds
            counters["queue"] = 30_000
        macs = [host.mac for host in self.fabric.hosts]
        self.deadlock = self.deadlock or {
            "since_us": self.now_us,
            "cycle": CYCLE,
            "members": CYCLE,
            "waiting": {CYCLE[0]: [{"from": macs[0], "to": macs[2], "bytes": 4000}]},
        }

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer as the emulator does."""
        if request["do"] == "counters":
            picture = Picture(self.fabric)
            channels = [self._channel(channel) for channel in picture.channels]
            return {"now_us": self.now_us, "channels": channels, "lost_frames": 0, "nfqueue": {}}
        if request["do"] == "loops":
            hop = {"switch": "s2", "port": 3, "frame": "ff" * 60}
            return {"loops": [[{"channel": c, **hop} for c in o["channels"]] for o in self.loops]}
        if request["do"] == "reset":
            self.resets.append(request["flow_control"])
            self.deadlock = None
            return {"now_us": self.now_us}
        if request["do"] == "capture":
            Path(request["file"]).write_bytes(bytes(24))
            return {}
        if request["do"] == "capture-stop":
            return {"written": True, "packets": 7, "missed": 0}
        return {
            **{"stretch": 1.0, "stretch_now": 1.0, "slow_down": 1.0, "valid": True, "problems": []},
            **{"storms": [], "faulty_lines": [], "frames_in_network": 0, "holds": {}},
            "slowest_switch": None,
            "pausing_hosts": self.pausing_hosts,
            "deadlock": self.deadlock,
            "loops": self.loops,
        }

    def _channel(self, channel: Any) -> dict[str, Any]:
        counters = self._counters[channel.name]
        priorities = [
            {
                "priority": priority,
                "tx_frames": counters["sent"] + counters["probes"] if priority == 0 else 0,
                "tx_bytes": counters["sent"] * 980 + counters["probes"] * 64
                if priority == 0
                else 0,
                "paused_us": counters["paused_us"],
                "queue_bytes": counters["queue"] if priority == 0 else 0,
                "account_bytes": counters["queue"] if priority == 0 else 0,
            }
            for priority in range(8)
        ]
        return {
            "channel": channel.name,
            "link": channel.link,
            "rate_mbps": channel.rate_mbps,
            "up": True,
            "tx_frames": counters["sent"] + counters["probes"],
            "dropped_frames": counters["dropped"],
            "priorities": priorities,
        }

    def get(self, path: str) -> dict[str, Any] | None:
        """Answer as the controller does."""
        if path == "/status":
            return {
                **{"fabric": self.fabric.name, "engine": "dor", "flow_control": "pause"},
                **{"ready": True, "switches": self.switches, "problems": self.problems},
                **{"links_down": [], "hosts_down": [], "switches_down": [], "drained": []},
                "routes": {"failed": [], "changing": False, "older_rules": 0, "tier": None},
                **{"last_change": self.last_change, "unreachable": 0, "role": None},
                "check": {"acyclic": False, "flow_control": "pause", "cycle": CYCLE},
            }
        if path == "/changes":
            return {"count": len(self.changes), "changes": self.changes}
        return files.to_json(self.fabric) if path == "/fabric" else None

    @contextmanager
    def emulator(self, path: Path) -> Iterator[None]:
        """Serve the control socket."""
        fake = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                request = json.loads(self.rfile.readline())
                self.wfile.write(json.dumps({"ok": True, **fake.answer(request)}).encode() + b"\n")

        path.unlink(missing_ok=True)
        with socketserver.ThreadingUnixStreamServer(str(path), Handler) as server:
            yield from _served(server)

    @contextmanager
    def controller(self, port: int = 0) -> Iterator[int]:
        """Serve the REST interface; yields its port."""
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # noqa: N802 - the base class calls it so
                if self.path == "/events":
                    self.send_response(200)
                    self.end_headers()
                    self.wfile.writelines(fake.events)
                    return
                self._answer(fake.get(self.path))

            def do_POST(self) -> None:  # noqa: N802
                body = self.rfile.read(int(self.headers["content-length"]))
                fake.requests.append((self.path, json.loads(body)))
                done = not fake.requests[-1][1].get("dry_run", False)
                self._answer({"tier": 1, "rules_changed": 4, "performed": done, "steps": []})

            def _answer(self, content: dict[str, Any] | None) -> None:
                text = json.dumps(content or {"error": "no such thing"}).encode()
                self.send_response(200 if content else 404)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: Any) -> None:
                return

        with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
            server.daemon_threads = True
            for _ in _served(server):
                yield server.server_address[1]


def _served(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
