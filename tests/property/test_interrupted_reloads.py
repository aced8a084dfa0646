"""Controllers that die in the middle of a reload with another fabric; others go on from there.

The model is that of :mod:`tests.property.test_fabric_reloads`, which checks at every moment what
the switches hold: no loop, no cycle of channels, no frame lost between hosts that stay.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from knotless.base.errors import FabricError
from knotless.controller.desired import DesiredState
from knotless.controller.updates.journal import UpdateJournal
from tests.property.test_fabric_reloads import Case
from tests.support.model_controllers import _simulated_time
from tests.support.random_fabrics import seeded

__all__ = ["_simulated_time"]
CASES = 96
BLOCKS = 4


def restart(case: Case, desired: DesiredState) -> None:
    """Start a controller; the switches connect one after the other."""
    case.start(DesiredState.compute(desired.config, desired.fabric))
    names = list(case.switches)
    case.rng.shuffle(names)
    for name in names:
        case.connect(name)
        for _ in range(case.rng.randrange(6)):
            case.turn()


@pytest.mark.thin(1)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_a_restarted_controller_finishes_the_change(block: int, tmp_path: Path) -> None:
    interrupted = 0
    for seed, rng in seeded(range(1000 + block, 1000 + CASES, BLOCKS)):
        file = tmp_path / f"{seed}.json"
        case = Case(rng, file)
        case.settle()
        if case.reload():
            continue
        for _ in range(rng.choice((1, 2, 2))):
            for _ in range(rng.randrange(60)):
                case.turn()
            interrupted += file.exists()
            case.kill()
            for _ in range(rng.randrange(3)):
                case.turn()
            restart(case, case.state.desired)
        case.settle()
        case.assert_done()
        assert not file.exists(), f"seed {seed}"
        assert case.left_behind() == [], f"seed {seed}"
    assert interrupted > CASES / BLOCKS / 4


def test_without_the_file_switches_that_have_gone_keep_rules() -> None:
    left = 0
    for _, rng in seeded(range(1000, 1000 + CASES, 2)):
        case = Case(rng)
        case.settle()
        if case.reload():
            continue
        for _ in range(rng.randrange(60)):
            case.turn()
        case.kill()
        with suppress(AssertionError):  # nothing is proven
            restart(case, case.state.desired)
            case.settle()
        left += bool(case.left_behind())
    assert left > 0


@pytest.mark.deep
@pytest.mark.parametrize("block", range(BLOCKS))
def test_the_configuration_may_have_been_edited_meanwhile(block: int, tmp_path: Path) -> None:
    others = 0
    for seed, rng in seeded(range(2000 + block, 2000 + CASES, BLOCKS)):
        file = tmp_path / f"{seed}.json"
        case = Case(rng, file)
        case.settle()
        if case.reload():
            continue
        for _ in range(rng.randrange(60)):
            case.turn()
        case.kill()
        new = case.desired(rng.choice(case.fabrics))
        begun = UpdateJournal(file).read()
        try:
            _ = begun and begun.union.extended(new.fabric)
        except FabricError:
            continue  # no host stays
        others += begun is not None and new.fabric != case.state.desired.fabric
        restart(case, new)
        case.settle()
        case.assert_done()
        assert not file.exists(), f"seed {seed}"
    assert others > CASES / BLOCKS / 8


def stand_by(case: Case) -> Case:
    """Return a standby of the active controller, connected to all switches."""
    standby = Case(case.rng, case.file, active=case)
    for name in standby.switches:
        standby.connect(name)
    return standby


def follow(standby: Case, desired: DesiredState) -> None:
    """Reload a standby."""
    again = DesiredState.compute(desired.config, desired.fabric)
    standby.controller.change_to(again)


@pytest.mark.thin(1)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_a_standby_finishes_the_change(block: int, tmp_path: Path) -> None:
    interrupted = back = 0
    for seed, rng in seeded(range(3000 + block, 3000 + CASES, BLOCKS)):
        file = tmp_path / f"{seed}.json"
        active = Case(rng, file)
        active.settle()
        for _ in range(2):
            standby = stand_by(active)
            if active.reload():
                continue
            is_reloaded = rng.random() < 0.7
            turns = rng.randrange(60)
            when = rng.randrange(turns + 1)
            for turn in range(turns):
                active.turn()
                if turn == when and is_reloaded:
                    follow(standby, active.state.desired)
            interrupted += active.unfinished.read() is not None
            active.kill()
            before = active.state.desired
            standby.controller.lead()
            standby.settle()
            standby.assert_done()
            back += standby.state.desired.fabric != before.fabric
            assert UpdateJournal(file).read() is None, f"seed {seed}"
            assert standby.left_behind() == [], f"seed {seed}"
            active = standby
    assert interrupted > CASES / BLOCKS / 4
    assert back > 0, "no standby has gone back to the former fabric"
