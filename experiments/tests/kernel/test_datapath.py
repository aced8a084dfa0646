"""Fabrics on the datapath of the kernel, and on the userspace one: flows as in the simulator.

All of them run one after the other on one kernel; see machine.py and fabrics.py.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from experiments.tests.kernel.fabrics import FOREIGN, LOST_FRAMES, cases
from knotless_experiments.studies.agreement.measure import CLOSE
from tests.kernel import machine

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not machine.installed(), reason="needs user-mode-linux: Debian has it for x86-64 alone"
    ),
]
DEADLINE_S = 900.0
Found = dict[str, Any]


@pytest.fixture(scope="module", params=["kernel", "user"])
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """Return what fabrics.py prints, and the datapath that it used."""
    words = (sys.executable, "-m", "experiments.tests.kernel.fabrics", request.param)
    shared = tmp_path_factory.mktemp("kernel")
    status, printed = machine.run(*words, shared=shared, deadline_s=DEADLINE_S, memory_mb=1024)
    assert status == 0, printed
    return {**json.loads(printed.splitlines()[-1]), "datapath": request.param}


@pytest.mark.parametrize("name", cases("kernel"))
def test_every_flow_is_that_of_the_simulator(ran: Found, name: str) -> None:
    line = ran["compared"][name]
    assert (line["valid"], line["problems"]) == (True, [])
    assert line["worst"] <= CLOSE


def test_a_ring_of_waiting_channels_freezes_in_the_predicted_knot(ran: Found) -> None:
    assert all(line["same_knot"] for line in ran["compared"].values())
    knots = {name: line["knot"] for name, line in ran["compared"].items()}
    assert knots.pop("cyclic") == ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]
    assert not any(knots.values())


def test_what_rules_drop_is_proven_to_be_dropped(ran: Found) -> None:
    dropped = ran["two"]["dropped"]
    status = dropped["status"]
    assert (dropped["lost"], status["problems"]) == (LOST_FRAMES, [])
    assert (status["datapath"], status["valid"]) == (ran["datapath"], True)
    assert (status["abandoned"], status["sent_on"], status["kernel_lost"]) == (0, 0, 0)


def test_two_fabrics_and_a_datapath_of_others_do_not_meet(ran: Found) -> None:
    two = ran["two"]
    # Internal ports: one of the datapath, one of each switch. ring,4 has 12 ports, flat,2 has 2.
    ports = [{FOREIGN: 1 + 4 + 12}, {FOREIGN: 1 + 1 + 2}]
    assert two["during"] == (ports if ran["datapath"] == "kernel" else [{}, {}])
    assert two["after"] == two["during"][0]
    assert two["ping"] == 0
    assert ran["foreign"] == {FOREIGN: 1}


def test_nothing_is_left_behind(ran: Found) -> None:
    assert ran["two"]["left"] == []
    assert ran["namespaces"] == []
