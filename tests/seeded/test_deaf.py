"""Deaf switches and multicast groups in whole controllers: found, avoided, and used again."""

from __future__ import annotations

import pytest

from knotless.controller.probes.deaf_search import DeafSearch
from tests.seeded.faults import Fault
from tests.seeded.run import run
from tests.seeded.world import Setting

DEAF = Fault(5.0, "deaf", ("s3",), 34.0)
SECONDS = 44.0


@pytest.mark.thin(1)
@pytest.mark.parametrize("emulator", [False, True])
@pytest.mark.parametrize("controllers", [1, 2])
def test_a_deaf_switch_is_avoided_and_used_again(controllers: int, *, emulator: bool) -> None:
    """Its neighbours reach each other meanwhile."""
    result = run(Setting(1, "ring,4", controllers, "", emulator), [DEAF], seconds=SECONDS)
    assert not result.violations
    assert "deaf no longer" in "\n".join(result.lines)


@pytest.mark.thin(1)
@pytest.mark.parametrize("emulator", [False, True])
def test_a_successor_names_a_switch_that_shows_no_cable(*, emulator: bool) -> None:
    """It may be another one with the same dpid: nothing is changed on it until probes cross."""
    faults = [DEAF, Fault(7.0, "kill", ("c1",), 2.0)]
    result = run(Setting(1, "ring,4", 2, "", emulator), faults, seconds=SECONDS)
    assert not result.violations
    assert any("s3 (dpid 3) has connected again, but no probe" in line for line in result.lines)


@pytest.mark.thin(1)
@pytest.mark.parametrize("emulator", [False, True])
def test_one_that_nobody_looks_for_is_a_violation(
    monkeypatch: pytest.MonkeyPatch, *, emulator: bool
) -> None:
    monkeypatch.setattr(DeafSearch, "tick", lambda *_: None)
    violations = run(Setting(1, emulator=emulator), [DEAF], seconds=SECONDS).violations
    assert {violation.kind for violation in violations} == {"late", "line"}


@pytest.mark.deep
def test_too_many_are_named_and_the_routes_stay() -> None:
    """As all come from one cause, other routes would not help."""
    faults = [DEAF, Fault(5.1, "deaf", ("s1",), 34.0)]
    result = run(Setting(1), faults, seconds=SECONDS)
    assert not result.violations
    assert not any("is deaf" in line for line in result.lines)


@pytest.mark.thin(1)
@pytest.mark.parametrize("kind", ["rules-deleted", "full-table", "mute", "cut", "stall"])
def test_other_faults_only_delay_it(kind: str) -> None:
    target = {"mute": (), "cut": ("s1:2-s2:3",)}.get(kind, ("s3",))
    other = Fault(7.0, kind, target, 4.0, 0)
    result = run(Setting(2, emulator=True), [DEAF, other], seconds=SECONDS)
    assert not result.violations


def test_groups_are_requested_configured_and_removed() -> None:
    engine = ("updown",)
    faults = [
        Fault(4.0, "groups", engine, 0, 1),
        Fault(8.0, "groups", engine, 0, 2),
        Fault(12.0, "groups", engine, 0, 0),
        Fault(16.0, "groups-reloaded", (), 0, 1),
        Fault(20.0, "groups-reloaded", (), 0, 0),
    ]
    result = run(Setting(3), faults, seconds=24.0)
    assert not result.violations
    assert sum("rules of" in line and "change" in line for line in result.lines) >= 2
