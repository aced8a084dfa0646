"""Changes of switches by others: whether they can be undone at once, and what rules mean. Pure.

Others are people with ``ovs-ofctl``, other controllers, and switches that lose entries. What they
have deleted or changed of ours is put back; their own rules stay, and are judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from knotless.base.errors import KnotlessError
from knotless.base.flow_control import FlowControl
from knotless.controller.reconcile import FoundRule
from knotless.forwarding.openflow.reader import Generation
from knotless.forwarding.openflow.rules import NORMAL, Output, Rule, SwitchRules
from knotless.routing.multicast import MulticastGroup
from knotless.topologies.fabric import Fabric
from knotless.verification.changes.proof import ProofContext
from knotless.verification.check import check

UNJUDGED = "frames that they match are outside of what was checked"
"""What is said of rules before there is a verdict, or if there are too many for one."""


@dataclass(frozen=True)
class RulesInFabric:
    """All rules by which packets may be forwarded: of ``older`` generations, and those ``held``."""

    fabric: Fabric
    flow_control: FlowControl
    groups: tuple[MulticastGroup, ...]
    older: tuple[Generation, ...]
    held: Generation

    def mixture(self, name: str, held: SwitchRules) -> Mixture:
        """Return what packets may meet while a switch that holds other rules gets the wanted ones.

        ``held`` are those that others have left it.
        """
        generations = (*self.older, *changed_by_others(self.held, name, held))
        return Mixture(self.fabric, self.flow_control, self.groups, generations)

    def with_foreign(self, foreign: Mapping[str, Sequence[FoundRule]]) -> ForeignRules:
        """Return what switches hold if some hold rules of others as well."""
        return ForeignRules(self.fabric, self.flow_control, self.groups, self.held, foreign)


def changed_by_others(
    wanted: Generation, name: str, held: SwitchRules
) -> tuple[Generation, Generation]:
    """Return what switches hold while one has the rules of others, and then what is ``wanted``.

    The first stands between what is wanted and those before it, which others may hold still.
    """
    changed = replace(wanted, rules={**wanted.rules, name: held})
    return changed, replace(wanted, lag=wanted.lag + 1)


@dataclass(frozen=True)
class Mixture:
    """Rules that packets may meet while a switch gets back what it should hold.

    ``generations`` are the older rules of which packets may be left, what switches hold now, and
    what they should hold. ``groups`` are those to which hosts send.
    """

    fabric: Fabric
    flow_control: FlowControl
    groups: tuple[MulticastGroup, ...]
    generations: tuple[Generation, ...]

    def is_acyclic(self) -> bool:
        """Return whether packets cannot wait for each other in a cycle, in any order of events."""
        context = ProofContext(self.fabric, self.flow_control, self.groups)
        try:
            return context.judge(self.generations).outcome.safe
        except KnotlessError:
            return False  # nobody knows what these rules do


@dataclass(frozen=True)
class ForeignRules:
    """The rules of all switches of a fabric, ``own``, and those of others in some of them."""

    fabric: Fabric
    flow_control: FlowControl
    groups: tuple[MulticastGroup, ...]
    own: Generation
    foreign: Mapping[str, Sequence[FoundRule]]

    def verdict(self) -> str:
        """Return whether the fabric can deadlock by all rules together, and what is lost.

        That is the verdict of ``knotless check --live``.
        """
        rules = dict(self.own.rules)
        for name, foreign in self.foreign.items():
            others = [change.rule for change in foreign if change.rule is not None]
            if len(others) < len(foreign) or any(map(_is_unknown, others)):
                return f"{UNJUDGED}, because some do what cannot be followed"
            held = rules.get(name, SwitchRules(()))
            every = sorted([*held.rules, *others], key=lambda rule: rule.order)
            rules[name] = SwitchRules(tuple(every), held.groups)
        try:
            verdict = check(
                self.fabric,
                rules,
                flow_control=self.flow_control,
                multicast=self.groups,
                tags=self.own.tags,
            )
        except KnotlessError as error:
            return f"{UNJUDGED}: {error}"
        failed = f"{verdict.failed} deliveries fail" if verdict.failed else "all is delivered"
        return f"with them the fabric {verdict.text}, and {failed}"


def _is_unknown(rule: Rule) -> bool:
    """Return whether a rule forwards as a learning switch."""
    return any(isinstance(each, Output) and each.port == NORMAL for each in rule.actions)
