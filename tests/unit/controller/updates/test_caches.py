"""The controller waits until Open vSwitch has checked its cached entries."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from knotless.controller.updates.caches import AfterPurge, purge_megaflows
from knotless.controller.updates.quiescence import Quiescence

Reply = Callable[[dict[str, Any]], dict[str, Any] | None]


@contextmanager
def switch_daemon(directory: Path, pid: int, reply: Reply) -> Iterator[list[dict[str, Any]]]:
    """Serve the control socket of an Open vSwitch; yield the requests. No reply: hang up."""
    requests: list[dict[str, Any]] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(directory / f"ovs-vswitchd.{pid}.ctl"))
        listener.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    while data := connection.recv(4096):
                        requests.append(json.loads(data))
                        answer = reply(requests[-1])
                        if answer is None:
                            break
                        connection.sendall(json.dumps(answer).encode())

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield requests
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def checked(request: dict[str, Any]) -> dict[str, Any]:
    return {"id": request["id"], "result": "", "error": None}


def refused(request: dict[str, Any]) -> dict[str, Any]:
    return {"id": request["id"], "result": None, "error": "can't wait on multiple udpifs."}


def hung_up(_: dict[str, Any]) -> None:
    return None


def test_each_process_removes_its_entries_and_ends_two_checks(tmp_path: Path) -> None:
    with (
        switch_daemon(tmp_path, 7, checked) as first,
        switch_daemon(tmp_path, 8, checked) as second,
    ):
        assert purge_megaflows(tmp_path) == []
    for requests in (first, second):
        assert [request["method"] for request in requests] == [
            "revalidator/purge",
            *["revalidator/wait"] * 2,
        ]


@pytest.mark.parametrize("reply", [refused, hung_up])
def test_what_does_not_check_is_named(tmp_path: Path, reply: Reply) -> None:
    with switch_daemon(tmp_path, 7, checked), switch_daemon(tmp_path, 8, reply):
        assert purge_megaflows(tmp_path) == ["ovs-vswitchd.8.ctl"]


def test_a_process_that_has_ended_has_no_entries(tmp_path: Path) -> None:
    with switch_daemon(tmp_path, 7, checked):
        pass
    assert (tmp_path / "ovs-vswitchd.7.ctl").exists()
    assert purge_megaflows(tmp_path) == []


class Steps:
    """A drain that takes one look."""

    problem = "s1:2"
    pause_s = 0.5

    def look(self) -> bool:
        return True


def test_the_drain_begins_when_all_have_checked() -> None:
    begun: list[Quiescence] = []

    def begin() -> Quiescence:
        begun.append(Steps())
        return begun[-1]

    answers = [["ovs-vswitchd.8.ctl"], []]
    waiting = AfterPurge(lambda: answers.pop(0), begin)
    assert waiting.problem is None
    assert not waiting.look()
    assert not begun
    assert waiting.problem is not None
    assert waiting.problem.startswith("ovs-vswitchd.8.ctl: Open vSwitch does not say")
    assert waiting.look()
    assert (len(begun), waiting.problem, waiting.pause_s) == (1, "s1:2", 0.5)
