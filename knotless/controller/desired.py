"""The desired state: plan, rules and verdict, all computed from a configuration.

Pure: the same configuration and fabric give the same result in every controller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from knotless.base.errors import faults_in_one_line
from knotless.base.flow_control import refuse_bubbles
from knotless.controller.config import Config
from knotless.forwarding.openflow.rules import SwitchRules
from knotless.routing.plan import Plan, make_plan, refuse_unruly
from knotless.routing.repair import repair
from knotless.topologies import Fabric
from knotless.topologies.drained import avoided
from knotless.topologies.failures import NO_FAILURES
from knotless.topologies.union import described, removed
from knotless.verification.check import Verdict
from knotless.verification.checked_plan import CheckedPlan, refuse_deadlock


@dataclass(frozen=True, eq=False)
class DesiredState:
    """The desired state; ``rules`` are by the switch's name, for each switch of the fabric.

    ``plan`` is that of the intact fabric. ``routed`` is its repair without the parts that are
    ``drained``: rules, summary and verdict are of this one. Two desired states are equal only if
    they are the same: each reload makes another.
    """

    config: Config
    fabric: Fabric
    drained: tuple[str, ...]
    plan: Plan
    routed: Plan
    rules: Mapping[str, SwitchRules]
    summary: Mapping[str, object]
    verdict: Verdict
    names: Mapping[int, str] = field(init=False)
    """Dpid -> name of the switch."""

    def __post_init__(self) -> None:
        names = {switch.dpid: switch.name for switch in self.fabric.switches}
        object.__setattr__(self, "names", names)

    @classmethod
    @faults_in_one_line("planning")
    def compute(cls, config: Config, fabric: Fabric, drained: tuple[str, ...] = ()) -> DesiredState:
        """Plan, compile and check.

        Raises KnotlessError if the fabric cannot be routed as configured, or may deadlock;
        FaultError if an engine, or Knotless, fails.
        """
        refuse_bubbles(config.flow_control, "a running fabric")
        plan = make_plan(fabric, config)
        refuse_unruly(plan)
        unused = avoided(fabric, NO_FAILURES, drained).failures
        checked = CheckedPlan(repair(plan, unused).plan if unused else plan)
        if not config.allow_deadlock:
            # The plan first: one that is refused is not compiled.
            checked.refuse_deadlock()
            refuse_deadlock(checked.plan, checked.rules_verdict)
            checked.refuse_unproven_backups()
        verdict = checked.rules_verdict
        none = SwitchRules(())
        rules = {s.name: checked.rules.get(s.name, none) for s in fabric.switches}
        summary = checked.summary()
        return cls(config, fabric, drained, plan, checked.plan, rules, summary, verdict)

    @property
    def rule_count(self) -> int:
        """The number of rules on all switches."""
        return sum(len(rules.rules) for rules in self.rules.values())

    def describe(self) -> str:
        """Return one line for the log."""
        verdict = self.verdict
        return (
            f"{self.fabric.name}, {self.plan.engine}: {len(self.fabric.switches)} switches,"
            f" {self.rule_count} rules; {verdict.pairs - verdict.undelivered} of {verdict.pairs}"
            f" pairs delivered, {verdict.text}"
        )


@dataclass(frozen=True)
class Difference:
    """The changes of a new desired state: of the fabric itself, and of the rules of these switches.

    ``added`` and ``removed`` are parts of the fabric, one text for each.
    """

    fabric: bool
    switches: tuple[str, ...]
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @classmethod
    def between(cls, old: DesiredState, new: DesiredState) -> Difference:
        """Compare two desired states."""
        before, after = (
            (fabric.switches, fabric.hosts, fabric.links) for fabric in (old.fabric, new.fabric)
        )
        changed = [name for name, rules in new.rules.items() if old.rules.get(name) != rules]
        added = map(described, removed(new.fabric, old.fabric))
        gone = map(described, removed(old.fabric, new.fabric))
        return cls(before != after, tuple(changed), tuple(added), tuple(gone))

    @property
    def nothing(self) -> bool:
        """Whether both are the same to every switch."""
        return not (self.fabric or self.switches)
