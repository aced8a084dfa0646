"""Ctrl-C while a simulation runs in the Rust core: it ends at once, with no partial output."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.support.waiting import HANG_S

ENDLESS_US = "1e12"
FROM_PYTHON = f"""
from knotless.routing.plan import make_plan
from knotless.simulation import Load, Scenario, simulate
from knotless.topologies import load

plan = make_plan(load("ring,4"), "updown")
try:
    simulate(
        Scenario(plan, "shift:1", Load(), duration_us={ENDLESS_US}),
        lambda now_us, events: print("running", flush=True),
    )
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_ends_the_command_with_one_line_and_no_file(tmp_path: Path) -> None:
    out = tmp_path / "all.json"
    words = ["ring,4", "--engine", "updown", "--pattern", "shift:1", "--duration", ENDLESS_US]
    # The command prints nothing while it runs without a terminal; here it prints when it starts.
    tell = """
import sys
from knotless.cli.commands.simulate import Bar
from knotless.cli.main import main

Bar.update = lambda self, **what: print("running", flush=True)
main(["simulate", *sys.argv[1:]])
"""
    process = subprocess.Popen(
        [sys.executable, "-c", tell, *words, "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=HANG_S)
    assert process.returncode == 130
    assert message.strip().splitlines() == ["knotless: interrupted"]
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_is_raised_from_a_call_in_python() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", FROM_PYTHON], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    process.send_signal(signal.SIGINT)
    message, _ = process.communicate(timeout=HANG_S)
    assert process.returncode == 0
    assert message.splitlines()[-1] == "interrupted"
