"""The election of the active controller, on switches and controllers that fail in every way."""

from __future__ import annotations

import pytest

from tests.support.role_model import World

CASES, AT_ONCE = 200, 50
FAULTS_S, QUIET_S = 12.0, 25.0


@pytest.mark.parametrize("first", range(0, CASES, AT_ONCE))
def test_no_switch_obeys_two_controllers(first: int) -> None:
    writes = takeovers = 0
    for seed in range(first, first + AT_ONCE):
        world = World(seed, 1 + seed % 5, 2 + seed % 2, FAULTS_S)
        world.run(FAULTS_S + QUIET_S)
        assert world.overlaps() == [], seed
        leading = [
            election.election
            for election in world.controllers
            if election.election.state != "standby"
        ]
        assert [(election.state, election.is_complete) for election in leading] == [
            ("active", True)
        ], seed
        masters = [
            connection.role
            for switch in world.switches.values()
            for connection in switch.connections
        ]
        assert masters.count("master") == len(world.switches), seed
        assert masters.count("slave") == len(masters) - len(world.switches), seed
        writes += sum(len(session.writes_s) for session in world.sessions)
        takeovers += len(world.sessions)
    assert writes > 50 * AT_ONCE
    assert takeovers > 2 * AT_ONCE


def test_without_faults_the_active_controller_stays_active() -> None:
    for seed in range(20):
        world = World(seed, 4, 3, faults_s=0)
        world.run(20)
        # Two may stand for election at the start, but whoever leads goes on.
        assert world.sessions[-1].read_s < 1005, seed
        assert world.sessions[-1].writes_s[-1] > 1019, seed
