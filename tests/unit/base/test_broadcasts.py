"""Hosts that exceed the limit of their broadcasts, and what the controller tells the emulator."""

from __future__ import annotations

import json
import math
import socketserver
import threading
from pathlib import Path

import pytest

from knotless._core.simulator import BROADCAST_BURST_BYTES, BROADCAST_SHARE
from knotless.base.broadcasts import check_limit, problems
from knotless.base.errors import KnotlessError
from knotless.controller.emulator import EmulatorWatch

HOST = {"host": "h1", "share": 0.02, "limited": True, "frames": 7}


def test_a_host_over_its_limit_is_named() -> None:
    (line,) = problems({"broadcasting_hosts": [HOST]})
    assert "host h1 " in line
    assert "over 2 % of its line" in line
    assert "7 frames over, they were dropped" in line
    assert problems({"broadcasting_hosts": []}) == problems({}) == []


def test_without_a_limit_the_line_says_so() -> None:
    (line,) = problems({"broadcasting_hosts": [HOST | {"limited": False}]})
    assert "over 2 % of its line" in line
    assert "no limit is set" in line


@pytest.mark.parametrize(
    ("share", "burst_bytes", "named"),
    [
        (-0.1, 2000, "-0.1 of the line"),
        (1.1, 2000, "1.1 of the line"),
        (math.nan, 2000, "nan of the line"),
        (0.5, 1541, "1541 bytes"),
        (0.5, 2**40 + 1, "bytes are not in"),
    ],
)
def test_a_limit_that_is_not_possible_is_refused(
    share: float, burst_bytes: int, named: str
) -> None:
    with pytest.raises(KnotlessError, match=named):
        check_limit(share, burst_bytes)


def test_the_default_is_possible() -> None:
    check_limit(BROADCAST_SHARE, BROADCAST_BURST_BYTES)
    assert (BROADCAST_SHARE, BROADCAST_BURST_BYTES) == (0.02, 65_536)


class _Emulator(socketserver.ThreadingUnixStreamServer):
    """Answers one line for each connection and keeps what it was asked."""

    def __init__(self, path: Path) -> None:
        self.asked: list[dict[str, object]] = []
        super().__init__(str(path), _Line)


class _Line(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, _Emulator)
        self.server.asked.append(json.loads(self.rfile.readline()))
        self.wfile.write(b'{"ok": true}\n')


def test_the_emulator_is_told_which_groups_are_declared_when_they_change(tmp_path: Path) -> None:
    path = tmp_path / "emulator.sock"
    wanted: list[str] | None = None
    watch = EmulatorWatch(path, lambda *_, **__: None, lambda _: None, lambda: wanted)
    group = "03:00:00:00:00:01"
    with _Emulator(path) as emulator:
        threading.Thread(target=emulator.serve_forever, daemon=True).start()
        watch.declare({"declared_groups": []})  # this controller is not the active one
        wanted = [group]
        watch.declare({})  # no answer, or an emulator that has no limit
        watch.declare({"declared_groups": [group]})
        assert emulator.asked == []
        watch.declare({"declared_groups": []})
        wanted = []
        watch.declare({"declared_groups": [group]})
        emulator.shutdown()
    assert emulator.asked == [
        {"do": "groups", "addresses": [group]},
        {"do": "groups", "addresses": []},
    ]
    watch.declare({"declared_groups": [group]})  # it does not answer: the next status asks again
