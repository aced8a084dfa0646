"""A change of rules: what is installed, the steps to a new plan, and the proof of each step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from knotless.base.flow_control import FlowControl
from knotless.forwarding.openflow.planes import Plane, rules_changed
from knotless.forwarding.openflow.reader import Generation
from knotless.forwarding.openflow.rules import FabricRules
from knotless.routing.multicast import MulticastGroup
from knotless.routing.plan import Plan
from knotless.routing.vlans.host_tags import HostTags
from knotless.topologies.fabric import Fabric
from knotless.verification.changes.proof import Proof

Pair = tuple[str, str]
"""A source host, and a destination host, ``all``, ``multicast:N`` or :data:`EVERYTHING`."""
EVERYTHING = "everything"
"""As the destination of a pair: all frames of the source."""


@dataclass(frozen=True)
class Installed:
    """What a fabric holds when a change begins.

    ``fabric`` is what packets can use now: without links that are down, with links that only the
    new plan does without. ``flow_control`` is in use on its links during the whole change.
    ``undrained`` are earlier generations, oldest first, whose packets may still be in the fabric.
    ``plane`` is the plane of the rules, and ``plan`` what they implement, if these are known.
    ``whole`` is the fabric with the links that are down, if they may return at any time.
    ``staying`` is for a new plan of another fabric: the hosts that both fabrics have, by name.
    ``fabric`` has the parts of both then. Frames between other hosts may be lost.
    """

    fabric: Fabric
    rules: FabricRules
    flow_control: FlowControl
    tags: HostTags | None = None
    multicast: tuple[MulticastGroup, ...] = ()
    undrained: tuple[Generation, ...] = ()
    plane: Plane | None = None
    plan: Plan | None = None
    whole: Fabric | None = None
    staying: frozenset[str] | None = None


@dataclass(frozen=True)
class Step:
    """One step: all switches get ``rules``, and hosts that tag get ``tags``, in any order.

    A step begins when all switches have confirmed the one before. If ``drain``, the step ends
    when all packets that were admitted under older rules have left the fabric: until then the
    next one must not begin. ``stopped`` are the pairs whose frames are dropped, and counted, at
    the port of their source.
    """

    action: str
    rules: FabricRules
    tags: HostTags | None
    proof: Proof
    drain: bool = False
    stopped: tuple[Pair, ...] = ()

    @cached_property
    def rules_changed(self) -> int:
        """The rules and groups that the step adds, modifies or deletes, on all switches."""
        return rules_changed(self.proof.generations[-2].rules, self.rules)


@dataclass(frozen=True)
class Change:
    """The steps to a plan; see :func:`knotless.verification.changes.tiers.plan_change`.

    ``tier`` is 1 if all switches change at once, 2 if a second plane is used, 3 if switches change
    in batches or frames are stopped; 0 if nothing changes. ``before`` is what is installed.
    ``in_place``: the first step drops what leads to failed links; those after it are proven only
    if no failed link has carried frames again before all switches have confirmed the first one.
    """

    tier: int
    before: Installed
    steps: tuple[Step, ...]
    in_place: bool = False

    @property
    def proven(self) -> bool:
        """Whether no step can deadlock, or lose a packet that is not stopped."""
        return all(step.proof.safe for step in self.steps)

    @property
    def rules_changed(self) -> int:
        """The rules and groups that the steps add, modify or delete, in total."""
        return sum(step.rules_changed for step in self.steps)
