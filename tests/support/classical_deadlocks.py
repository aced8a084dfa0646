"""Fabrics that are known to deadlock, written from the literature.

References
----------
Hu et al., Tagger: practical PFC deadlock prevention in data center networks, CoNEXT 2017 (paths
that bounce after a link failure); Hu et al., Deadlocks in datacenter networks: why do they form,
and how to avoid them, HotNets 2016 (routing loops); the design of PFC deadlock avoidance for SONiC
dual-ToR (packets in tunnels between two switches).

"""

from __future__ import annotations

from itertools import pairwise

from tests.support.router_dumps import Qos, RouterNet, plain_qos
from tests.support.router_nets import leaf_spine, shortest_paths, with_uplinks


def bounce() -> RouterNet:
    """Four leaves and two spines; the links leaf0-spine0 and leaf1-spine1 are down.

    Packets for leaf0 that reach spine0 go down to another leaf and up again.
    """
    net = leaf_spine(4, 2)
    down = {("leaf0", "spine0"), ("leaf1", "spine1")}
    net.cables = [(a, b) for a, b in net.cables if (a[0], b[0]) not in down]
    shortest_paths(net)
    return net


def routing_loop() -> RouterNet:
    """While routes change, spine0 still sends what is for leaf0 by leaf1, which sends it back."""
    net = leaf_spine(3, 2)
    net.routes["spine0"]["10.0.0.0/24"] = [("169.254.0.1", "Ethernet4")]
    net.routes["leaf1"]["10.0.0.0/24"] = [("169.254.0.1", "Ethernet0")]
    return net


def dual_tor(*, remapped: bool) -> RouterNet:
    """A pair of switches with two servers on both, a third leaf, and two spines.

    Server 10.0.0.10 is active at leaf0, server 10.0.0.11 at leaf1. ``remapped``: packets in the
    tunnels have DSCP, queue and priority 2 instead of 3, and 6 instead of 4.
    """
    net = leaf_spine(3, 2)
    del net.hosts["leaf1", "Vlan10"]
    net.hosts["leaf0", "Vlan10"] = "10.0.0.1/24"
    for router in net.routers:
        net.routes[router].pop("10.1.0.0/24")
        net.routes[router]["10.9.0.0/32"] = _towards(net, router, "leaf0")
        net.routes[router]["10.9.0.1/32"] = _towards(net, router, "leaf1")
    both = [("169.254.0.1", "Ethernet0"), ("169.254.0.2", "Ethernet4")]
    for spine in ("spine0", "spine1"):
        net.routes[spine]["10.0.0.0/24"] = both
        net.qos[spine] = _uplink_qos(net, spine, remapped)
    net.routes["leaf1"]["10.0.0.0/24"] = [("", "Vlan10")]
    for number, peer in ((0, 1), (1, 0)):
        name = f"leaf{number}"
        net.qos[name] = _uplink_qos(net, name, remapped)
        tunnel = {"tunnel_type": "IPINIP", "dst_ip": f"10.9.0.{number}", "dscp_mode": "uniform"}
        if remapped:
            net.qos[name].maps |= {"TC_TO_DSCP_MAP": {"TUNNEL": {0: 0, 1: 1, 3: 2, 4: 6}}}
            net.qos[name].maps["TC_TO_QUEUE_MAP"]["TUNNEL"] = {0: 0, 1: 1, 3: 2, 4: 6}
            net.qos[name].maps["DSCP_TO_TC_MAP"]["TUNNEL"] = {2: 3, 6: 4}
            net.qos[name].maps["TC_TO_PRIORITY_GROUP_MAP"]["TUNNEL"] = {3: 2, 4: 6}
            tunnel |= {
                "dscp_mode": "pipe",
                "encap_tc_to_dscp_map": "TUNNEL",
                "encap_tc_to_queue_map": "TUNNEL",
                "decap_dscp_to_tc_map": "TUNNEL",
                "decap_tc_to_pg_map": "TUNNEL",
            }
        net.more[name] = {
            "LOOPBACK_INTERFACE": {f"Loopback0|10.9.0.{number}/32": {}},
            "TUNNEL": {"MuxTunnel0": tunnel},
            "PEER_SWITCH": {f"leaf{peer}": {"address_ipv4": f"10.9.0.{peer}"}},
            "MUX_CABLE": {
                f"Ethernet{100 + 4 * server}": {
                    "server_ipv4": f"10.0.0.{10 + server}/32",
                    "state": "active" if server == number else "standby",
                }
                for server in (0, 1)
            },
            "VLAN_INTERFACE": {"Vlan10|10.0.0.1/24": {}},
        }
    return net


def dual_tor_below_uplinks(*, remapped: bool) -> RouterNet:
    """The same pair alone below its spines, which have an uplink to a device without files.

    No route leads to that device: only the configured neighbour of the port says that it is there.
    What it sends to a server goes down to both leaves of the pair, and from the one that is standby
    up again. Nothing else in this fabric does.
    """
    net = dual_tor(remapped=remapped)
    net.cables = [cable for cable in net.cables if "leaf2" not in (cable[0][0], cable[1][0])]
    del net.hosts["leaf2", "Vlan10"], net.routes["leaf2"], net.qos["leaf2"]
    for routes in net.routes.values():
        routes.pop("10.2.0.0/24")
    with_uplinks(net, ["spine0", "spine1"])
    return net


def default_ring(count: int) -> RouterNet:
    """A ring of routers whose routes to hosts never use the last link, but whose defaults go round.

    Port Ethernet0 of router i leads to Ethernet4 of the next one.
    """
    names = [f"r{i}" for i in range(count)]
    cables = [((a, "Ethernet0"), (b, "Ethernet4")) for a, b in pairwise([*names, names[0]])]
    net = RouterNet(
        cables, hosts={(name, "Vlan10"): f"10.0.{i}.1/24" for i, name in enumerate(names)}
    )
    for i, name in enumerate(names):
        net.routes[name] = {
            f"10.0.{j}.0/24": [("", "Vlan10")]
            if i == j
            else [("169.254.0.1", "Ethernet0" if j > i else "Ethernet4")]
            for j in range(count)
        }
        net.routes[name]["0.0.0.0/0"] = [("169.254.0.1", "Ethernet0")]
        net.qos[name] = plain_qos(net.ports(name))
    return net


def _towards(net: RouterNet, router: str, home: str) -> list[tuple[str, str]]:
    """Return the next hops of a router on the shortest paths to another."""
    if router == home:
        return [("", "Loopback0")]
    peers = {port: other for (name, port), (other, _) in net.peers.items() if name == router}
    direct = [port for port, other in peers.items() if other == home]
    return [("169.254.0.1", port) for port in sorted(direct or peers)]


def _uplink_qos(net: RouterNet, router: str, remapped: bool) -> Qos:
    """Return settings in which priorities 2 and 6 are lossless too, if these are in use."""
    if not remapped:
        return plain_qos(net.ports(router))
    qos = plain_qos(net.ports(router), "2,3,4,6")
    qos.maps["DSCP_TO_TC_MAP"]["AZURE"] |= {2: 2, 6: 6}
    qos.maps["TC_TO_PRIORITY_GROUP_MAP"]["AZURE"] |= {2: 2, 6: 6}
    return qos
