"""A controller as a configuration makes it, without its switches."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from knotless.controller import composition, config
from knotless.controller.desired import DesiredState
from knotless.controller.overrides import Overrides, StateFile
from knotless.controller.service import Service
from knotless.controller.updates.fabric_state import FabricState


class NoSwitches:
    """Takes the place of all switches; ``changes`` are the desired states that it was given."""

    def __init__(self, **_parts: object) -> None:
        self.changes: list[DesiredState] = []
        self.rule_watch = SimpleNamespace(read_all=lambda _max_age_s: None)

    def change_to(self, new: DesiredState) -> None:
        self.changes.append(new)

    def withdraw(self) -> None:
        raise AssertionError("nothing has changed")


def service_alone(path: Path) -> tuple[Service, list[DesiredState]]:
    """Return the service of a configuration, and the states to which it has changed."""
    with patch.object(composition, "Switches", NoSwitches):
        service, switches = composition.compose(path, config.read(path), None)
    assert isinstance(switches, NoSwitches)
    return service, switches.changes


def nothing_requested(state: FabricState) -> StateFile:
    """Return what operators have requested, if they have requested nothing and no file is kept."""
    return StateFile(
        config=state.desired.config,
        overrides=Overrides(drained=state.desired.drained),
        state=state,
        path=None,
    )
