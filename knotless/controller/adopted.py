"""The plane in which switches hold their rules when a controller starts. Pure."""

from __future__ import annotations

from contextlib import suppress

from knotless.base.errors import RuleError
from knotless.controller.steps import normal
from knotless.forwarding.openflow.reader import Generation
from knotless.forwarding.openflow.rules import SwitchRules
from knotless.forwarding.openflow.vlan_generations import (
    VlanGeneration,
    rules_in,
    tags_in,
    vlan_generations_in,
)
from knotless.routing.graphs.channels import PRIORITIES


def adopted(wanted: Generation, name: str, found: SwitchRules) -> Generation | None:
    """Return ``wanted`` in the plane in which the switch ``name`` holds its rules already.

    An earlier controller may have changed the routes and come back to them in another plane: the
    rules are correct, and nothing is to be changed. None: the switch holds them in no plane.
    """
    held = _keys(found)
    mine = wanted.rules.get(name, SwitchRules(()))
    for number in vlan_generations_in({name: found}):
        for first in range(PRIORITIES):
            plane = VlanGeneration(number, first)
            with suppress(RuleError):
                if _keys(rules_in({name: mine}, plane)[name]) == held:
                    return Generation(
                        rules_in(dict(wanted.rules), plane), tags_in(wanted.tags, plane)
                    )
    return None


def _keys(rules: SwitchRules) -> frozenset[object]:
    """Return the rules of a switch in canonical form; groups are compared with the rules."""
    return frozenset(normal(rule) for rule in rules.rules)
