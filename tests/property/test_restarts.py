"""A controller that starts again, whatever has failed or returned meanwhile.

The model is that of :mod:`tests.property.test_switches`. At every moment, the rules that switches
hold have no loop and no cycle of channels with all links up, and lose no pair of hosts that is
connected, unless the change that is proven drops some frames.
"""

from __future__ import annotations

from itertools import permutations

import pytest
from ryu.lib import hub

from knotless.controller.desired import DesiredState
from knotless.forwarding.openflow.rules import SwitchRules
from knotless.topologies.failures import NO_FAILURES, Failures, usable
from knotless.verification.check import check
from tests.property.test_switches import (
    DESIRED,
    FABRIC,
    TWO_LAYERS,
    Case,
    _slow_answers,
    separated_pairs,
)
from tests.support.model_switch import ModelSwitch

__all__ = ["_slow_answers"]
ORDERS = list(permutations(range(len(FABRIC.switches))))
PLANS = {"one layer": DESIRED[0], "two layers": TWO_LAYERS}


class Restart(Case):
    """A controller that starts again; ``failures`` are those of the cables."""

    failures = NO_FAILURES

    def check(self) -> None:
        before = len(self.checked)
        super().check()
        plan = self.state.update.plan
        drops = plan is not None and plan.change.tier == 3
        if len(self.checked) > before and not drops:
            held = {
                self.state.desired.names[switch.dpid]: SwitchRules(
                    tuple(switch.rules.values()), tuple(switch.groups.values())
                )
                for switch in self.switches
            }
            verdict = check(usable(FABRIC, self.failures), held)
            assert verdict.undelivered == separated_pairs(self.failures), verdict.problems


def copy_of(switch: ModelSwitch) -> ModelSwitch:
    """Return a switch that holds the same, and has the same ports."""
    copy = ModelSwitch(switch.dpid)
    copy.rules, copy.groups = dict(switch.rules), dict(switch.groups)
    copy.ports, copy.counters = dict(switch.ports), dict(switch.counters)
    return copy


def stopped(case: Case) -> list[ModelSwitch]:
    """End a controller, and return its switches."""
    for switch in case.switches:
        case.disconnect(switch)
    return case.switches


def started(
    seed: int, desired: DesiredState, switches: list[ModelSwitch], failures: Failures
) -> Restart:
    """Start a controller for these switches."""
    case = Restart(seed, desired=desired)
    case.switches, case.failures = [copy_of(switch) for switch in switches], failures
    return case


@pytest.mark.parametrize("mended", [False, True])
@pytest.mark.parametrize("link", range(len(FABRIC.links)))
@pytest.mark.parametrize("plan", PLANS)
def test_every_order_of_connection_is_safe(plan: str, link: int, mended: bool) -> None:
    desired, failed = PLANS[plan], FABRIC.links[link]
    case = Case(link, desired=desired)
    case.settle()
    case.cut(failed)
    case.settle()
    switches = stopped(case)
    if mended:
        case.mend()
    failures = NO_FAILURES if mended else Failures.of(FABRIC, [failed.name])
    for seed, order in enumerate(ORDERS):
        restart = started(seed, desired, switches, failures)
        for number in order:
            restart.connect(restart.switches[number])
            for _ in range(restart.dice.randrange(12)):
                hub.sleep(0)
                restart.check()
        restart.settle()
        assert restart.state.update.goal.failures == failures
        assert restart.reports.kinds.count("takeover") == 1
        restart.held_as_wanted()
