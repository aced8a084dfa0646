"""A plan as JSON, for other programs."""

from __future__ import annotations

from collections.abc import Mapping

from routing.plan import Plan


def plan_to_json(plan: Plan, summary: Mapping[str, object]) -> dict[str, object]:
    """Return the figures of ``plan`` and all of its paths as plain values.

    ``sources`` has one entry for each set of hosts that send alike: their names, their VLAN,
    and ``paths``, from the name of each other switch with hosts to the virtual channels that
    lead there (``s1:2/0``: out of port 2 of s1 with priority 0).
    """
    routes, channels = plan.routes, plan.channels
    sources = []
    for row in range(len(plan.vlans)):
        names = [
            host.name
            for host, of in zip(plan.fabric.hosts, routes.rows.tolist(), strict=True)
            if of == row
        ]
        paths = {}
        for d, switch in enumerate(plan.fabric.switches):
            if plan.receivers[d] and d != plan.row_switch[row]:
                paths[switch.name] = [channels.name(c, p) for c, p in routes.path(row, d)]
        sources.append({"hosts": names, "vlan": int(plan.vlans[row]), "paths": paths})
    return {**summary, "sources": sources}
