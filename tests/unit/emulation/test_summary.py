"""The state of a fabric in sentences: problems in their order, repaired routes, what to do."""

from __future__ import annotations

from typing import Any

import pytest

from knotless.emulation.summary import (
    deadlock_advice,
    deadlock_reason,
    fabric_notes,
    fabric_problems,
    routes_text,
)
from knotless.routing.plan import make_plan
from knotless.routing.request import PlanRequest
from knotless.topologies import load
from knotless.verification.checked_plan import CheckedPlan

LAST: dict[str, Any] = {
    **{"failed": ["s1:2-s2:3"], "drained": [], "rules_changed": 12, "seconds": 0.0314},
    **{"tier": 1, "time": 5.0, "repair": "repaired"},
}


def test_a_deadlock_is_the_first_problem_whatever_else_there_is() -> None:
    problems = fabric_problems(
        phase="ready",
        processes=["ovs has died"],
        controller={"problems": ["link s1-s2 is down"], "switches": {}},
        emulator={"deadlock": {"cycle": ["s1:2/0", "s2:2/0"]}, "problems": ["slow"]},
        unread=["no answer"],
    )
    assert problems == [
        "deadlock: s1:2/0 waits for s2:2/0 waits for s1:2/0",
        "ovs has died",
        "controller: link s1-s2 is down",
        "link emulator: slow",
        "no answer",
    ]
    assert fabric_problems(phase="ready", controller=None, emulator={"deadlock": None}) == []


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ({"routes": {}, "last_change": None}, None),
        (
            {"routes": {"changing": True, "waiting_for": ["s1", "s2"]}, "last_change": LAST},
            "being changed, waiting for s1, s2",
        ),
        (
            {"routes": {}, "last_change": LAST, "unreachable": 0},
            "repaired: they avoid s1:2-s2:3; 12 rules in 31 ms; all hosts are reached",
        ),
        (
            {"routes": {}, "last_change": LAST, "unreachable": 6},
            "repaired: they avoid s1:2-s2:3; 12 rules in 31 ms;"
            " 6 pairs of hosts cannot reach each other",
        ),
        (
            {"routes": {}, "last_change": {**LAST, "failed": [], "drained": ["s4"]}},
            "changed: they avoid s4 (drained); 12 rules in 31 ms; all hosts are reached",
        ),
        (
            {"routes": {}, "last_change": {**LAST, "failed": []}},
            "as planned again; 12 rules in 31 ms; all hosts are reached",
        ),
    ],
)
def test_routes_say_what_became_of_them(status: dict[str, Any], text: str | None) -> None:
    assert routes_text(status) == text


def test_notes_name_the_active_controller_and_what_users_did() -> None:
    role = {"active": "127.0.0.1:8081", "controllers": ["127.0.0.1:8080", "127.0.0.1:8081"]}
    controller = {"role": role, "drained": ["s4"], "routes": {}, "last_change": None}
    assert fabric_notes(controller=controller, cut=["s1-s2 (no carrier)"], stopped=["s3"]) == [
        "active controller: 127.0.0.1:8081; others: 127.0.0.1:8080",
        "drained: s4",
        "cut: s1-s2 (no carrier)",
        "stopped: s3",
    ]
    assert fabric_notes(controller=None) == []


def test_advice_names_commands_for_the_fabric() -> None:
    check = {"cycle": ["s1:2/0", "s2:2/0"]}
    controller = {"engine": "dor", "flow_control": "pause", "check": check}
    commands = [of["command"] for of in deadlock_advice("default", "ring,4", controller)]
    assert commands == [
        "knotless release",
        "knotless down && knotless up ring,4 --engine updown",
        "knotless down && knotless up ring,4 --engine dor --vcs 2 --flow-control pfc",
    ]
    other = {**controller, "engine": "minimal"}
    assert [of["command"] for of in deadlock_advice("lab", "mesh,4,4", other)] == [
        "knotless release --name lab",
        "knotless down --name lab && knotless up mesh,4,4 --name lab --engine updown",
    ]
    safe = {**controller, "check": {"cycle": []}}
    assert [of["command"] for of in deadlock_advice("default", "ring,4", safe)] == [
        "knotless release",
        "knotless check --live",
    ]
    assert "The routes (engine dor) close this ring under PAUSE." in deadlock_reason(controller)
    assert "engine" not in deadlock_reason(None)


def test_under_credits_channels_wait_for_credit_and_advice_keeps_them() -> None:
    check = {"cycle": ["s1:2/0", "s2:2/0"]}
    controller = {"engine": "dor", "flow_control": "credits", "check": check}
    assert deadlock_advice("default", "ring,4", controller)[-1] == {
        "do": "or with a second virtual channel and credits, which opens the ring",
        "command": "knotless down && knotless up ring,4 --engine dor --vcs 2"
        " --flow-control credits",
    }
    reason = deadlock_reason(controller)
    assert "Each channel waits for credit" in reason
    assert reason.endswith("(engine dor) close this ring under credits.")
    notes = fabric_notes(controller={**controller, "routes": {}, "last_change": None})
    assert notes == ["flow control by credits: a paused channel waits for credit"]


@pytest.mark.parametrize("of", deadlock_advice("default", "ring,4", None)[1:])
def test_routes_that_advice_names_cannot_deadlock(of: dict[str, str]) -> None:
    words = of["command"].split(" up ")[1].split()
    options = dict(zip(words[1::2], words[2::2], strict=True))
    request = PlanRequest.from_options(engine=options["--engine"])
    assert CheckedPlan(make_plan(load(words[0]), request)).verdict.acyclic
