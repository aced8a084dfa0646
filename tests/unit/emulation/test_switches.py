"""Stopping and starting switches: the order of the requests, and mistakes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from knotless.base.errors import EmulationError
from knotless.cli.commands import switch as command
from knotless.emulation import names as fabric_names
from knotless.emulation import ovs_process, processes, runtime, state
from knotless.emulation.cuts import Cables
from knotless.emulation.daemon import Daemon
from knotless.emulation.names import Names, names_of
from knotless.emulation.ovs import PrivateOvs
from knotless.emulation.ovs_process import OvsProcess
from knotless.emulation.state import State
from knotless.emulation.switches import Switches
from knotless.topologies import load
from knotless.topologies.fabric import Switch
from knotless.topologies.formats.files import to_text
from tests.support.waiting import until


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Names:
    """Return the names of a fabric that runs, as its files say, with two Open vSwitch processes."""
    for module in (fabric_names, runtime):
        monkeypatch.setattr(module, "RUN_DIRECTORY", tmp_path)
    names = names_of("lab")
    names.ovs_directory.mkdir(parents=True)
    names.fabric_file.write_text(to_text(load("ring,4")))
    settings = {"switch_processes": 2, "controller": "ryu"}
    current = State("lab", "ring,4", processes.ourselves(), phase="ready", settings=settings)
    state.write(names, current)
    return names


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of what Open vSwitch, emulator and kernel are asked, in order."""
    asked: list[str] = []

    def vsctl(self: OvsProcess, *commands: Any, options: Any = ()) -> str:
        del options
        words = [word for words in commands for word in words]
        bridges = [words[i + 1] for i, word in enumerate(words) if word in ("add-br", "del-br")]
        asked.append(f"{self.namespace}: {words[1]} {' '.join(bridges)}")
        return ""

    def switch(_self: Daemon, name: str, *, up: bool) -> None:
        asked.append(f"emulator: {name} {'up' if up else 'down'}")

    def carriers(_self: Cables, switches: set[str]) -> None:
        asked.append(f"carriers: {' '.join(sorted(switches))}")

    monkeypatch.setattr(OvsProcess, "vsctl", vsctl)
    monkeypatch.setattr(OvsProcess, "check_ports", lambda _self, _ports: None)
    monkeypatch.setattr(OvsProcess, "prioritise", lambda _self: None)
    monkeypatch.setattr(OvsProcess, "pid", 1)
    monkeypatch.setattr(Daemon, "set_switch", switch)
    monkeypatch.setattr(Cables, "update_carriers", carriers)
    return asked


def test_frames_go_before_the_bridge_and_come_after_it(lab: Names, calls: list[str]) -> None:
    Switches(lab).stop("s3")
    assert state.stopped_switches(lab) == {"s3"}
    there = "kn-lab.-2"
    assert calls == ["emulator: s3 down", "carriers: s3", f"{there}: del-br s3"]
    calls.clear()
    Switches(lab).start("s3")
    assert state.stopped_switches(lab) == set()
    assert calls == [f"{there}: add-br s3", "carriers: s3", "emulator: s3 up"]


def test_switches_of_several_processes_restart_in_one_transaction_each(
    lab: Names, calls: list[str]
) -> None:
    Switches(lab).stop("s4")
    calls.clear()
    Switches(lab).restart("s1", "s2", "s4")
    bridges = [call for call in calls if call.startswith("kn-")]
    assert bridges == [
        "kn-lab: del-br s1 s2" if "kn-lab: del-br s1 s2" in bridges else "kn-lab: del-br s2 s1",
        "kn-lab: add-br s1 s2",
        "kn-lab.-2: add-br s4",
    ]
    assert state.stopped_switches(lab) == set()


@pytest.mark.parametrize("revived", [[], ["s3", "s4"]])
def test_of_all_those_whose_process_is_new_need_no_restart(
    lab: Names, calls: list[str], monkeypatch: pytest.MonkeyPatch, revived: list[str]
) -> None:
    monkeypatch.setattr(PrivateOvs, "revive", lambda _self: set(revived))
    Switches(lab).stop("s4")
    calls.clear()
    assert Switches(lab).restart_all() == revived
    started = {call for call in calls if call.startswith("emulator") and call.endswith("up")}
    expected = {"s1", "s2", "s4"} if revived else {"s1", "s2", "s3", "s4"}
    assert started == {f"emulator: {name} up" for name in expected}
    assert state.stopped_switches(lab) == set()


@pytest.mark.parametrize(
    ("action", "name", "complaint"),
    [
        ("stop", "s9", "no switch 's9'; switches are s1, s2, s3, s4"),
        ("restart", "h1", "no switch 'h1'; "),
        ("stop", "s2", "switch s2 is stopped"),
        ("start", "s1", "switch s1 is not stopped"),
    ],
)
def test_mistakes_are_one_line_and_change_nothing(
    lab: Names, calls: list[str], action: str, name: str, complaint: str
) -> None:
    Switches(lab).stop("s2")
    calls.clear()
    with pytest.raises(EmulationError, match=complaint):
        getattr(Switches(lab), action)(name)
    assert calls == []
    assert state.stopped_switches(lab) == {"s2"}


def test_a_switch_without_process_names_the_command_that_starts_it(
    lab: Names, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def died(_self: OvsProcess) -> int:
        raise EmulationError("ovs-vswitchd has died: its log is empty")

    monkeypatch.setattr(OvsProcess, "pid", property(died))
    with pytest.raises(EmulationError, match="switch s1: .* 'knotless switch restart --all'"):
        Switches(lab).restart("s1")
    assert calls == []


def test_without_the_emulator_nothing_stops(
    lab: Names, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(_self: Daemon, _name: str, *, up: bool) -> None:
        raise EmulationError(f"the link emulator does not answer: {up}")

    monkeypatch.setattr(Daemon, "set_switch", silent)
    with pytest.raises(EmulationError, match="does not answer"):
        Switches(lab).stop("s1")
    assert calls == []
    assert state.stopped_switches(lab) == set()


@pytest.mark.usefixtures("calls")
@pytest.mark.parametrize("action", ["stop", "start"])
@pytest.mark.parametrize("fails", ["emulator", "record", "carriers", "bridges"])
def test_whichever_effect_fails_the_switches_are_as_they_were(
    lab: Names, monkeypatch: pytest.MonkeyPatch, action: str, fails: str
) -> None:
    """One of s1 and s2 has changed when the request for the other one fails, once."""
    switches = Switches(lab)
    if action == "start":
        switches.stop("s1", "s2")
    emulator = dict.fromkeys(("s1", "s2"), action == "stop")
    bridges = set(emulator) if action == "stop" else set[str]()
    carriers = list[frozenset[str]]()
    failed = list[str]()

    def step(what: str, count: int = 1) -> None:
        if what == fails:
            failed.append(what)
            if len(failed) == count:
                raise EmulationError("refused")

    def switch(_self: Daemon, name: str, *, up: bool) -> None:
        step("emulator", 2)
        emulator[name] = up

    def update(_self: Cables, _switches: set[str]) -> None:
        step("carriers")
        carriers.append(state.stopped_switches(lab))

    def add(_self: PrivateOvs, added: Sequence[Switch], *_: object) -> None:
        bridges.update(one.name for one in added)
        step("bridges")

    def remove(_self: PrivateOvs, removed: set[str]) -> None:
        step("bridges")
        bridges.difference_update(removed)

    def record(stopped: Collection[str]) -> None:
        step("record")
        write(stopped)

    write = switches._write
    monkeypatch.setattr(Daemon, "set_switch", switch)
    monkeypatch.setattr(Cables, "update_carriers", update)
    monkeypatch.setattr(PrivateOvs, "add_switches", add)
    monkeypatch.setattr(PrivateOvs, "remove_switches", remove)
    monkeypatch.setattr(switches, "_write", record)
    was = (dict(emulator), set(bridges), state.stopped_switches(lab))
    with pytest.raises(EmulationError, match="^refused$"):
        getattr(switches, action)("s1", "s2")
    assert (emulator, bridges, state.stopped_switches(lab)) == was
    assert carriers[-1:] in ([], [was[2]])


@pytest.fixture
def other(lab: Names) -> Iterator[subprocess.Popen[bytes]]:
    """Return a process whose name is that of Open vSwitch."""
    program = lab.directory / "ovs-vswitchd"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([str(program), "60"]) as child:
        # The kernel names a process a moment after the pipe is closed for which Popen waits.
        name = Path(f"/proc/{child.pid}/comm")
        until("the process has its name", lambda: name.read_text() == "ovs-vswitchd\n")
        yield child
        child.kill()


def test_a_part_started_by_hand_is_known_by_its_pid_file(
    lab: Names, other: subprocess.Popen[bytes]
) -> None:
    file = lab.ovs_directory / "ovs-vswitchd.pid"
    assert ovs_process.by_hand(lab, "ovs-vswitchd") is None
    for text in ("", "no number", "1", str(2**22 + 1)):
        file.write_text(text)
        assert ovs_process.by_hand(lab, "ovs-vswitchd") is None
    file.write_text(f"{other.pid}\n")
    found = ovs_process.by_hand(lab, "ovs-vswitchd")
    assert found is not None
    assert found.pid == other.pid
    file.rename(lab.ovs_directory / "ovsdb-server.pid")
    assert ovs_process.by_hand(lab, "ovsdb-server") is None, "it is another program"
    other.kill()
    file.write_text(f"{other.pid}\n")
    other.wait()
    assert ovs_process.by_hand(lab, "ovs-vswitchd") is None


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["restart"], "name a switch"),
        (["stop"], "name a switch"),
        (["restart", "s1", "--all"], "--all names every switch: omit the others"),
        (["stop", "--all"], "No such option: --all"),
    ],
)
def test_wrong_words_are_refused(
    words: list[str], complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "require_fabrics", lambda: None)
    done = CliRunner(mix_stderr=False).invoke(command.command, words)
    assert done.exit_code == 2
    assert complaint in done.stderr


def test_the_command_prints_what_became_of_the_switches(
    lab: Names, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    del lab, calls
    monkeypatch.setattr(command, "require_fabrics", lambda: None)
    monkeypatch.setattr(PrivateOvs, "revive", lambda _self: {"s1"})
    run = CliRunner().invoke
    assert run(command.command, ["stop", "s1", "s3", "--name", "lab"]).output == "s1, s3: stopped\n"
    done = run(command.command, ["start", "s3", "--name", "lab", "--json"])
    assert json.loads(done.output) == {"fabric": "lab", "started": ["s3"]}
    done = run(command.command, ["restart", "--all", "--name", "lab"])
    assert done.output.splitlines() == [
        "all switches: restarted",
        "  Open vSwitch had died, and runs again, of: s1",
    ]
