"""The estimate of the memory of a simulation is correct within a factor of two."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from knotless.base import memory
from knotless.cli.main import main
from knotless.routing.plan import make_plan
from knotless.simulation import Load, Scenario, SimulationError, simulate
from knotless.simulation.memory import estimated_bytes
from knotless.topologies import load

# In its own process, because memory freed by earlier tests would be used again; so would be what
# planning has freed, which is given back first. What a simulation takes is the most that it has.
MEASURE = """
import ctypes, gc, re, sys
from pathlib import Path
from knotless.routing.plan import make_plan
from knotless.simulation import Load, Scenario, simulate
from knotless.simulation.memory import estimated_bytes
from knotless.topologies import load
spec, engine, pattern, load_, duration_us = sys.argv[1:]
plan = make_plan(load(spec), engine)
amount = Load(barrier=False) if load_ == "phases" else Load("poisson", float(load_))
scenario = Scenario(plan, pattern, amount, duration_us=float(duration_us))
def resident(key):
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(rf"^{key}:\\s+(\\d+) kB", status, re.M)[1])
gc.collect()
ctypes.CDLL(None).malloc_trim(0)
Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew: proc(5)
before = resident("VmRSS")
result = simulate(scenario)
taken = resident("VmHWM") - before
vlans, in_phases = plan.vlan_count, scenario.demand.in_phases
print(estimated_bytes(plan.fabric, vlans=vlans, in_phases=in_phases), taken)
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["torus,8,8,8,rate=10000,delay=1", "dor", "uniform", "0.2", "300"],
        ["lsft,7,rate=10000,delay=1", "lsft", "schedule", "phases", "300"],
        ["fattree3,12,rate=10000,delay=1", "fattree", "permutation", "0.9", "300"],
    ],
)
def test_the_estimate_is_within_a_factor_of_two(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *arguments], check=True, capture_output=True, text=True
    )
    estimated, taken = map(int, done.stdout.split())
    assert taken / 2 < estimated < 2 * taken


def test_a_simulation_too_large_for_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan(load("mesh,4,4"), "dor")
    scenario = Scenario(plan, "shift", Load(barrier=False))
    needed = estimated_bytes(plan.fabric, vlans=plan.vlan_count, in_phases=True)
    monkeypatch.setattr(memory, "SMALL_BYTES", 0)
    monkeypatch.setattr(memory, "free_bytes", lambda: needed - 1)
    with pytest.raises(SimulationError, match=r"mesh,4,4: simulating it takes about .* are free"):
        simulate(scenario)
    monkeypatch.setattr(memory, "free_bytes", lambda: needed)
    assert simulate(scenario).lost_frames == 0


def test_a_fabric_far_too_large_is_refused_before_it_is_planned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "SMALL_BYTES", 0)
    monkeypatch.setattr(memory, "free_bytes", lambda: 4_000_000)
    monkeypatch.setattr("knotless.cli.commands.simulate.options.make_plan", None)
    done = CliRunner().invoke(main, ["simulate", "torus,8,8,8", "--pattern", "shift"])
    assert done.exit_code == 2
    assert done.output.startswith("knotless: torus,8,8,8: simulating it takes about 0.0 GiB")
    assert len(done.output.splitlines()) == 1
