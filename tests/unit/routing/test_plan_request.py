"""Plan requests: one definition for commands, files, sweeps and stored settings."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from knotless.base.errors import PlanError
from knotless.base.flow_control import FlowControl
from knotless.cli.main import main
from knotless.controller import desired as controller_desired
from knotless.controller.config import Config, parse
from knotless.controller.desired import DesiredState
from knotless.controller.status import Status
from knotless.controller.updates.fabric_state import FabricState
from knotless.emulation.network import EmulatedFabric
from knotless.forwarding.openflow.compiler import compile_state
from knotless.routing.plan import make_plan
from knotless.routing.request import OPTIONS, PlanRequest
from knotless.simulation import Scenario
from knotless.topologies import load
from knotless.verification.checked_plan import CheckedPlan

RING = "s1:2/0 -> s2:2/0 -> s3:2/0 -> s4:2/0 -> s5:2/0 -> s1:2/0"
PLANNING = ("plan", "flows", "simulate", "analyse", "schedule", "export", "up", "lab")


@pytest.mark.parametrize("name", PLANNING)
def test_every_command_has_every_choice_with_the_same_default(name: str) -> None:
    command = main.get_command(None, name)  # type: ignore[arg-type]
    assert command is not None
    options = {option.name: option for option in command.params}
    for key, default in OPTIONS.items():
        if (name, key) != ("export", "vlans"):  # ordinary switches flood: trees
            assert options[key].default == default, key


def test_files_have_every_choice_with_the_same_default() -> None:
    for key, default in OPTIONS.items():
        assert Config.model_fields[key].default == default


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"vcs": 9}, "vcs: 9 is not at most 8"),
        ({"vcs": True}, "vcs: "),
        ({"flow_control": "some"}, "flow_control: 'some' is not one of 'auto', 'none', 'host'"),
        ({"multicast": {"x": ["h1"]}}, "multicast: must map numbers to lists of hosts"),
        ({"multicast": {1: "h1"}}, "multicast: must map numbers to lists of hosts"),
        ({"colour": "red"}, "unknown key 'colour'"),
    ],
)
def test_a_mistake_gives_one_line(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError) as caught:
        PlanRequest.from_options(**choices)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_settings_of_a_running_fabric_give_its_request_back() -> None:
    request = PlanRequest.from_options(
        engine="dor", vcs=2, max_vlans=7, multicast={3: ["h1", "h2"]}
    )
    lab = EmulatedFabric.from_plan(make_plan(load("ring,5"), request), rest_port=0)
    stored = json.loads(json.dumps(lab.settings()))
    assert PlanRequest.from_settings(stored) == request.but(flow_control="pfc")


def test_a_plan_settles_automatic_choices() -> None:
    plan = make_plan(load("torus,5,5"), PlanRequest())
    assert plan.settled_request() == PlanRequest(engine="dor", flow_control=FlowControl.PFC)
    again = make_plan(load("torus,5,5"), plan.settled_request())
    assert CheckedPlan(again).cycle == CheckedPlan(plan).cycle == []


def test_simulations_use_the_flow_control_of_their_plan() -> None:
    plan = make_plan(load("torus,5,5"), "dor")
    assert Scenario(plan, "shift:7").switching.flow_control == "pfc"
    assert Scenario(plan, "shift:7", flow_control="pause").switching.flow_control == "pause"


def test_json_names_the_flow_control_of_the_verdict() -> None:
    def planned(*more: str) -> tuple[object, ...]:
        done = CliRunner().invoke(main, ["plan", "torus,5,5", "--engine", "dor", "--json", *more])
        answer = json.loads(done.stdout)
        return answer["flow_control"], answer["acyclic"], " -> ".join(answer["cycle"])

    assert planned() == ("pfc", True, "")
    assert planned("--flow-control", "pause") == ("pause", False, RING.removesuffix(" -> s1:2/0"))
    assert planned("--flow-control", "host") == ("host", True, "")


def test_the_verdict_is_the_first_line() -> None:
    words = ["plan", "torus,5,5", "--engine", "dor"]
    lines = CliRunner().invoke(main, words).stdout.splitlines()
    assert lines[0] == "torus,5,5 with dor: cannot deadlock under PFC"
    lines = CliRunner().invoke(main, [*words, "--flow-control", "switch"]).stdout.splitlines()
    assert lines[0] == "torus,5,5 with dor: CAN DEADLOCK under PAUSE between switches"
    assert lines[1].endswith(f" channels: {RING}")


def test_the_controller_refuses_a_plan_that_can_deadlock() -> None:
    text = "fabric: torus,5,5\nengine: dor\nflow_control: pause\n"
    with pytest.raises(PlanError, match=f"^dor on torus,5,5 CAN DEADLOCK under PAUSE: {RING}; "):
        DesiredState.compute(parse(text), load("torus,5,5"))
    allowed = DesiredState.compute(parse(f"{text}allow_deadlock: true\n"), load("torus,5,5"))
    status = Status(FabricState(allowed)).as_json(0.0)
    assert (status["flow_control"], status["check"]["acyclic"]) == ("pause", False)
    assert (status["plan"]["flow_control"], status["plan"]["acyclic"]) == ("pause", False)


def test_asking_for_the_status_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[object] = []

    def counting(state: Any, **choices: Any) -> Any:
        compiled.append(state)
        return compile_state(state, **choices)

    monkeypatch.setattr("knotless.verification.checked_plan.compile_state", counting)
    plans: list[object] = []

    def planning(*request: Any) -> Any:
        plans.append(request)
        return make_plan(*request)

    monkeypatch.setattr(controller_desired, "make_plan", planning)
    state = DesiredState.compute(parse("fabric: ring,4"), load("ring,4"))
    assert (
        Status(FabricState(state)).as_json(0.0)["plan"]
        == Status(FabricState(state)).as_json(1.0)["plan"]
    )
    assert (len(plans), len(compiled)) == (1, 1)
