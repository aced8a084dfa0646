"""A controller with many switches, as ``python -m bench.controller`` measures it."""

from __future__ import annotations

import asyncio

import pytest

from bench.controller import measure

pytestmark = pytest.mark.integration


def test_a_restarted_controller_finds_all_rules_as_wanted() -> None:
    found = asyncio.run(measure("torus,5,5"))
    assert found["switches"] == 25
    assert found["install"]["flow_mods"] == found["rules"] > 25
    assert found["install"]["group_mods"] > 0
    assert (found["restart"]["flow_mods"], found["restart"]["group_mods"]) == (0, 0)
