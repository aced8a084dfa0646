"""Whether the parts of a running fabric answer: each is asked something that it must compute.

A part that exists may still have stopped. All parts are asked at the same time, and a part that
does not answer within :data:`ANSWER_LIMIT_S` is silent; time in which it or the one that asks waits
for a processor does not count.
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from knotless.base.errors import EmulationError, KnotlessError
from knotless.emulation.names import Names
from knotless.emulation.patience import Patience
from knotless.emulation.processes import is_stopped

ANSWER_LIMIT_S = 2.0
LONGEST_S = 15.0
"""However busy the machine is, an answer is awaited no longer than this."""
_LOOK_EVERY_S = 0.05
_SOCKET_LIMIT_S = 20.0
"""For threads that nobody waits for any more."""
_ANSWER_LIMIT_BYTES = 1 << 20


@dataclass(frozen=True)
class Question:
    """A question to a part. ``pid`` is None if its process is not ours.

    ``ask`` raises KnotlessError if the answer is none.
    """

    pid: int | None
    ask: Callable[[], Any]


@dataclass(frozen=True)
class Answer:
    """The answer of a part, or one line that says why there is none.

    A part that ``is_silent`` runs, and has not answered in time.
    """

    value: Any = None
    problem: str | None = None
    is_silent: bool = False


def ask_all(
    questions: Mapping[str, Question], limit_s: float = ANSWER_LIMIT_S
) -> dict[str, Answer]:
    """Return the answer of each part, by role. It always ends: see :data:`LONGEST_S`."""
    answers: dict[str, Answer] = {}
    has_answered = threading.Condition()

    def ask(role: str, question: Question) -> None:
        try:
            answer = Answer(question.ask())
        except KnotlessError as error:
            answer = Answer(problem=str(error))
        except (OSError, LookupError, TypeError, ValueError) as error:
            answer = Answer(problem=f"the answer of {role} is not understood: {error!r}"[:200])
        with has_answered:
            answers[role] = answer
            has_answered.notify()

    patience = {
        role: Patience.with_processes(limit_s, question.pid) for role, question in questions.items()
    }
    for role, question in questions.items():
        threading.Thread(target=ask, args=(role, question), name=role, daemon=True).start()
    silent: dict[str, Answer] = {}
    end_s = time.monotonic() + LONGEST_S
    with has_answered:
        while waiting := questions.keys() - answers.keys() - silent.keys():
            has_answered.wait(_LOOK_EVERY_S)
            is_end = time.monotonic() > end_s
            for role in waiting - answers.keys():
                if patience[role].is_over() or is_end:
                    silent[role] = _silent(role, questions[role].pid, limit_s)
        # One that answers after all is not silent.
        return {role: answers.get(role) or silent[role] for role in questions}


def _silent(role: str, pid: int | None, limit_s: float) -> Answer:
    which = role if pid is None else f"{role} (pid {pid})"
    line = f"{which} does not answer within {limit_s:g} s"
    if pid is not None and is_stopped(pid):
        line += f": it is stopped, and 'kill -CONT {pid}' has it go on"
    return Answer(problem=line, is_silent=True)


def json_rpc(path: Path, method: str, params: Sequence[object]) -> Any:
    """Return the result of a request to a part of Open vSwitch; RFC 7047, 4.

    Raises :class:`EmulationError` if there is none.
    """
    request = json.dumps({"method": method, "params": list(params), "id": 0}).encode()
    decoder, text = json.JSONDecoder(), ""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_SOCKET_LIMIT_S)
            connection.connect(str(path))
            connection.sendall(request)
            while len(text) < _ANSWER_LIMIT_BYTES:
                piece = connection.recv(1 << 16)
                if not piece:
                    break
                text += piece.decode("utf-8", "replace")
                try:
                    answer, _ = decoder.raw_decode(text)
                except ValueError:
                    continue
                if isinstance(answer, dict) and answer.get("error") is None:
                    return answer.get("result")
                break
    except OSError as error:
        raise EmulationError(f"{path.name} does not answer: {error}") from error
    raise EmulationError(f"{path.name} answers {text[:80]!r} to {method}")


def ask_database(names: Names, role: str) -> Any:
    """Have an ovsdb-server find its bridges; raises :class:`EmulationError`."""
    path = names.ovs_directory / f"{role.replace('ovsdb-server', 'db')}.sock"
    select = {"op": "select", "table": "Bridge", "where": [], "columns": ["name"]}
    return json_rpc(path, "transact", ["Open_vSwitch", select])


def ask_switch_daemon(names: Names, pid: int) -> Any:
    """Have an ovs-vswitchd list its bridges; raises :class:`EmulationError`."""
    return json_rpc(names.ovs_directory / f"ovs-vswitchd.{pid}.ctl", "ofproto/list", [])


def ask_page(names: Names) -> Any:
    """Have the server of the page tell its state; raises :class:`EmulationError`."""
    try:
        address = urlsplit(names.page_file.read_text(encoding="utf-8").strip()).netloc
        connection = http.client.HTTPConnection(address, timeout=_SOCKET_LIMIT_S)
        try:
            connection.request("GET", "/api/state")
            return json.load(connection.getresponse())
        finally:
            connection.close()
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise EmulationError(f"the page does not answer: {error}") from error


def ask_supervisor(names: Names) -> Any:
    """Have the process that owns a fabric tell which of its parts run.

    Raises :class:`EmulationError`.
    """
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_SOCKET_LIMIT_S)
            connection.connect(str(names.supervisor_socket))
            with connection.makefile("rb") as reader:
                return json.loads(reader.readline(_ANSWER_LIMIT_BYTES))
    except (OSError, ValueError) as error:
        raise EmulationError(f"the supervisor does not answer: {error}") from error
