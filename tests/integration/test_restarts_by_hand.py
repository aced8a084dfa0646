"""Open vSwitch that is started by hand, and switches that the prompt restarts."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from knotless.emulation.names import NETNS_DIRECTORY, Names
from knotless.routing.request import PlanRequest
from tests.integration.test_cut_and_mend import pings
from tests.integration.test_switch_restarts import is_down, is_well, killed, namespace, shown
from tests.support.fabric_fixtures import Knotless, Start, new_fabric
from tests.support.terminal import Lab
from tests.support.waiting import until

QUIET: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


@pytest.mark.parametrize("switch_processes", [1, 3])
def test_an_open_vswitch_that_is_started_by_hand_counts_as_the_fabrics(
    names: Names, knotless: Knotless, switch_processes: int
) -> None:
    # The process is in a namespace of its fabric, and ends with it.
    with ExitStack() as ends, new_fabric(names, "ring,4", switch_processes=switch_processes) as one:
        with killed(one, knotless) as (role, words, environment, _):
            home = NETNS_DIRECTORY / namespace(one, role)
            enter = ["nsenter", f"--net={home}", "--", *words]
            by_hand = subprocess.Popen(enter, env=environment, start_new_session=True, **QUIET)
            ends.callback(by_hand.wait)
        assert shown(knotless, one)["parts"][role]["by_hand"]


def test_without_a_fabric_it_is_one_line(names: Names, knotless: Knotless) -> None:
    done = knotless("switch", "restart", "s1", "--name", names.name)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "no fabric" in done.stderr


def test_switches_with_plain_links_stop_and_start(start: Start, knotless: Knotless) -> None:
    fabric = start("ring,4", PlanRequest(), links="plain")
    name = ("--name", fabric.name)
    fabric.cables.cut(fabric.cables.one("h2"))
    assert knotless("switch", "stop", "s2", *name).returncode == 0
    until("s1 sees it", lambda: is_down(fabric, "s1", 2))
    assert [cut["link"] for cut in shown(knotless, fabric)["cut"]] == ["h2"]
    fabric.cables.mend(fabric.cables.one("h2"))
    assert knotless("switch", "start", "s2", *name).returncode == 0
    until("s1 sees it", lambda: not is_down(fabric, "s1", 2))
    until("a fabric as before", lambda: is_well(fabric) and pings(fabric, "h1", "10.0.2.1"))


def test_the_prompt_stops_starts_and_restarts_a_switch(lab: Callable[..., Lab]) -> None:
    prompt = lab("ring,4")
    prompt.expect("mininet> ")
    assert "usage: switch NAME stop|start|restart" in prompt.say("switch s1")
    assert "no switch 's9'" in prompt.say("switch s9 stop")
    for line in ("switch s2 stop", "switch s2 start", "switch s2 restart"):
        answer = prompt.say(line)
        assert "usage" not in answer
        assert "knotless: " not in answer
    assert "switch s2 is not stopped" in prompt.say("switch s2 start")
