"""The 802.1Q tables with which a plan's frames take the plan's paths.

A port to a host is an untagged member of every VLAN of its switch, so that frames are delivered
without a tag; its PVID is the VLAN in which the host sends. A port to another switch is a tagged
member of the VLANs that contain its link. MAC tables are static, one per VLAN, because learning
fails if the two directions of a conversation use different VLANs. Broadcasts flood within their
VLAN, so it must not have a loop.

References
----------
Otsuka, Koibuchi, Kudoh, Amano: VLAN routing with switch tagging, section 2; IEEE 802.1Q.

"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from knotless._core.graph import first_loop
from knotless.base.errors import PlanError
from knotless.forwarding.dot1q.model import L2Fabric, L2Port, L2Switch, Macs
from knotless.routing.graphs.channels import Channels, Ints
from knotless.routing.plan import Plan, distinct_rows, refuse_adaptive

NextHops = dict[tuple[int, int], int]
"""(VLAN, destination switch) -> channel."""
Links = dict[int, set[int]]
"""VLAN -> its links, each as the lower of its two channels."""
Members = dict[int, set[int]]
"""VLAN -> the ports to other switches that are members of it."""


def export(plan: Plan) -> L2Fabric:
    """Return the tables of each switch.

    Raises
    ------
    PlanError
        The plan needs more than ordinary switches can do: several virtual channels, VLANs with
        loops, or paths that split by source within a VLAN.

    """
    plan.fabric.refuse_hub("exported")
    refuse_adaptive(plan)
    if plan.next_hops is not None:
        raise PlanError("802.1Q tables have one port for each VLAN and address: omit --multipath")
    if plan.vcs > 1:
        raise PlanError(
            f"ordinary switches cannot change priorities, but {plan.engine} uses {plan.vcs}"
            f" virtual channels on {plan.fabric.name}; use --vcs 1 or another engine"
        )
    next_hops = _next_hops(plan)
    links = _links(plan, next_hops)
    for vlan in plan.broadcast_links:
        _add_tree(plan, next_hops, vlan, links[vlan])
    members = _members(plan, links)
    switches = tuple(
        L2Switch(
            switch.name,
            tuple(_ports(plan, i, members[i])),
            _macs(plan, i, members[i], next_hops[i]),
        )
        for i, switch in enumerate(plan.fabric.switches)
    )
    return L2Fabric(plan.fabric, switches, plan.host_tags())


def _next_hops(plan: Plan) -> list[NextHops]:
    """Return each switch's next hops; raises PlanError if a VLAN would need two."""
    channels = plan.channels
    paths = np.where((plan.receivers > 0)[None, :, None], plan.routes.channels, -1)
    row, destination, hop = np.nonzero(paths >= 0)
    channel: Ints = paths[row, destination, hop].astype(np.int32)
    vlan = plan.pair_vlans[row, destination]
    next_hops: list[NextHops] = [{} for _ in channels.names]
    for switch, v, d, c in distinct_rows(channels.tail[channel], vlan, destination, channel):
        other = next_hops[switch].setdefault((v, d), c)
        if other != c:
            name, to = channels.names[switch], channels.names[d]
            raise PlanError(
                f"VLAN {v} at {name}: paths to {to} split by source, on ports"
                f" {channels.out_port[other]} and {channels.out_port[c]}; an ordinary switch"
                " forwards by VLAN and destination only"
            )
    return next_hops


def _links(plan: Plan, next_hops: list[NextHops]) -> Links:
    """Return the links of each VLAN; raises PlanError if they form a loop."""
    channels = plan.channels
    links: Links = defaultdict(set)
    for hops in next_hops:
        for (vlan, _), c in hops.items():
            links[vlan].add(min(c, int(channels.reverse[c])))
    for vlan, of_tree in plan.broadcast_links.items():
        links[vlan] |= set(of_tree)
    for vlan, of_vlan in sorted(links.items()):
        in_vlan = np.array(sorted(of_vlan), dtype=np.int32)
        loop = first_loop(channels.core, in_vlan)
        if loop is not None:
            ends = channels.tail[in_vlan[loop]], channels.head[in_vlan[loop]]
            a, b = (channels.names[switch] for switch in ends)
            raise PlanError(
                f"VLAN {vlan} has a loop through the link {a}-{b}, in which an ordinary switch"
                " would flood for ever; use --vlans tree"
            )
    return links


def _add_tree(plan: Plan, next_hops: list[NextHops], vlan: int, links: set[int]) -> None:
    """Give each switch of a broadcast VLAN its next hop to every switch with hosts.

    Frames to hosts of the fabric then do not flood there, even if the sender does not tag.
    """
    channels = plan.channels
    into = _channels_into(channels, links)
    for destination in np.flatnonzero(plan.receivers > 0).tolist():
        waiting = [(destination, -1)]
        while waiting:
            reached, onward = waiting.pop()
            for c in into[reached]:
                if onward < 0 or c != channels.reverse[onward]:
                    switch = int(channels.tail[c])
                    next_hops[switch][vlan, destination] = c
                    waiting.append((switch, c))


def _channels_into(channels: Channels, links: set[int]) -> dict[int, list[int]]:
    """Return the channels of ``links``, grouped by the switch that they enter."""
    into: dict[int, list[int]] = defaultdict(list)
    for link in sorted(links):
        for c in (link, int(channels.reverse[link])):
            into[int(channels.head[c])].append(c)
    return into


def _members(plan: Plan, links: Links) -> list[Members]:
    """Return the VLANs of each switch, and their member ports to other switches."""
    channels = plan.channels
    members: list[Members] = [defaultdict(set) for _ in channels.names]
    for vlan, of_vlan in links.items():
        for link in of_vlan:
            members[channels.tail[link]][vlan].add(int(channels.out_port[link]))
            members[channels.head[link]][vlan].add(int(channels.in_port[link]))
    for host, row in zip(plan.fabric.hosts, plan.routes.rows.tolist(), strict=True):
        for vlan in set(plan.pair_vlans[row].tolist()):
            members[plan.fabric.switch_index[host.switch]][vlan] |= set()
    return members


def _ports(plan: Plan, switch: int, members: Members) -> Iterator[L2Port]:
    fabric = plan.fabric
    name = fabric.switches[switch].name
    hosts, neighbours = fabric.hosts_at[name], fabric.neighbours[name]
    for port in sorted([*hosts, *neighbours]):
        if port in hosts:
            yield L2Port(port, plan.vlan_of(hosts[port].name), tuple(sorted(members)), ())
        else:
            tagged = tuple(sorted(vlan for vlan, ports in members.items() if port in ports))
            yield L2Port(port, None, (), tagged)


def _macs(plan: Plan, switch: int, members: Members, next_hops: NextHops) -> Macs:
    """Return the static entries: the switch's own hosts in each VLAN, and hosts on paths."""
    fabric, channels = plan.fabric, plan.channels
    hosts = fabric.hosts_at[fabric.switches[switch].name]
    macs: Macs = {
        vlan: {host.mac: port for port, host in hosts.items()} for vlan in sorted(members)
    }
    for (vlan, d), c in sorted(next_hops.items()):
        for host in fabric.hosts_at[fabric.switches[d].name].values():
            macs[vlan][host.mac] = int(channels.out_port[c])
    return macs
