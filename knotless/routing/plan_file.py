"""Export of a plan as JSON."""

from __future__ import annotations

from collections.abc import Mapping

from knotless.routing.plan import Plan


def plan_to_json(plan: Plan, summary: Mapping[str, object]) -> dict[str, object]:
    """Return the ``summary`` and all paths of ``plan`` as a value for :func:`json.dumps`.

    ``sources`` has one entry per set of hosts with the same paths: their names, their VLAN, and
    ``paths``. A path maps the name of a destination switch to a list of virtual channels, such
    as ``s1:2/0`` for output port 2 of s1 with priority 0; switches that failures separate from the
    source are omitted.
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
            if plan.receivers[d] and (hops := routes.path(row, d)):
                paths[switch.name] = [channels.name(c, p) for c, p in hops]
        sources.append({"hosts": names, "vlan": int(plan.vlans[row]), "paths": paths})
    return {**summary, "sources": sources}
