"""Simulations that do not fit into memory are refused."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from knotless.base import memory
from knotless.cli.main import main
from knotless.routing.plan import make_plan
from knotless.simulation import Load, Scenario, SimulationError, simulate
from knotless.simulation.memory import estimated_bytes
from knotless.topologies import load


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
