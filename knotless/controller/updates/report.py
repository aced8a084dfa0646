"""The state of routes and their update, for ``GET /status``. Pure."""

from __future__ import annotations

from knotless.controller.updates.state import UpdateState
from knotless.forwarding.openflow.vlan_generations import VLAN_BITS


def routes_as_json(update: UpdateState) -> dict[str, object]:
    """Return where the fabric is.

    ``failed`` are the links and switches that the rules of the last plan avoid as failed,
    ``drained`` those that it avoids for maintenance. ``serves_first``: the last plan is a repair of
    the one before it, and routes return to those of the configured plan when failures have settled;
    ``settling`` as long as they have not.
    The rules add ``first_vlan`` and ``first_priority`` to VLANs and priorities of the plan: they
    are in a VLAN generation (:mod:`knotless.forwarding.openflow.vlan_generations`).
    """
    plan, vlan_generation = update.progress.plan, update.progress.vlan_generation
    return {
        "failed": list(update.reached.failures.names),
        "drained": list(update.reached.desired.drained),
        "repair": plan.kind if plan else "intact",
        "tier": plan.change.tier if plan else None,
        "changing": not update.is_there,
        "serves_first": update.reached.serves_first,
        "settling": update.is_settling,
        "leaving": update.union.leaving(update.goal.desired.fabric),
        "first_vlan": vlan_generation.number << VLAN_BITS,
        "first_priority": vlan_generation.first_priority,
        "waiting_for": sorted(update.progress.waiting),
        "older_rules": len(update.progress.in_flight),
        "dropping": update.progress.dropping,
    }
