"""Whether the parts of a fabric answer: those that run and have stopped are named, in any case."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from knotless.base.errors import EmulationError
from knotless.emulation import health, processes
from knotless.emulation.health import Question, ask_all, json_rpc
from knotless.emulation.processes import is_stopped
from tests.support.waiting import HANG_S, until

SLEEP = "import signal; print(flush=True); signal.pause()"
SPIN = "print(flush=True)\nwhile True: pass"


@pytest.fixture
def never() -> Iterator[threading.Event]:
    """Return what silent parts wait for; their threads end with the test."""
    event = threading.Event()
    yield event
    event.set()


@contextmanager
def process(code: str) -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        try:
            yield child.pid
        finally:
            child.kill()


def refuse() -> None:
    raise EmulationError("there is no answer")


def test_each_part_answers_for_itself(never: threading.Event) -> None:
    with process(SLEEP) as pid:
        os.kill(pid, signal.SIGSTOP)
        until("it is stopped", lambda: is_stopped(pid))
        questions = {
            "answers": Question(None, lambda: 7),
            "refuses": Question(None, refuse),
            "babbles": Question(None, lambda: json.loads("{")),
            "stopped": Question(pid, never.wait),
        }
        answers = ask_all(questions, 0.05)
    assert list(answers) == list(questions)
    assert (answers["answers"].value, answers["answers"].problem) == (7, None)
    assert answers["refuses"].problem == "there is no answer"
    assert "the answer of babbles is not understood" in str(answers["babbles"].problem)
    assert answers["stopped"].problem == (
        f"stopped (pid {pid}) does not answer within 0.05 s: it is stopped, and"
        f" 'kill -CONT {pid}' has it go on"
    )
    assert [role for role, answer in answers.items() if answer.is_silent] == ["stopped"]


@pytest.mark.parametrize("code", [SLEEP, SPIN], ids=["waits for another", "computes"])
def test_a_part_that_runs_and_does_not_answer_is_silent(never: threading.Event, code: str) -> None:
    with process(code) as pid:
        answer = ask_all({"emulator": Question(pid, never.wait)}, 0.05)["emulator"]
    assert answer.is_silent
    assert answer.problem == f"emulator (pid {pid}) does not answer within 0.05 s"


def test_time_without_a_processor_does_not_count_but_the_wait_ends(
    never: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The part wants a processor and gets none: its patience is never over."""
    monkeypatch.setattr("knotless.emulation.patience.effort_of", lambda _pids: (0.0, True))
    monkeypatch.setattr(health, "LONGEST_S", 1.0)
    answered = threading.Event()

    def answer_late() -> str:
        answered.wait(0.3)
        return "late"

    questions = {"late": Question(1, answer_late), "never": Question(1, never.wait)}
    answers = ask_all(questions, 0.01)
    assert answers["late"].value == "late"
    assert answers["never"].is_silent


@contextmanager
def server(path: Path, answers: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Answer one connection in pieces, and close it; yield what was received."""
    got: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                got.append(connection.recv(1 << 16))
                for piece in answers:
                    connection.sendall(piece)

        thread = threading.Thread(target=serve)
        thread.start()
        yield got
        thread.join(HANG_S)


def test_a_part_of_open_vswitch_answers_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "db.sock"
    with server(path, [b'{"id":0,"error":nu', b'll,"result":["s1"]}']) as got:
        assert json_rpc(path, "ofproto/list", []) == ["s1"]
    assert json.loads(got[0]) == {"method": "ofproto/list", "params": [], "id": 0}


@pytest.mark.parametrize(
    "answer", [b'{"id":0,"error":"no","result":null}', b"", b"{", b"{" * 9, b"[1]"]
)
def test_an_answer_that_is_none_is_one_line(tmp_path: Path, answer: bytes) -> None:
    path = tmp_path / "db.sock"
    with server(path, [answer]), pytest.raises(EmulationError) as raised:
        json_rpc(path, "list", [])
    assert "\n" not in str(raised.value)
    assert "db.sock answers" in str(raised.value)


def test_a_socket_that_nobody_serves_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(EmulationError, match=r"db\.sock does not answer"):
        json_rpc(tmp_path / "db.sock", "list", [])


def test_a_process_that_is_not_there_is_not_stopped() -> None:
    assert not is_stopped(processes.ourselves().pid)
    with process(SLEEP) as pid:
        pass
    assert not is_stopped(pid)
