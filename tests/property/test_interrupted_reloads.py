"""Controllers that die in the middle of a reload with another fabric, and start again.

The model is that of :mod:`tests.property.test_fabric_reloads`, which checks at every moment what
the switches hold: no loop, no cycle of channels, no frame lost between hosts that stay.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from common.errors import FabricError
from controller.desired import Desired
from controller.unfinished import Unfinished
from tests.property.test_fabric_reloads import Case
from tests.random_fabrics import seeded

CASES = 96
BLOCKS = 4


def restart(case: Case, desired: Desired) -> None:
    """Start a controller; the switches connect one after the other."""
    case.start(Desired.compute(desired.config, desired.fabric))
    names = list(case.switches)
    case.pick.shuffle(names)
    for name in names:
        case.connect(name)
        for _ in range(case.pick.randrange(6)):
            case.turn()


@pytest.mark.parametrize("block", range(BLOCKS))
def test_a_restarted_controller_finishes_the_change(block: int, tmp_path: Path) -> None:
    interrupted = 0
    for seed, pick in seeded(range(1000 + block, 1000 + CASES, BLOCKS)):
        file = tmp_path / f"{seed}.json"
        case = Case(pick, file)
        case.settle()
        if case.reload():
            continue
        for _ in range(pick.choice((1, 2, 2))):
            for _ in range(pick.randrange(60)):
                case.turn()
            interrupted += file.exists()
            case.kill()
            for _ in range(pick.randrange(3)):
                case.turn()
            restart(case, case.status.desired)
        case.settle()
        case.assert_done()
        assert not file.exists(), f"seed {seed}"
        names = case.status.desired.fabric.switch_index
        gone = [of for name, of in case.switches.items() if name not in names]
        assert not any(switch.rules or switch.groups for switch in gone), f"seed {seed}"
    assert interrupted > CASES / BLOCKS / 4


@pytest.mark.parametrize("block", range(BLOCKS))
def test_the_configuration_may_have_been_edited_meanwhile(block: int, tmp_path: Path) -> None:
    others = 0
    for seed, pick in seeded(range(2000 + block, 2000 + CASES, BLOCKS)):
        file = tmp_path / f"{seed}.json"
        case = Case(pick, file)
        case.settle()
        if case.reload():
            continue
        for _ in range(pick.randrange(60)):
            case.turn()
        case.kill()
        new = case.desired(pick.choice(case.fabrics))
        begun = Unfinished(file).read()
        try:
            _ = begun and begun.existing.extended(new.fabric)
        except FabricError:
            continue  # no host stays
        others += begun is not None and new.fabric != case.status.desired.fabric
        restart(case, new)
        case.settle()
        case.assert_done()
        assert not file.exists(), f"seed {seed}"
    assert others > CASES / BLOCKS / 8
