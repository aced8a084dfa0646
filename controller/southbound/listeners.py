"""Whom :class:`controller.southbound.switches.Switches` calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from controller.observed import ObservedSwitch
from controller.planning import Planned
from controller.southbound.session import Session
from controller.steps import Changes, FoundRule
from topologies.fabric import Fabric


class Reporter(Protocol):
    """Who is told what happens."""

    def tell(self, kind: str, **fields: object) -> None:
        """Report an event."""

    def installed(self, changes: Changes, seconds: float) -> None:
        """Report that a switch holds its rules, after these changes."""

    def changed(self, way: Planned, seconds: float) -> None:
        """Report that all switches hold the rules of a plan, this long after it was asked for."""


class Prober(Protocol):
    """Who sends probes; see :mod:`controller.southbound.probes`."""

    def prepare(self, session: Session, switch: ObservedSwitch, found: list[FoundRule]) -> None:
        """Give a switch that holds the rules ``found`` those of probes.

        Returns when its cables are known to be right, or wrong ones are blocked.
        """

    def wake(self) -> None:
        """Look at the ports again."""

    def fit(self, fabric: Fabric, sessions: Mapping[str, Session]) -> None:
        """Go on with the links of another fabric; ``sessions`` are those of the switches before."""
