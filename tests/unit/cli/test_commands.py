"""The commands that need no running fabric: their output, exit status and error messages."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from knotless.cli.answer import Screen, answer_lines
from knotless.cli.commands.up import up_answer
from knotless.cli.main import Commands, main
from knotless.routing.engine import engines
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.verification.checked_plan import CheckedPlan
from tests.support.waiting import HANG_S


def run(*arguments: str) -> Result:
    return CliRunner(mix_stderr=False).invoke(main, list(arguments), prog_name="knotless")


def test_plan_prints_the_keys_that_programs_read() -> None:
    done = run("plan", "torus,4,4", "--engine", "dor", "--vcs=1", "--select=low-port", "--json")
    plan = json.loads(done.stdout)
    assert done.exit_code == 1, "it can deadlock"
    assert plan["cycle"] == ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]
    keys = (
        "fabric engine vcs vlans mean_switches max_switches max_channel_load load_bound minimal"
        " acyclic cycle routing_ms compile_ms rules rules_max_switch"
    )
    assert set(keys.split()) <= set(plan)
    assert (plan["load_bound"], plan["minimal"], plan["rules"]) == (8.0, True, 468)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["ring,4", "--engine", "dor", "--vcs=1", "--select=low-port"], 1),
        (["ring,4", "--engine", "dor", "--vcs=1", "--select=low-port", "--flow-control=none"], 0),
        (["ring,4", "--engine", "dor", "--vcs=1", "--select=low-port", "--without=s1-s2"], 0),
        (["torus,5,5", "--engine", "dor"], 0),
        (["torus,5,5", "--engine", "dor", "--flow-control", "pause"], 1),
        (["ring,4", "--engine", "dor,minimal", "--compare"], 0),
    ],
)
def test_the_status_of_plan_tells_whether_it_can_deadlock(
    arguments: list[str], status: int, tmp_path: Path
) -> None:
    done = run("plan", *arguments)
    assert done.exit_code == status
    if "--compare" not in arguments:
        assert ("CAN DEADLOCK" in done.stdout) == bool(status)
        file = tmp_path / "plan.json"
        assert run("plan", *arguments, "--json", "--out", str(file)).exit_code == status
        assert json.loads(file.read_text())["sources"]


def test_plan_out_holds_every_path(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    done = run("plan", "ring,5", "--engine", "dor", "--out", str(file))
    assert done.exit_code == 0
    assert done.stdout.startswith("ring,5 with dor: cannot deadlock under PFC\n")
    sources = json.loads(file.read_text())["sources"]
    assert [source["hosts"] for source in sources] == [[f"h{i}"] for i in range(1, 6)]
    assert sources[4]["paths"]["s2"] == ["s5:2/0", "s1:2/1"]


def test_flows_then_check(tmp_path: Path) -> None:
    folder = str(tmp_path / "rules")
    assert run("flows", "torus,4,4", "--engine", "dor", "--out", folder, "--json").exit_code == 0
    done = run("check", folder, "--json")
    verdict = json.loads(done.stdout)
    assert done.exit_code == 0
    assert verdict["pairs"] == 240
    assert (verdict["undelivered"], verdict["acyclic"], verdict["cycle"]) == (0, True, [])
    assert (verdict["max_channel_load"], verdict["mean_switches"]) == (8, 3.0)


def test_check_prints_the_cycle_and_exits_with_1(tmp_path: Path) -> None:
    run("flows", "ring,4", "--engine=dor", "--vcs=1", "--select=low-port", "--out", str(tmp_path))
    done = run("check", str(tmp_path))
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert lines[0] == "ring,4: CAN DEADLOCK under PAUSE"
    assert lines[1].endswith(": s1:2/0 -> s2:2/0 -> s3:2/0 -> s4:2/0 -> s1:2/0")
    assert lines[2] == "  h1 to h3 holds s1:2/0 while it waits for s2:2/0"
    step = (
        f"h1 to h3 holds s1:2/0 while it waits for s2:2/0 (knotless check {tmp_path} --pair h1 h3)"
    )
    assert f"  {step}\n" in run("check", str(tmp_path), "--details").stdout
    (tmp_path / "s1.flows").unlink()
    done = run("check", str(tmp_path))
    assert done.exit_code == 1
    assert done.stdout.splitlines()[0].endswith(", not all is delivered")
    assert "s1: there are no rules for this switch" in done.stdout


@pytest.mark.parametrize("ending", ["svg", "png"])
@pytest.mark.parametrize("spec", ["ring,4", "torus,3,3,2,hosts=2", "mtree,3,3", "flat,12"])
def test_topology_writes_and_draws(spec: str, ending: str, tmp_path: Path) -> None:
    file, picture = tmp_path / "f.json", tmp_path / f"f.{ending}"
    done = run("topology", spec, "--out", str(file), "--draw", str(picture), "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout) == json.loads(file.read_text())
    drawn = picture.read_bytes()
    assert (b"<svg" in drawn[:500]) if ending == "svg" else drawn.startswith(b"\x89PNG")
    again = run("topology", str(file))
    assert again.exit_code == 0
    assert spec in again.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plan", "mehs,4", "--engine", "dor"], "did you mean 'mesh'?"),
        (["plan", "mesh,4,4", "--engine", "dorr"], "did you mean 'dor'?"),
        (["plan", "--engine", "dor"], "Missing argument 'SPEC'"),
        (["plan", "mesh,4,4", "--engine", "dor", "--vcs", "x"], "'x' is no whole number"),
        (["plan", "mesh,4,4", "--engine=dor", "--out", "/nowhere/p.json"], "cannot be written"),
        (["plan", "mesh,4,4\x1b[31m", "--engine", "dor"], "is not a fabric spec"),
        (["topology", "ring,4", "--draw", "a.gif"], "must end in .svg or .png or .pdf"),
        (["topology", "no/such.json"], "cannot be read: No such file"),
        (["check"], "either a directory of rules or other files, or --live"),
        (["check", "a", "--live"], "either a directory of rules or other files, or --live"),
        (["check", "no/such"], "cannot be read: No such file"),
        (["check", "--live", "--name", "../x"], "a name is 1 to 24 of"),
        (["no-such-command"], "No such command 'no-such-command'"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("knotless: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stderr.strip().isprintable()


@pytest.mark.parametrize("name", ["topology", "plan", "flows", "check"])
def test_help_has_an_example(name: str) -> None:
    done = run(name, "--help")
    assert done.exit_code == 0
    assert re.search(rf"^ *Examples?:\s+knotless {name}", done.stdout, re.MULTILINE)
    assert "--json" in done.stdout


NOT_LOADED = {
    "controller run --help": ["greenlet", "knotless.controller"],
    "topology ring,4": ["numpy.f2py", "rich", "yaml", "knotless.routing"],
    "plan ring,4 --engine updown": [
        *("rich", "yaml", "pydantic", "networkx", "knotless.base.switch_settings"),
        "knotless.simulation",
        *("knotless.topologies.families.torus", "knotless.routing.engines.lash"),
    ],
    "simulate ring,4 --pattern shift:1 --duration 100": [
        *("rich", "yaml", "pydantic", "knotless.base.switch_settings"),
    ],
}
"""What a command does without: loading it would take longer than the command."""


@pytest.mark.parametrize("words", NOT_LOADED)
def test_a_command_does_not_load_what_it_does_not_use(words: str) -> None:
    unused = ["ryu", "mininet", "eventlet", "matplotlib", *NOT_LOADED[words]]
    program = (
        "import sys; from click.testing import CliRunner; from knotless.cli.main import main\n"
        "*words, unused = map(str, sys.argv[1:])\n"
        "assert CliRunner().invoke(main, words).exit_code in (0, 1)\n"
        "print(sorted(set(unused.split()) & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words.split(), " ".join(unused)],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    assert done.stdout == "[]\n", done.stderr


def test_comparison_lists_every_engine_with_figures_or_a_reason() -> None:
    done = run("plan", "lsft,2", "--engine", "all", "--compare", "--json")
    rows = {row["engine"]: row for row in json.loads(done.stdout)["engines"]}
    assert done.exit_code == 0
    assert list(rows) == list(engines())
    of_other_families = {"cube", "dimwar", "dor", "hyperx"}
    of_other_families |= {name for name in rows if name.startswith("dragonfly")}
    assert {name for name, row in rows.items() if "reason" in row} == of_other_families
    assert (rows["lsft"]["max_channel_load"], rows["lsft"]["load_bound"]) == (18, 18.0)
    assert (rows["lash"]["minimal"], rows["prefix"]["minimal"]) == (True, False)


def test_comparison_as_a_table_has_whole_figures_and_reasons() -> None:
    done = run("plan", "ring,5", "--engine", "dor,lash,fattree", "--compare")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "ring,5: 2 of 2 plans cannot deadlock"
    heads, dor, lash, reason = (line.split() for line in lines[2:])
    assert heads[:7] == ["engine", "load", "mean", "most", "safe", "VCs", "VLANs"]
    assert dor[:7] == ["dor", "3", "2.20", "3", "yes", "2", "1"]
    assert dor[8:] == ["yes", "pfc"]
    assert lash[0] == "lash"
    assert reason[:2] == ["fattree", "needs"]


def test_engines_that_do_not_apply_are_a_line_and_details_have_the_reasons() -> None:
    lines = run("advise", "ring,4").stdout.splitlines()
    assert [line for line in lines if "apply" in line] == [lines[-1]]
    count = int(lines[-1].split(": ")[1].split()[0])
    detailed = run("advise", "ring,4", "--details").stdout
    assert sum("runs on any fabric" in line for line in detailed.splitlines()) >= count > 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--engine", "all"], "needs --compare"),
        (["--engine", "lash,dorr", "--compare"], "did you mean 'dor'?"),
        (["--engine", "all", "--compare", "--out", "x.json"], "omit it"),
    ],
)
def test_comparisons_that_cannot_be_had(arguments: list[str], message: str) -> None:
    done = run("plan", "ring,5", *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stdout == ""


def test_an_interrupt_is_not_hidden_by_an_error_of_the_clean_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @click.command()
    @click.option("--interrupted", is_flag=True)
    def close(interrupted: bool) -> None:
        try:
            if interrupted:
                raise KeyboardInterrupt
        finally:
            raise TimeoutError("a worker has not ended")

    monkeypatch.setattr(Commands, "get_command", lambda *_: close)
    done = run("close", "--interrupted")
    assert (done.exit_code, done.stderr.strip()) == (130, "knotless: interrupted")
    done = run("close")
    assert (done.exit_code, done.stderr.strip()) == (2, "knotless: a worker has not ended")


def test_a_dry_run_without_a_fabric_shows_the_steps_that_add_a_group() -> None:
    words = ("change", "ring,4", "--multicast", "1=h1,h2", "--dry-run", "--json")
    answer = json.loads(run(*words).stdout)
    assert (answer["tier"], answer["certificate"]["proven"]) == (2, True)
    assert answer["rules_changed"] > 0


def test_a_change_says_that_it_is_proven_and_what_it_drops() -> None:
    words = ("change", "torus,4,4", "--from", "dor", "--engine", "updown", "--dry-run")
    answer = json.loads(run(*words, "--json").stdout)
    lines = run(*words).stdout.splitlines()
    steps = len(answer["steps"])
    assert lines[0].startswith(f"torus,4,4: proven under PAUSE, in {steps} steps: with dropping")
    assert [line.split()[0] for line in lines[1 : steps + 1]] == [f"{n + 1}." for n in range(steps)]
    pairs = answer["certificate"]["dropped_pairs"]
    assert pairs > 0
    assert f"frames of {pairs} pairs" in lines[steps + 1]
    digest = answer["certificate"]["steps"][-1]["sha256"]
    assert digest in run(*words, "--details").stdout


def test_a_started_fabric_says_first_whether_it_can_deadlock() -> None:
    checked = CheckedPlan(make_plan(load("ring,4"), "minimal"))
    answer = up_answer(checked, "mine", "userspace datapath", "0.1 GiB", "http://127.0.0.1:1")
    lines = [*answer_lines(answer, Screen(columns=100))]
    assert lines[0] == "ring,4 is up as 'mine', with minimal: CAN DEADLOCK under PAUSE"
    assert lines[1].startswith("  cycle of 4 channels: s1:2/0 -> ")
    assert "  4 switches, 4 hosts, userspace datapath" in lines
    assert lines[-2:] == [
        "  open its prompt: knotless attach --name mine",
        "  end it: knotless down --name mine",
    ]
    assert "  page: http://127.0.0.1:1" in lines
