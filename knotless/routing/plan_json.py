"""A plan with all its paths, as JSON."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from knotless.routing.plan import Plan
from knotless.routing.routes import Routes


def plan_to_json(plan: Plan, summary: Mapping[str, object]) -> dict[str, object]:
    """Return the ``summary`` and all paths of ``plan`` as a value for :func:`json.dumps`.

    ``sources`` has one entry per set of hosts with the same paths: their names, their VLAN, and
    ``paths``. A path maps the name of a destination switch to a list of virtual channels, such
    as ``s1:2/0`` for output port 2 of s1 with priority 0; switches that failures separate from the
    source are omitted. With multipath, ``next_hops`` has the output ports instead, of which a
    packet takes any one, by the names of the switch and of the destination switch. Of an adaptive
    plan these are virtual channels, in the order of preference; packets that ``stays`` applies to
    keep away from priority 0 once they have left it. Of a plan whose first switches choose,
    :meth:`~knotless.routing.graphs.source_choices.SourceChoices.as_json` describes the entries.
    With layers, ``layers`` has the ``sources`` of each.
    """
    routes, channels = plan.routes, plan.channels
    if plan.source_choices is not None:
        return {**summary, **plan.source_choices.as_json(channels, plan.receivers)}
    if (sets := plan.next_hops) is not None:
        switches, ports = channels.names, channels.out_port
        to_hosts = np.flatnonzero(plan.receivers).tolist()

        def listed(switch: int, to: int) -> list[int] | list[str]:
            if sets.priorities is None:
                return [int(ports[channel]) for channel in sets.at(switch, to)]
            return [channels.name(*hop) for hop in sets.hops_at(switch, to)]

        next_hops = {
            name: {switches[to]: listed(switch, to) for to in to_hosts if to != switch}
            for switch, name in enumerate(switches)
        }
        stays = {} if sets.priorities is None else {"stays": sets.stays}
        return {**summary, **stays, "next_hops": next_hops}
    if plan.layers is not None:
        layers = [
            _sources(plan, plan.layers.routes_of(routes, layer), vlans)
            for layer, vlans in enumerate(plan.layers.vlans.tolist())
        ]
        return {**summary, "layers": [{"sources": sources} for sources in layers]}
    return {**summary, "sources": _sources(plan, routes, plan.vlans.tolist())}


def _sources(plan: Plan, routes: Routes, vlans: list[int]) -> list[dict[str, object]]:
    """Return the hosts, the VLAN and the paths of each row of ``routes``."""
    channels, sources = plan.channels, []
    for row, vlan in enumerate(vlans):
        names = [
            host.name
            for host, host_row in zip(plan.fabric.hosts, routes.rows.tolist(), strict=True)
            if host_row == row
        ]
        paths = {}
        for d, switch in enumerate(plan.fabric.switches):
            if plan.receivers[d] and (hops := routes.path(row, d)):
                paths[switch.name] = [channels.name(c, p) for c, p in hops]
        sources.append({"hosts": names, "vlan": vlan, "paths": paths})
    return sources
