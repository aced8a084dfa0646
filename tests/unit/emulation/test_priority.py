"""The priority of the parts of a fabric."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from knotless.base.errors import EmulationError
from knotless.base.nice import set_nice
from knotless.cli.commands.up import command as up
from knotless.cli.priority import default_priority_option
from knotless.emulation.network import EmulatedFabric
from knotless.emulation.priority import (
    NICE,
    REALTIME_PRIORITIES,
    SLICE_US,
    VARIABLE,
    Part,
    Priority,
    default_priority,
    prioritise,
    prioritise_program,
    start_program,
)
from knotless.topologies import load


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """Return a process that leads a session."""
    program = (
        "import threading, signal; t = threading.Thread(target=signal.pause); print(flush=True)"
    )
    argv = [sys.executable, "-c", f"{program}; signal.pause()"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.send_signal(signal.SIGKILL)


def niceness(pid: int) -> int:
    return os.getpriority(os.PRIO_PROCESS, pid)


def test_a_program_is_nice_from_its_first_instruction_on() -> None:
    told: list[str] = []

    def begin() -> subprocess.Popen[str]:
        program = subprocess.Popen(
            ["cat", "/proc/self/stat"], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        told.append(program.communicate()[0])  # it has ended before anybody can change its niceness
        return program

    before = niceness(0)
    assert start_program(Part.HOST, Priority.NORMAL, begin).returncode == 0
    assert int(told[0].rpartition(")")[2].split()[16]) == max(NICE, before)
    assert niceness(0) == before


@pytest.mark.parametrize("part", Part)
def test_every_part_is_nice_to_other_programs(part: Part, child: subprocess.Popen[bytes]) -> None:
    prioritise(part, Priority.NORMAL, child.pid)
    assert os.sched_getscheduler(child.pid) == os.SCHED_OTHER
    assert niceness(child.pid) == max(NICE, niceness(0))
    assert 0 < NICE <= 5


def test_what_waits_for_each_other_runs_for_short_times(child: subprocess.Popen[bytes]) -> None:
    prioritise(Part.EMULATOR, Priority.NORMAL, child.pid)
    text = Path(f"/proc/{child.pid}/sched").read_text()
    slices = [line.split()[-1] for line in text.splitlines() if line.startswith("se.slice ")]
    if not slices or not kernel_has_slices():
        pytest.skip("this kernel has no slices of threads")
    assert slices == [str(1000 * SLICE_US)]


def kernel_has_slices() -> bool:
    return tuple(map(int, platform.release().split(".")[:2])) >= (6, 12)


def test_a_process_that_is_nicer_stays_so(child: subprocess.Popen[bytes]) -> None:
    set_nice(child.pid, 12)
    prioritise(Part.HOST, Priority.NORMAL, child.pid)
    assert niceness(child.pid) == 12


def test_a_process_that_has_ended_is_no_mistake(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()
    for priority in Priority:
        prioritise(Part.SWITCHES, priority, child.pid)


def test_hosts_and_databases_have_no_real_time_priority(child: subprocess.Popen[bytes]) -> None:
    before = niceness(child.pid)
    for part in [part for part in Part if part not in REALTIME_PRIORITIES]:
        prioritise(part, Priority.REALTIME, child.pid)
        assert (os.sched_getscheduler(child.pid), niceness(child.pid)) == (os.SCHED_OTHER, before)
    assert max(REALTIME_PRIORITIES.values()) == REALTIME_PRIORITIES[Part.EMULATOR]


def test_programs_that_measure_have_the_priority_of_their_fabric(
    child: subprocess.Popen[bytes],
) -> None:
    prioritise_program(child.pid, {VARIABLE: "nonsense"})
    assert os.sched_getscheduler(child.pid) == os.SCHED_OTHER
    assert niceness(child.pid) == max(NICE, niceness(0))
    fabric = EmulatedFabric(load("flat,2"), priority="realtime")
    assert fabric.program_environment()[VARIABLE] == "realtime"


def test_roles_name_the_kind_of_their_part() -> None:
    roles = ("emulator", "ovs-vswitchd", "ovs-vswitchd-2", "ovsdb-server-3", "controller-2")
    assert [Part.of_role(role) for role in (*roles, "forwarder", "another")] == [
        Part.EMULATOR,
        Part.SWITCHES,
        Part.SWITCHES,
        Part.DATABASE,
        Part.CONTROLLER,
        Part.FORWARDER,
        Part.HOST,
    ]


def test_a_fabric_has_ordinary_priority_unless_asked_otherwise() -> None:
    assert EmulatedFabric(load("flat,2")).settings()["priority"] == Priority.NORMAL
    token = default_priority.set(Priority.REALTIME)
    try:
        assert EmulatedFabric(load("flat,2")).settings()["priority"] == Priority.REALTIME
        one = EmulatedFabric(load("flat,2"), priority="normal")
        assert one.settings()["priority"] == Priority.NORMAL
    finally:
        default_priority.reset(token)
    with pytest.raises(EmulationError, match="priority 'high': one of normal, realtime"):
        EmulatedFabric(load("flat,2"), priority="high")


def test_the_option_is_the_default_of_a_command_and_of_nothing_else() -> None:
    seen: list[Priority] = []

    @click.command()
    @default_priority_option
    def command() -> None:
        seen.append(default_priority.get())

    assert CliRunner().invoke(command, ["--priority", "realtime"]).exit_code == 0
    assert CliRunner().invoke(command).exit_code == 0
    assert seen == [Priority.REALTIME, Priority.NORMAL]
    assert default_priority.get() == Priority.NORMAL
    assert CliRunner().invoke(up, ["ring,4", "--priority", "high"]).exit_code == 2
