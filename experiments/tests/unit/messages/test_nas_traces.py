"""Messages between processes: recorded, read back, and replayed in the simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from knotless.base.errors import KnotlessError, SimulationError
from knotless.routing.plan import make_plan
from knotless.simulation.replay import replay
from knotless.simulation.tracefile import read_program, read_trace
from knotless.topologies import load
from knotless_experiments.framework.experiment import SIMULATION, Common
from knotless_experiments.messages.programs.communicator import Communicator
from knotless_experiments.messages.programs.local import run_local
from knotless_experiments.messages.programs.openmpi import agent_script, mpirun_command
from knotless_experiments.messages.programs.trace import (
    Event,
    Recorder,
    volumes,
    write_message_trace,
    write_program_trace,
)
from knotless_experiments.studies.nas import EXPERIMENT, presentation
from knotless_experiments.studies.nas.program import measured, read_part, write_part
from knotless_experiments.workloads.program_campaign import places

DEFAULTS: dict[str, Any] = {
    "fabric": (),
    "engines": "auto",
    "kernels": None,
    "problem_class": "S",
    "processes": None,
    "traces": None,
}


def step(process: int, kind: str, peer: int, size: int, seconds: float = 0.0) -> Event:
    return Event(process, kind, peer, size, seconds, 0.0)


def test_a_recorder_passes_on_and_writes_down() -> None:
    def program(communicator: Communicator) -> list[Event]:
        recorder = Recorder(communicator)
        peer = 1 - recorder.rank
        into = np.zeros(3)
        recorder.exchange(peer, np.full(3, 1.0 + recorder.rank), peer, into)
        assert into.tolist() == [2.0 - recorder.rank] * 3
        if recorder.rank == 0:
            recorder.send(1, np.zeros(5, np.uint8))
        else:
            recorder.receive(0, np.empty(5, np.uint8))
        return [event for event in recorder.events if event.kind != "compute"]

    zero, one = run_local(2, program)
    assert [(e.kind, e.peer, e.bytes) for e in zero] == [
        ("send", 1, 24),
        ("recv", 1, 24),
        ("send", 1, 5),
    ]
    assert [(e.kind, e.peer, e.bytes) for e in one][-1] == ("recv", 0, 5)
    assert volumes([*zero, *one], 2).tolist() == [[0, 29], [24, 0]]


def test_every_message_sent_is_received() -> None:
    parts = run_local(8, lambda communicator: measured(communicator, "mg", "S"))
    sent: dict[tuple[int, int], list[int]] = {}
    received: dict[tuple[int, int], list[int]] = {}
    for event in (event for part in parts for event in part.events):
        if event.kind == "send":
            sent.setdefault((event.process, event.peer), []).append(event.bytes)
        elif event.kind == "recv":
            received.setdefault((event.peer, event.process), []).append(event.bytes)
    assert sent == received
    assert all(part.seconds > 0 for part in parts)


def test_files_hold_what_was_recorded(tmp_path: Path) -> None:
    (part, _) = run_local(2, lambda communicator: measured(communicator, "is", "S"))
    write_part(tmp_path / "0.json", part)
    assert read_part(tmp_path / "0.json") == part
    write_program_trace(tmp_path / "p.csv", part.events)
    assert len(read_program(str(tmp_path / "p.csv"), 2)) == len(part.events)
    write_message_trace(tmp_path / "m.csv", part.events, ["h1", "h2"])
    read_trace(str(tmp_path / "m.csv"), load("ring,4"))


def test_a_replay_takes_what_the_lines_take() -> None:
    plan = make_plan(load("flat,3,rate=8,delay=100"), "updown")
    # 1,000 bytes: 1,038 of line at 1 byte/us, host to switch and switch to host, and two delays.
    once_s = 2 * (1038 + 100) * 1e-6
    ask = [step(0, "send", 1, 1000), step(0, "recv", 1, 1000)]
    answer = [
        step(1, "recv", 0, 1000),
        step(1, "compute", -1, 0, 0.25),
        step(1, "send", 0, 1000),
    ]
    outcome = replay(plan, [*ask, *answer])
    assert outcome.seconds == pytest.approx(2 * once_s, rel=0.01)
    assert outcome.ended == 3  # one host has nothing to do
    slower = replay(plan, [*ask, *answer], computing=2.0)
    assert slower.seconds - outcome.seconds == pytest.approx(0.5, rel=1e-6)
    assert replay(plan, [*ask, *answer]) == outcome
    assert replay(plan, [*ask, *answer], places=[2, 0]) == outcome


def test_a_replay_names_who_waits_in_vain() -> None:
    plan = make_plan(load("flat,2"), "updown")
    with pytest.raises(SimulationError, match="h2 waits for a message that nobody sends"):
        replay(plan, [step(1, "recv", 0, 10)])
    with pytest.raises(SimulationError, match="process 5 is not one of 0 to 1"):
        replay(plan, [step(5, "recv", 0, 10)])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0,send,1", "3 values, not 5"),
        ("0,shout,1,5,0", "'shout' is none of send, recv, compute"),
        ("0,send,2,5,0", "process 2 is not one of 0 to 1"),
        ("0,send,1,-5,0", "'-5' is not a number of bytes"),
        ("0,send,1,²,0", "'²' is not a number of bytes"),
        pytest.param(f"0,send,1,{'9' * 500},0", "is not a number of bytes", id="500 digits"),
        ("0,compute,-1,0,nan", "'nan' is not a time in seconds"),
        ("zero,send,1,5,0", "'zero' is not a process"),
    ],
)
def test_wrong_lines_are_reported(tmp_path: Path, line: str, message: str) -> None:
    file = tmp_path / "p.csv"
    file.write_text(f"process,kind,peer,bytes,seconds\n{line}\n")
    with pytest.raises(SimulationError, match=f"line 2: .*{message}") as told:
        read_program(str(file), 2)
    assert len(str(told.value)) < len(str(file)) + 120


@pytest.mark.parametrize(
    ("changed", "common", "message"),
    [
        ({"kernels": "cg,xy"}, {}, "--kernels: 'xy' is none of"),
        ({"problem_class": "Z"}, {}, "class must be one of S, W, not 'Z'"),
        ({"processes": 3}, {}, "must be a power of two"),
        ({"processes": 16, "fabric": ("ring,4",)}, {}, "has 4 hosts"),
        ({"engines": "updown:99"}, {}, "1 to 8"),
        (
            {"fabric": ("lsft,7",), "processes": 256, "problem_class": "W", "kernels": "lu"},
            {},
            "64",
        ),
        ({"traces": "/nowhere/at/all"}, {}, "there is no such folder"),
        ({}, {"duration_s": 3.0}, "--duration"),
        ({}, {"rate_mbps": 0.0}, "--rate"),
    ],
)
def test_wrong_settings_are_reported_before_anything_is_started(
    changed: dict[str, Any], common: dict[str, Any], message: str
) -> None:
    with pytest.raises(KnotlessError, match=message):
        EXPERIMENT.prepare(Common(on=SIMULATION, **common), {**DEFAULTS, **changed})


def test_kernels_without_work_for_all_are_left_out() -> None:
    campaign = EXPERIMENT.prepare(Common(on=SIMULATION, quick=False), DEFAULTS)
    assert [case[2] for case in campaign.parameters["cases"]] == ["cg", "ep", "ft", "is", "mg"]
    few = EXPERIMENT.prepare(Common(on=SIMULATION, quick=True), DEFAULTS)
    assert "lu" in {case[2] for case in few.parameters["cases"]}


def test_processes_are_spread_over_all_switches() -> None:
    fabric = load("mesh,2,2,hosts=4")
    assert places(fabric, 4) == [0, 4, 8, 12]
    assert places(fabric, 6) == [0, 1, 4, 5, 8, 12]
    assert places(fabric, 16) == list(range(16))


def test_simulation_repeats_to_the_bit_and_is_shown() -> None:
    options = {**DEFAULTS, "kernels": "mg", "fabric": ("torus,4,4",), "processes": 8}
    campaign = EXPERIMENT.prepare(Common(on=SIMULATION, repeats=2), options)
    rows: list[dict[str, Any]] = []
    samples: list[dict[str, Any]] = []

    class Quiet:
        def begin(self, what: str) -> None:
            assert "MG.S on 8 hosts" in what

        def advance(self) -> None:
            pass

    def record(row: Any, lines: Any) -> None:
        rows.append(dict(row))
        samples.extend(lines)

    campaign.run(record, Quiet())
    assert rows[0]["seconds"] == rows[1]["seconds"] > 0
    assert rows[0]["verified"]
    assert sum(s["bytes"] for s in samples if s["row"] == 0) == rows[0]["bytes"]
    shown = presentation.present({"rows": rows, "parameters": campaign.parameters}, samples, True)
    assert len(shown.columns.table(shown.rows)) == 2
    assert {plot.name for plot in shown.plots} == {"times", "patterns"}
    assert "2 of 2 valid runs gave the official" in shown.sentences[0]


def test_mpirun_reaches_hosts_by_namespace(tmp_path: Path) -> None:
    from knotless.emulation.names import names_of

    hosts = load("ring,4").hosts
    script = agent_script(names_of("mine"), hosts)
    assert f"{hosts[1].ip}) name=h2 namespace=/run/netns/kn-mine.h2;;" in script
    assert "*) exit 255;;" in script
    words = mpirun_command(tmp_path / "agent", tmp_path / "hosts", 4, ["program", "word"])
    assert words[-2:] == ["program", "word"]
    assert words[words.index("plm_rsh_agent") + 1] == str(tmp_path / "agent")
    assert words[words.index("btl") + 1] == "tcp,self"
