"""The controller asks the emulator whether packets of older rules have left."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from knotless.controller.updates.quiescence import EmulatedQuiescence, is_quiescent
from knotless.topologies import load


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[tuple[Path, list[Any]]]:
    """Serve answers at a socket, one after the other; return it and the list of answers."""
    answers: list[Any] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        listener.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection, connection.makefile("rwb") as stream:
                    assert json.loads(stream.readline()) == {"do": "under-way"}
                    stream.write(json.dumps(answers.pop(0)).encode() + b"\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield tmp_path / "socket", answers
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def drain(path: Path, rounds: int = 2) -> EmulatedQuiescence:
    union = SimpleNamespace(fabric=load("ring,4"))
    progress = SimpleNamespace(quiescence_rounds=lambda: (rounds, False))
    update: Any = SimpleNamespace(progress=progress, union=union)
    return EmulatedQuiescence(update, path)


def under_way(arrived: int, coming: int) -> dict[str, Any]:
    return {"ok": True, "channels": {"h1": {}, "s1:2": {"0": [arrived, coming]}}}


def test_nothing_under_way_is_enough(emulator: tuple[Path, list[Any]]) -> None:
    path, answers = emulator
    answers.append(under_way(7, 0))
    assert drain(path).look()


def test_what_is_under_way_is_waited_for(emulator: tuple[Path, list[Any]]) -> None:
    path, answers = emulator
    waiting = drain(path, rounds=1)
    # The first round is that of the lines of hosts. New frames follow all the time.
    answers += [under_way(5, 2), under_way(6, 3), under_way(7, 3), under_way(9, 3)]
    assert not waiting.look()
    assert waiting.problem is not None
    assert waiting.problem.startswith("packets of older rules have not left s1:2: ")
    assert not waiting.look()
    assert not waiting.look()
    answers.append(under_way(10, 1))
    assert not waiting.look()
    assert waiting.look()


def test_frames_that_follow_from_a_host_are_not_waited_for(
    emulator: tuple[Path, list[Any]],
) -> None:
    path, answers = emulator
    waiting = drain(path)

    def flooded(arrived: int) -> dict[str, Any]:
        return {"ok": True, "channels": {"h1": {"0": [arrived, 100]}, "s1:2": {"0": [arrived, 1]}}}

    answers += [flooded(0), flooded(99), flooded(100), flooded(101), flooded(102)]
    assert not waiting.look()
    assert not waiting.look()
    assert waiting.problem is not None
    assert waiting.problem.startswith("packets of older rules have not left h1: ")
    assert [waiting.look() for _ in range(3)] == [False, False, True]


def test_another_step_that_begins_meanwhile_has_not_drained() -> None:
    current = [True]

    class Asking:
        problem, pause_s = None, 0.0

        def look(self) -> bool:
            current[0] = False
            return True

    assert not is_quiescent(Asking(), lambda: current[0])
    current[0] = True
    drained: Any = SimpleNamespace(look=lambda: True)
    assert is_quiescent(drained, lambda: current[0])


def test_an_answer_that_is_not_understood_proves_nothing(
    emulator: tuple[Path, list[Any]],
) -> None:
    path, answers = emulator
    waiting = drain(path)
    odds: list[Any] = [{}, [], {"channels": 7}, {"channels": {"s1:2": {"0": [1]}}}]
    for odd in odds:
        answers.append(odd)
        assert not waiting.look()
    assert not drain(path.with_name("nobody")).look()
