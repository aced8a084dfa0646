"""``knotless exec`` and ``attach``: the commands of their tutorial, in order, and their edges."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from knotless.emulation.names import Names
from knotless.emulation.network import EmulatedFabric
from knotless.emulation.running_fabric import RunningFabric
from knotless.routing.request import PlanRequest
from tests.support import REPOSITORY
from tests.support.fabric_fixtures import Knotless, new_fabric, new_names
from tests.support.terminal import Terminal
from tests.support.waiting import HANG_S

PAGE = REPOSITORY / "docs" / "tutorials" / "into-a-running-fabric.md"
PROMPT = "    mininet> "
COMMAND = str(Path(sys.executable).with_name("knotless"))


def steps() -> list[tuple[list[str], str]]:
    """Return the commands of the page, each with the lines that are typed at its prompt."""
    found: list[tuple[list[str], str]] = []
    for block in re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL):
        for line in block.splitlines():
            if line.startswith(PROMPT):
                words, typed = found[-1]
                found[-1] = (words, f"{typed}{line.removeprefix(PROMPT)}\n")
            else:
                words = line.split()
                assert words[:2] == ["sudo", "knotless"], line
                found.append((words[2:], ""))
    return found


def test_the_commands_of_the_tutorial_do_what_it_says(knotless: Knotless, names: Names) -> None:
    said = []
    for words, typed in steps():
        place = 2 if words[0] == "traffic" else 1
        named = [*words[:place], "--name", names.name, *words[place:]]
        if words[0] == "up":
            named += ["--rest-port", "0"]
        done = knotless(*named, input=typed)
        text = done.stdout + done.stderr
        # The routes can deadlock, which 'status' does not call a problem. That TCP may have noticed
        # a starved machine is one, and true.
        noticed = words[0] == "status" and "sent segments again in round trips" in text
        assert done.returncode == (1 if noticed else 0), (words, text)
        said.append(text)
    everything = "\n".join(said)
    assert "3 packets transmitted, 3 received" in everything
    assert "receiver" in everything  # iperf3's last line
    assert "0% dropped (12/12 received)" in everything
    assert "lost frames: 0" in everything
    assert "Explain a deadlock in sentences" in everything
    assert "CAN DEADLOCK under PAUSE" in everything
    assert "'why' explains it" in everything
    assert "4 channels wait for each other" in everything
    assert "s1:2: 10 Mbit/s, 500 us; loses 1 %" in everything
    assert re.search(r"line: s1:2: .*; [1-9][0-9]* frames lost so far", everything)
    assert "s1:2: 5 Mbit/s, 1000 us" in everything


@pytest.fixture(scope="module")
def fabric() -> Iterator[EmulatedFabric]:
    """Return a fabric which these tests share."""
    with new_fabric(new_names(), "ring,3", PlanRequest(engine="updown")) as running:
        yield running


def test_a_program_has_its_own_status_input_and_environment(
    fabric: EmulatedFabric, knotless: Knotless, tmp_path: Path
) -> None:
    own = ["exec", "--name", fabric.names.name, "h1"]
    assert knotless(*own, "sh", "-c", "exit 7").returncode == 7
    assert knotless(*own, "sh", "-c", "kill -TERM $$").returncode in (-signal.SIGTERM, 143)
    assert knotless(*own, "cat", input="through\n").stdout == "through\n"
    assert knotless(*own, "sh", "-c", "echo no >&2").stderr == "no\n"
    shown = knotless(*own, "env").stdout
    for key, value in fabric.program_environment().items():
        assert f"{key}={value}\n" in shown
        assert fabric.host("h1").cmd(f"printenv {key}").strip() == value
    spaces = knotless(*own, "readlink", "/proc/self/ns/net", "/proc/self/ns/mnt").stdout
    assert (
        spaces.split()
        == fabric.host("h1").cmd("readlink /proc/self/ns/net /proc/self/ns/mnt").split()
    )
    assert knotless(*own, "pwd", cwd=tmp_path).stdout == f"{tmp_path}\n"


def test_a_shell_on_a_host_has_the_terminal(
    fabric: EmulatedFabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", "/bin/sh")
    terminal = Terminal(COMMAND, "attach", "--name", fabric.names.name, "h1")
    try:
        terminal.type("sh -c 'echo be\"\"gun; exec sleep 600'\n")
        terminal.expect("begun")
        terminal.type("\x03")
        terminal.type('echo st""atus $?\n')
        terminal.expect(f"status {128 + signal.SIGINT}")
        terminal.type("exit 3\n")
        assert terminal.wait() == 3
    finally:
        terminal.close()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("h9", "ls"), "no host 'h9' in fabric"),
        (("ping", "h1", "h2"), "no host 'ping' in fabric"),
        (("h1", "no-such-program"), "there is no program 'no-such-program'"),
    ],
)
def test_what_is_not_there_is_one_line(
    fabric: EmulatedFabric, knotless: Knotless, words: tuple[str, ...], message: str
) -> None:
    done = knotless("exec", "--name", fabric.names.name, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr


def test_two_prompts_and_their_mistakes_leave_the_fabric_alone(
    fabric: EmulatedFabric, knotless: Knotless
) -> None:
    own = ["attach", "--name", fabric.names.name]
    lines = (
        "py 1/0\ncounters s9\ncut s1-s9\nlink s1 s9 down\nlink s1\nnonsense\nh9 ls\n"
        "switch s9 stop\ntraffic start no-such\nstatus --nonsense\ncut 's1\nh1 ping -c 1 h3\nexit\n"
    )
    with subprocess.Popen(
        [COMMAND, *own], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as other:
        done = knotless(*own, input=lines)
        assert other.poll() is None
        other.communicate("exit\n", timeout=HANG_S)
    assert (done.returncode, other.returncode) == (0, 0)
    text = done.stdout + done.stderr
    assert "Traceback" not in text
    assert "1 packets transmitted, 1 received" in text
    assert "no switch, host or channel 's9'" in text
    running = RunningFabric(fabric.names)
    running.cut("h1-s1")
    assert running.run("h1", "ping", "-c", "1", "-W", "1", "h2").returncode != 0
    running.mend("h1-s1")
    assert running.run("h1", "ping", "-c", "1", "h2").returncode == 0
    rows = {(row["channel"], row["priority"]): row for row in running.channels()}
    assert rows["h1", 0]["tx_frames"] > 0
    assert running.deadlock() is None


def test_a_prompt_that_outlives_its_fabric_says_so(names: Names) -> None:
    with new_fabric(names, "ring,3", PlanRequest(engine="updown")):
        attached = subprocess.Popen(
            [COMMAND, "attach", "--name", names.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ,
        )
        assert attached.stdin is not None
        assert attached.stdout is not None
        attached.stdin.write("deadlock\n")
        attached.stdin.flush()
        while "no deadlock" not in (line := attached.stdout.readline()):
            assert line
    output, _ = attached.communicate("pingall\n", timeout=HANG_S)
    assert attached.returncode == 0
    assert "has ended" in output
