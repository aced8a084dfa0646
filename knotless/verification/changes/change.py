"""A change of rules: what is installed, the steps to a new plan, and the proof of each step."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from dataclasses import dataclass, replace
from functools import cached_property

from knotless.base.flow_control import FlowControl
from knotless.forwarding.openflow.reader import Generation
from knotless.forwarding.openflow.rules import FabricRules, SwitchRules
from knotless.forwarding.openflow.vlan_generations import VlanGeneration, rules_changed
from knotless.routing.multicast import MulticastGroup, united
from knotless.routing.plan import Plan
from knotless.routing.vlans.host_tags import HostTags
from knotless.topologies.fabric import Fabric
from knotless.verification.changes.proof import Proof

Pair = tuple[str, str]
"""A source host, and a destination host, ``all``, ``multicast:N`` or :data:`EVERYTHING`."""
EVERYTHING = "everything"
"""As the destination of a pair: all frames of the source."""


def pair_count(pairs: Iterable[Pair], fabric: Fabric, groups: Sized = ()) -> int:
    """Return the number of (source, destination) that pairs stand for.

    A destination is a host, all hosts, or a group; :data:`EVERYTHING` is each of them.
    """
    each = len(fabric.hosts) - 1 + 1 + len(groups)
    return sum(each if destination == EVERYTHING else 1 for _, destination in set(pairs))


@dataclass(frozen=True)
class Installed:
    """The state of a fabric when a change begins.

    ``fabric`` is what packets can use now: without links that are down, with links that only the
    new plan does without. ``flow_control`` is in use on its links during the whole change.
    ``older_generations``, oldest first, are those whose packets may still be in the fabric.
    ``plan`` is what the rules implement, apart from guards, if it is known.
    ``whole`` is the fabric with the links that are down, if they may return at any time.
    ``staying`` is for a new plan of another fabric: the hosts that both fabrics have, by name.
    ``fabric`` has the parts of both then. Frames between other hosts may be lost.
    ``vlan_generation`` is the one by which frames are admitted; None: the lowest that is in use.
    ``held_lag`` is the lag of the generation of ``rules`` (:attr:`Generation.lag`), and ``lag``
    that of the next one: 1, and how many of the last ones switches have not confirmed yet.
    ``admitting`` is the plan whose rules it has, if the rules are those of a step: others than its
    are left of an older VLAN generation, or prepared of another.
    ``keeps_tags``: hosts that tag keep their tags, so nobody sends into another VLAN generation.
    """

    fabric: Fabric
    rules: FabricRules
    flow_control: FlowControl
    tags: HostTags | None = None
    multicast: tuple[MulticastGroup, ...] = ()
    older_generations: tuple[Generation, ...] = ()
    plan: Plan | None = None
    whole: Fabric | None = None
    staying: frozenset[str] | None = None
    vlan_generation: VlanGeneration | None = None
    admitting: Plan | None = None
    held_lag: int = 1
    lag: int = 1
    keeps_tags: bool = False

    @property
    def held(self) -> Generation:
        """The generation of :attr:`rules`."""
        return Generation(self.rules, self.tags, self.held_lag)

    @property
    def generations(self) -> list[Generation]:
        """All of which packets may be in the fabric, oldest first."""
        return [*self.older_generations, self.held]


@dataclass(frozen=True)
class Step:
    """One step: all switches get ``rules``, and hosts that tag get ``tags``, in any order.

    A step begins when all switches have confirmed the one before, the first one also earlier: see
    :attr:`Installed.unconfirmed`. If ``await_quiescence``, the step
    ends when all packets that were admitted under older rules have left the fabric: until then the
    next one must not begin. ``dropped`` are the pairs whose frames are dropped, and counted, at
    the port of their source.
    """

    action: str
    rules: FabricRules
    tags: HostTags | None
    proof: Proof
    await_quiescence: bool = False
    dropped: tuple[Pair, ...] = ()

    @cached_property
    def rules_changed(self) -> int:
        """The rules and groups that the step adds, modifies or deletes, on all switches."""
        return rules_changed(self.proof.generations[-2].rules, self.rules)


@dataclass(frozen=True)
class Change:
    """The steps to a plan; see :func:`knotless.verification.changes.planner.plan_change`.

    ``tier`` is 1 if all switches change at once, 2 if a second VLAN generation is used, 3 if
    switches change in batches or frames are dropped; 0 if nothing changes. ``before`` is what is
    installed. ``in_place``: the first step drops what leads to failed links; those after it are
    proven only if no failed link has carried frames again before all switches have confirmed the
    first one. ``drops_first``: the same of a change with two VLAN generations. ``multicast`` are
    the groups of the new plan. ``down`` are the pairs of hosts that are down before it and after
    each step (:mod:`knotless.verification.changes.outage`).
    """

    tier: int
    before: Installed
    steps: tuple[Step, ...]
    in_place: bool = False
    drops_first: bool = False
    multicast: tuple[MulticastGroup, ...] = ()
    down: tuple[int, ...] = ()

    @property
    def needs_links_down(self) -> bool:
        """Whether steps after the first are proven only if no failed link has returned before."""
        return self.in_place or self.drops_first

    @property
    def served_by_step(self) -> int:
        """The number of the step, from 1, after which no pair is down; 0: none is before it."""
        return max((number for number, pairs in enumerate(self.down, 1) if pairs), default=0)

    @property
    def serves_at_once(self) -> bool:
        """Whether no pair is down, or dropped, until packets of older rules have left."""
        before = self.steps[: max(0, self.served_by_step - 1)]
        return not self.dropped and not any(step.await_quiescence for step in before)

    @property
    def groups(self) -> tuple[MulticastGroup, ...]:
        """The groups to which hosts may send during the change: of the old plan and the new one."""
        return united(self.before.multicast, self.multicast)

    @property
    def proven(self) -> bool:
        """Return whether no step can deadlock, or lose a packet that it does not drop by its rules.

        What it drops is in :attr:`dropped`.
        """
        return all(step.proof.safe for step in self.steps)

    @property
    def dropped(self) -> tuple[Pair, ...]:
        """The pairs whose frames some step drops at the port of their source."""
        return tuple(sorted({pair for step in self.steps for pair in step.dropped}))

    def count(self, pairs: Iterable[Pair]) -> int:
        """Return the number of (source, destination) that pairs stand for."""
        return pair_count(pairs, self.before.fabric, self.groups)

    @property
    def rules_changed(self) -> int:
        """The rules and groups that the steps add, modify or delete, in total."""
        return sum(step.rules_changed for step in self.steps)


def compact(change: Change) -> Change:
    """Return a change with the same steps, which share all rules that stay the same.

    So it is small, and what a step changes is found without comparing rules.
    """
    previous: FabricRules = change.before.rules
    shared = {id(previous): previous}
    steps: list[Step] = []
    for step in change.steps:
        rules = {
            name: _sharing(previous[name], new) if name in previous else new
            for name, new in step.rules.items()
        }
        shared[id(step.rules)] = previous = rules
        generations = [
            replace(generation, rules=shared.get(id(generation.rules), generation.rules))
            for generation in step.proof.generations
        ]
        steps.append(replace(step, rules=rules, proof=step.proof.without_cache(generations)))
    return replace(change, steps=tuple(steps))


def _sharing(old: SwitchRules, new: SwitchRules) -> SwitchRules:
    """Return the ``new`` rules of a switch, with the old objects for those that are equal."""
    by_key = {rule.key: rule for rule in old.rules}
    rules = tuple(same if (same := by_key.get(rule.key)) == rule else rule for rule in new.rules)
    if rules == old.rules and new.groups == old.groups:
        return old
    return SwitchRules(rules, new.groups)
