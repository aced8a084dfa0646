"""Multipath: plans in which packets take any one of several next hops.

``ecmp`` is equal-cost multipath as in today's Clos fabrics: a hash of source and destination
address chooses, so that all packets of a pair of hosts take one path and keep their order. With
``spray``, switches choose for each packet anew, and packets can overtake each other. What can
happen is the same in both, and so is the proof: a plan cannot deadlock if the union of all choices
has no cycle of channel dependencies. ``layers`` are several complete routings, of which the first
switch chooses one by a hash (:mod:`knotless.routing.layers`).

References
----------
Hopps, Analysis of an equal-cost multi-path algorithm, RFC 2992, 2000. Dixit, Prakash, Hu, Kompella,
On the impact of packet spraying in data center networks, 2013.

"""

from __future__ import annotations

from knotless.base.errors import PlanError
from knotless.routing.plan import Plan

MOST_CHOICES = 64
"""The most ports of a rule that are followed, as in core/forwarding/src/openflow/groups.rs."""


def refuse_adaptive(plan: Plan) -> None:
    """Raise PlanError if switches would have to choose by their queues, as none of ours can.

    OpenFlow rules, Open vSwitch and the tables of 802.1Q switches choose on arrival, and do not
    know how long their queues are: for ``adaptive``, the proof would not hold for them either.
    """
    if plan.multipath == "adaptive":
        raise PlanError(
            f"{plan.engine} on {plan.fabric.name}: switches would have to choose a port when"
            " a frame begins to be sent, and OpenFlow and 802.1Q ones choose on arrival; use plan,"
            " analyse and simulate, or another engine"
        )
    if plan.multipath == "ugal":
        raise PlanError(
            f"{plan.engine} on {plan.fabric.name}: switches would have to choose a path by the"
            " lengths of their queues, which OpenFlow and 802.1Q ones cannot; use plan, analyse and"
            " simulate, or another engine"
        )
    if plan.multipath == "layers":
        raise PlanError(
            f"{plan.engine} on {plan.fabric.name}: first switches would have to choose a VLAN by a"
            " hash, for which there are no rules; use plan, analyse and simulate, or omit"
            " --multipath layers"
        )


def refuse_unruly(plan: Plan) -> None:
    """Raise PlanError if no OpenFlow rule that can be proven chooses next hops as ``plan`` does."""
    refuse_adaptive(plan)
    if plan.multipath == "spray":
        raise PlanError("no OpenFlow rule sprays frames: multipath ecmp has rules")
    largest = 0 if plan.next_hops is None else int(plan.next_hops.sizes.max(initial=0))
    if largest > MOST_CHOICES:
        raise PlanError(
            f"{plan.fabric.name}: a switch would choose among {largest} next hops; rules with more"
            f" than {MOST_CHOICES} are not followed: omit --multipath"
        )
