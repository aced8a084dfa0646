"""Multipath: plans in which packets take any one of several next hops.

``ecmp`` is equal-cost multipath as in today's Clos fabrics: a hash of source and destination
address chooses, so that all packets of a pair of hosts take one path and keep their order. With
``spray``, switches choose for each packet anew, and packets can overtake each other. What can
happen is the same in both, and so is the proof: a plan cannot deadlock if the union of all choices
has no cycle of channel dependencies.

References
----------
Hopps, Analysis of an equal-cost multi-path algorithm, RFC 2992, 2000. Dixit, Prakash, Hu, Kompella,
On the impact of packet spraying in data center networks, 2013.

"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from knotless.base.errors import PlanError
from knotless.routing.engine import engine_named, engines
from knotless.routing.graphs.task import Task
from knotless.routing.plan import Plan, refuse_single_path_options
from knotless.routing.vlans.assignment import FIRST_VLAN

Multipath = Literal["none", "ecmp", "spray"]
MULTIPATHS: tuple[Multipath, ...] = get_args(Multipath)
MAX_HASH_SEED = 2**32 - 1


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


def with_multipath(plan: Plan, multipath: Multipath, hash_seed: int = 0) -> Plan:
    """Return ``plan`` with all next hops of its engine instead of one path for each pair.

    All hosts send in one VLAN. Broadcast trees stay, and so does the virtual channel of each host.

    Parameters
    ----------
    plan : Plan
        The plan of an intact fabric.
    multipath : {"none", "ecmp", "spray"}
        How packets take one of several next hops. ``none`` returns the plan itself.
    hash_seed : int
        Of the hash of ``ecmp``, from 0 to ``MAX_HASH_SEED``: another one, other choices.

    Returns
    -------
    Plan
        The plan with :attr:`~knotless.routing.plan.Plan.next_hops`.

    Raises
    ------
    PlanError
        The engine has one path for each pair, or the request has an option that needs that.

    Examples
    --------
    >>> from knotless.routing.plan import make_plan
    >>> from knotless.topologies import load
    >>> plan = with_multipath(make_plan(load("fattree2,4")), "ecmp")
    >>> [plan.channels.name(channel, 0) for channel in plan.next_hops.at(0, 1)]
    ['s1:5/0', 's1:6/0', 's1:7/0', 's1:8/0']

    """
    if multipath == "none":
        return plan
    if plan.multipath in ("adaptive", "ugal"):
        raise PlanError(f"multipath: {plan.engine} has a choice of its own; omit --multipath")
    engine, request = engine_named(plan.engine), plan.request
    if engine.next_hops is None:
        having = [name for name, other in engines().items() if other.next_hops is not None]
        raise PlanError(
            f"multipath: {engine.name} has one path for each pair; engines with several are"
            f" {', '.join(having)}"
        )
    if plan.failures:
        raise PlanError("multipath needs the plan of an intact fabric")
    refuse_single_path_options(request, "multipath")
    root = None if request.root is None else plan.fabric.switch_index[request.root]
    task = Task(plan.fabric, plan.channels, request.vcs, request.select, root)
    return replace(
        plan,
        pair_vlans=np.full_like(plan.pair_vlans, FIRST_VLAN),
        multipath=multipath,
        next_hops=engine.next_hops(task),
        hash_seed=hash_seed,
    )
