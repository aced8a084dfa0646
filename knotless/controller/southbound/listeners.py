"""Whom :class:`knotless.controller.southbound.switches.Switches` calls."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Protocol

from knotless.controller.observed import ObservedSwitch
from knotless.controller.planning import Planned
from knotless.controller.southbound.session import Session
from knotless.controller.steps import Changes, FoundRule
from knotless.forwarding.openflow.rules import SwitchRules
from knotless.topologies.fabric import Fabric

_LOG = logging.getLogger("knotless.switches")


class Reporter(Protocol):
    """Who is told what happens."""

    def tell(self, kind: str, **fields: object) -> None:
        """Report an event."""

    def installed(self, changes: Changes, seconds: float) -> None:
        """Report that a switch holds its rules, after these changes."""

    def changed(self, way: Planned, seconds: float) -> None:
        """Report that all switches hold the rules of a plan, this long after it was asked for."""


class Prober(Protocol):
    """Who sends probes; see :mod:`knotless.controller.southbound.probes`."""

    def prepare(self, session: Session, switch: ObservedSwitch, found: list[FoundRule]) -> None:
        """Give a switch that holds the rules ``found`` those of probes.

        Returns when its cables are known to be right, or wrong ones are blocked.
        """

    def wake(self) -> None:
        """Look at the ports again."""

    def fit(self, fabric: Fabric, sessions: Mapping[str, Session]) -> None:
        """Go on with the links of another fabric; ``sessions`` are those of the switches before."""


def report_installed(
    reporter: Reporter, switch: ObservedSwitch, wanted: SwitchRules, changes: Changes
) -> None:
    """Report that a switch holds the rules ``wanted``, after these changes."""
    counts = {
        "rules": len(wanted.rules),
        "added": changes.count("add"),
        "modified": changes.count("modify"),
        "deleted": changes.count("delete"),
    }
    said = "%s: %d rules as wanted; %d added, %d modified, %d deleted"
    _LOG.info(said, switch, *counts.values())
    reporter.tell("installed", switch=switch.name, **counts)
