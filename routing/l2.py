"""A plan for ordinary Ethernet switches: PVIDs, VLAN membership and static MAC tables.

A port to a host is an untagged member of every VLAN that its switch knows, so that frames are
delivered without a tag, and its PVID is the VLAN of what the host sends. A port to another
switch is a tagged member of the VLANs that hold its link. MAC tables are static, for each VLAN
apart: learning fails where the two directions of a conversation use different VLANs.
Broadcasts flood within the VLAN, which therefore must have no loop.

References
----------
Otsuka, Koibuchi, Kudoh, Amano: VLAN routing with switch tagging, section 2; IEEE 802.1Q.

"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np

from knotless_core.graph import first_loop
from routing.cdg import cycle_names, find_cycle, virtual_channel
from routing.channels import Ints
from routing.flow_control import waiting
from routing.plan import Plan, distinct_rows
from topologies.errors import PlanError

Macs = dict[int, dict[str, int]]
"""VLAN -> {MAC: port}."""


@dataclass(frozen=True)
class L2Port:
    """A port: what is at its other end (``h1``, ``s2:3``), PVID, and the VLANs it is a member of.

    Ports to switches have no PVID: what comes in untagged there is dropped.
    """

    port: int
    peer: str
    pvid: int | None
    untagged: tuple[int, ...]
    tagged: tuple[int, ...]


@dataclass(frozen=True)
class L2Switch:
    """All that an 802.1Q switch must be told."""

    name: str
    ports: tuple[L2Port, ...]
    macs: Macs

    def as_json(self) -> dict[str, object]:
        """Return it as plain values: switch, vlans, ports, and macs as a list of entries."""
        vlans = {vlan for port in self.ports for vlan in (*port.untagged, *port.tagged)}
        return {
            "switch": self.name,
            "vlans": sorted(vlans),
            "ports": [asdict(port) for port in self.ports],
            "macs": [
                {"vlan": vlan, "mac": mac, "port": port}
                for vlan, of_vlan in self.macs.items()
                for mac, port in of_vlan.items()
            ],
        }


@dataclass(frozen=True)
class L2Fabric:
    """The switches, in the fabric's order, and a cycle of channel dependencies, if there is one.

    ``cycle`` is of unicasts and of what floods, under the plan's flow control; channels are
    written ``s1:2/0``.
    """

    switches: tuple[L2Switch, ...]
    cycle: list[str]


def export(plan: Plan) -> L2Fabric:
    """Return what each switch of ``plan`` must be told.

    Raises
    ------
    PlanError
        The plan needs more than ordinary switches can do: several virtual channels, VLANs with
        loops, or paths that part within a VLAN by their source.

    """
    if plan.vcs > 1:
        raise PlanError(
            f"ordinary switches cannot change priorities, but {plan.engine} uses {plan.vcs}"
            f" virtual channels on {plan.fabric.name}; use --vcs 1 or another engine"
        )
    next_hops = _next_hops(plan)
    members = _members(plan, next_hops)
    switches = tuple(
        L2Switch(
            switch.name,
            tuple(_ports(plan, i, members)),
            _macs(plan, i, members[i], next_hops[i]),
        )
        for i, switch in enumerate(plan.fabric.switches)
    )
    edges = {(virtual_channel(a, 0), virtual_channel(b, 0)) for a, b in _waits(plan, next_hops)}
    edges |= {(virtual_channel(a, 0), virtual_channel(b, 0)) for a, b in _floods(plan, members)}
    cycle = find_cycle(waiting(edges, plan.flow_control))
    return L2Fabric(switches, cycle_names(plan.channels, cycle))


NextHops = dict[tuple[int, int], int]
"""(VLAN, destination switch) -> channel."""
Members = dict[int, set[int]]
"""VLAN -> the ports to other switches that are members of it."""


def _next_hops(plan: Plan) -> list[NextHops]:
    """Return each switch's next hops; PlanError where one VLAN would need two."""
    channels = plan.channels
    paths = np.where((plan.receivers > 0)[None, :, None], plan.routes.channels, -1)
    row, destination, hop = np.nonzero(paths >= 0)
    channel: Ints = paths[row, destination, hop].astype(np.int32)
    vlan = plan.pair_vlans[row, destination]
    found: list[NextHops] = [{} for _ in channels.names]
    for at, v, d, c in distinct_rows(channels.tail[channel], vlan, destination, channel):
        other = found[at].setdefault((v, d), c)
        if other != c:
            here, to = channels.names[at], channels.names[d]
            raise PlanError(
                f"VLAN {v} at {here}: paths to {to} part by their source, by ports"
                f" {channels.out_port[other]} and {channels.out_port[c]}; an ordinary switch"
                " forwards by VLAN and destination alone"
            )
    return found


def _members(plan: Plan, next_hops: list[NextHops]) -> list[Members]:
    """Return what VLANs each switch knows; PlanError where the links of one form a loop."""
    channels = plan.channels
    links: dict[int, set[int]] = defaultdict(set)
    for hops in next_hops:
        for (vlan, _), c in hops.items():
            links[vlan].add(min(c, int(channels.reverse[c])))
    members: list[Members] = [defaultdict(set) for _ in channels.names]
    for vlan, of_vlan in sorted(links.items()):
        wanted = np.array(sorted(of_vlan), dtype=np.int32)
        loop = first_loop(channels.core, wanted)
        if loop is not None:
            ends = channels.tail[wanted[loop]], channels.head[wanted[loop]]
            a, b = (channels.names[switch] for switch in ends)
            raise PlanError(
                f"VLAN {vlan} has a loop by way of the link {a}-{b}, in which an ordinary switch"
                " would flood for ever; use --vlans tree"
            )
        for link in wanted.tolist():
            members[channels.tail[link]][vlan].add(int(channels.out_port[link]))
            members[channels.head[link]][vlan].add(int(channels.in_port[link]))
    for host, row in zip(plan.fabric.hosts, plan.routes.rows.tolist(), strict=True):
        for vlan in set(plan.pair_vlans[row].tolist()):
            members[plan.fabric.switch_index[host.switch]][vlan] |= set()
    return members


def _waits(plan: Plan, next_hops: list[NextHops]) -> Iterator[tuple[int, int]]:
    """Yield the channels that a unicast holds while it waits for another, with that one."""
    for of_switch in next_hops:
        for key, c in of_switch.items():
            onward = next_hops[plan.channels.head[c]].get(key)
            if onward is not None:
                yield c, onward


def _floods(plan: Plan, members: list[Members]) -> Iterator[tuple[int, int]]:
    """Yield the same for a broadcast from each switch with hosts, in each of its VLANs."""
    channels = plan.channels
    rows = zip(plan.row_switch.tolist(), plan.vlans.tolist(), strict=True)
    for source, vlan in sorted(set(rows)):
        waiting: list[tuple[int, int]] = [(source, -1)]
        while waiting:
            at, held = waiting.pop()
            back = int(channels.in_port[held]) if held >= 0 else -1
            for port in sorted(members[at][vlan] - {back}):
                c = channels.leaving[at, port]
                if held >= 0:
                    yield held, c
                waiting.append((int(channels.head[c]), c))


def _ports(plan: Plan, switch: int, members: list[Members]) -> Iterator[L2Port]:
    fabric, here = plan.fabric, members[switch]
    name = fabric.switches[switch].name
    for port, host in fabric.hosts_at[name].items():
        yield L2Port(port, host.name, plan.vlan_of(host.name), tuple(sorted(here)), ())
    for port, (far, far_port) in fabric.neighbours[name].items():
        tagged = tuple(sorted(vlan for vlan, ports in here.items() if port in ports))
        yield L2Port(port, f"{far}:{far_port}", None, (), tagged)


def _macs(plan: Plan, switch: int, here: Members, next_hops: NextHops) -> Macs:
    """Return the static entries: of the switch's own hosts in each VLAN, and of those on paths."""
    fabric, channels = plan.fabric, plan.channels
    own = fabric.hosts_at[fabric.switches[switch].name]
    macs: Macs = {vlan: {host.mac: port for port, host in own.items()} for vlan in sorted(here)}
    for (vlan, d), c in sorted(next_hops.items()):
        for host in fabric.hosts_at[fabric.switches[d].name].values():
            macs[vlan][host.mac] = int(channels.out_port[c])
    return macs


def bridge_lines(switch: L2Switch) -> list[str]:
    """Return the switch as commands for a Linux bridge with VLAN filtering.

    The bridge is called by the switch's name, port N of it NAME-ethN; both must exist, and
    the ports belong to the bridge. Run twice, ``fdb add`` complains; all else stays.
    """
    lines = [f"ip link set dev {switch.name} type bridge vlan_filtering 1 stp_state 0"]
    lines.append(f"bridge vlan del dev {switch.name} vid 1 self")
    for port in switch.ports:
        device = f"{switch.name}-eth{port.port}"
        lines.append(f"bridge link set dev {device} learning off")
        lines.append(f"bridge vlan del dev {device} vid 1")
        for vlan in port.untagged:
            pvid = "pvid " if vlan == port.pvid else ""
            lines.append(f"bridge vlan add dev {device} vid {vlan} {pvid}untagged")
        lines += [f"bridge vlan add dev {device} vid {vlan}" for vlan in port.tagged]
    for vlan, of_vlan in switch.macs.items():
        lines += [
            f"bridge fdb add {mac} dev {switch.name}-eth{port} master static vlan {vlan}"
            for mac, port in of_vlan.items()
        ]
    return lines
