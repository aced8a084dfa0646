"""The number of Open vSwitch processes of a fabric."""

from __future__ import annotations

from typing import Any

import pytest

from knotless.base.errors import EmulationError
from knotless.emulation.options import MOST_PROCESSES, PORTS_OF_EACH, PORTS_OF_ONE, switch_processes
from knotless.topologies import load

USUAL: dict[str, Any] = {"links": "emulated", "datapath": "user", "tls": False}
ONE: list[dict[str, Any]] = [{"links": "plain"}, {"datapath": "kernel"}, {"tls": True}]


def test_only_large_fabrics_have_several() -> None:
    assert switch_processes(None, load("torus,4,4,hosts=4"), **USUAL) == 1
    large = load("torus,10,10")
    ports = 2 * len(large.links) + len(large.hosts)
    assert ports > PORTS_OF_ONE
    assert switch_processes(None, large, **USUAL) == ports // PORTS_OF_EACH == 10
    assert switch_processes(None, load("torus,32,32"), **USUAL) == MOST_PROCESSES


@pytest.mark.parametrize("changed", ONE)
def test_switches_that_share_a_namespace_have_one(changed: dict[str, Any]) -> None:
    settings = USUAL | changed
    assert switch_processes(None, load("torus,10,10"), **settings) == 1
    assert switch_processes(1, load("ring,4"), **settings) == 1
    with pytest.raises(EmulationError, match="needs --switch-processes 1: omit 2") as error:
        switch_processes(2, load("ring,4"), **settings)
    assert "\n" not in str(error.value)


def test_a_number_that_was_asked_for_is_used() -> None:
    assert switch_processes(4, load("ring,4"), **USUAL) == 4
    assert switch_processes(1, load("torus,10,10"), **USUAL) == 1
