"""A controller with many switches, as ``python -m bench.controller`` measures it."""

from __future__ import annotations

import asyncio

from bench.controller import measure


def test_a_restarted_controller_finds_all_rules_as_wanted() -> None:
    figures = asyncio.run(measure("torus,5,5"))
    assert figures["switches"] == 25
    assert figures["install"]["flow_mods"] == figures["rules"] > 25
    assert figures["install"]["group_mods"] > 0
    assert (figures["restart"]["flow_mods"], figures["restart"]["group_mods"]) == (0, 0)
