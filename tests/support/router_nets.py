"""Fabrics of IP routers: leaves and spines, and random ones."""

from __future__ import annotations

import ipaddress
import random

from tests.support.router_dumps import Qos, RouterNet, plain_qos


def leaf_spine(leaves: int, spines: int) -> RouterNet:
    """Return a fabric with shortest paths; leaf i has network 10.i.0.0/24 behind Vlan10."""
    cables = [
        ((f"leaf{i}", f"Ethernet{4 * j}"), (f"spine{j}", f"Ethernet{4 * i}"))
        for i in range(leaves)
        for j in range(spines)
    ]
    hosts = {(f"leaf{i}", "Vlan10"): f"10.{i}.0.1/24" for i in range(leaves)}
    net = RouterNet(cables, hosts=hosts)
    net.routes = {
        f"{kind}{i}": {} for kind, n in (("leaf", leaves), ("spine", spines)) for i in range(n)
    }
    shortest_paths(net)
    net.qos = {router: plain_qos(net.ports(router)) for router in net.routers}
    return net


def shortest_paths(net: RouterNet) -> None:
    """Fill in the routes of all routers to all host networks."""
    lag_of = {(r, port): lag for (r, lag), ports in net.lags.items() for port in ports}
    for (home, port), text in net.hosts.items():
        prefix = str(ipaddress.ip_network(text, strict=False))
        distance = {home: 0}
        queue = [home]
        for router in queue:
            for (name, _), (peer, _) in sorted(net.peers.items()):
                if name == router and peer not in distance:
                    distance[peer] = distance[router] + 1
                    queue.append(peer)
        for router in net.routers:
            if router == home:
                net.routes[router][prefix] = [("", port)]
                continue
            hops: dict[str, str] = {}
            for (name, out), (peer, _) in sorted(net.peers.items()):
                if name == router and distance.get(peer, 99) == distance.get(router, 0) - 1:
                    hops[lag_of.get((name, out), out)] = f"169.254.0.{len(hops) + 1}"
            net.routes[router][prefix] = [(address, out) for out, address in hops.items()]


def clos(pods: int, leaves: int, aggregations: int, cores: int) -> RouterNet:
    """Return a Clos network of three levels; ``cores`` are the core switches of each plane.

    Every leaf is cabled to all aggregation switches of its pod, aggregation switch j of every pod
    to the cores of plane j. Leaf i of pod p has network 10.p.i.0/24 behind Vlan10. All routes are
    shortest paths.
    """
    net = RouterNet([])
    names = [f"pod{p}-leaf{i}" for p in range(pods) for i in range(leaves)]
    names += [f"pod{p}-agg{j}" for p in range(pods) for j in range(aggregations)]
    names += [f"core{j}-{k}" for j in range(aggregations) for k in range(cores)]
    net.routes = {name: {} for name in names}

    def port(number: int) -> str:
        return f"Ethernet{4 * number}"

    def up(first: int, count: int) -> list[tuple[str, str]]:
        return [(f"169.254.0.{n + 1}", port(first + n)) for n in range(count)]

    for p in range(pods):
        for j in range(aggregations):
            for i in range(leaves):
                net.cables.append(((f"pod{p}-leaf{i}", port(j)), (f"pod{p}-agg{j}", port(i))))
            for k in range(cores):
                near = (f"pod{p}-agg{j}", port(leaves + k))
                net.cables.append((near, (f"core{j}-{k}", port(p))))
        for i in range(leaves):
            net.hosts[f"pod{p}-leaf{i}", "Vlan10"] = f"10.{p}.{i}.1/24"
    for p in range(pods):
        for i in range(leaves):
            prefix = f"10.{p}.{i}.0/24"
            for name, routes in net.routes.items():
                pod, _, place = name.partition("-")
                if name.startswith("core"):
                    routes[prefix] = up(p, 1)
                elif name == f"pod{p}-leaf{i}":
                    routes[prefix] = [("", "Vlan10")]
                elif place.startswith("leaf"):
                    routes[prefix] = up(0, aggregations)
                else:
                    routes[prefix] = up(i, 1) if pod == f"pod{p}" else up(leaves, cores)
    net.qos = {router: plain_qos(ports) for router, ports in _ports(net).items()}
    return net


def _ports(net: RouterNet) -> dict[str, list[str]]:
    ports: dict[str, list[str]] = {name: [] for name in net.routes}
    for (router, port), _ in net.peers.items():
        ports[router].append(port)
    return ports


def random_net(seed: int) -> RouterNet:
    """Return a connected fabric with random cables, LAGs, routes and priorities."""
    rng = random.Random(seed)  # noqa: S311
    count = rng.randint(2, 6)
    names = [f"r{i}" for i in range(count)]
    pairs = [(names[rng.randrange(i)], names[i]) for i in range(1, count)]
    for _ in range(rng.randint(0, 5)):
        a, b = rng.sample(names, 2)
        pairs.append((a, b))
    free = {name: iter(range(0, 400, 4)) for name in names}
    cables = [((a, f"Ethernet{next(free[a])}"), (b, f"Ethernet{next(free[b])}")) for a, b in pairs]
    net = RouterNet(cables, routes={name: {} for name in names})
    if rng.random() < 0.4:
        a, b = rng.choice(pairs)
        for near, other in ((a, b), (b, a)):
            members = [p for (r, p), (f, _) in sorted(net.peers.items()) if (r, f) == (near, other)]
            net.lags[near, "PortChannel1"] = members
    for number in range(rng.randint(2, 4)):
        net.hosts[rng.choice(names), f"Vlan{10 + number}"] = f"10.{number}.0.1/24"
    shortest_paths(net)
    _disturb(net, rng)
    for name in names:
        qos = plain_qos(net.ports(name), rng.choice(["3,4", "3,4", "3", "2,3"]))
        if rng.random() < 0.4:
            _change(qos, rng)
        net.qos[name] = qos
    return net


UPLINK = "Ethernet380"
"""A port to a device without files."""


def with_uplinks(net: RouterNet, routers: list[str]) -> list[tuple[str, str]]:
    """Cable each router to a device of its own without files, which no route names.

    Returns the ports.
    """
    for number, router in enumerate(routers, 1):
        tables = net.more.setdefault(router, {})
        tables["DEVICE_NEIGHBOR"] = {UPLINK: {"name": f"T2-{number}", "port": "Ethernet0"}}
        tables["PORT_QOS_MAP"] = {UPLINK: dict(net.qos[router].of_hosts)}
    return [(router, UPLINK) for router in routers]


def add_stale_routes(net: RouterNet, rng: random.Random) -> None:
    """Give routers a default route, and a route to a network that nobody has, at random."""
    for prefix, share in (("0.0.0.0/0", 0.9), ("10.77.0.0/24", 0.5)):
        same = rng.random() < 0.5
        for router in net.routers:
            linked = sorted({port for r, port in net.peers if r == router})
            if linked and rng.random() < share:
                ports = linked[:1] if same else rng.sample(linked, rng.randint(1, len(linked)))
                net.routes[router][prefix] = [("169.254.2.1", port) for port in ports]


def _disturb(net: RouterNet, rng: random.Random) -> None:
    """Replace some routes by others, and add more specific ones."""
    for router in net.routers:
        linked = sorted({p for r, p in net.peers if r == router})
        for prefix, hops in list(net.routes[router].items()):
            if not hops[0][0]:
                continue
            chance = rng.random()
            some = [("169.254.1.1", port) for port in rng.sample(linked, min(2, len(linked)))]
            if chance < 0.12:
                net.routes[router][prefix] = some
            elif chance < 0.15:
                net.routes[router][prefix] = []
            elif chance < 0.2:
                half = str(next(ipaddress.ip_network(prefix).subnets()))
                net.routes[router][half] = some[:1]


def _change(qos: Qos, rng: random.Random) -> None:
    """Let some maps differ from the usual ones."""
    dscps = qos.maps["DSCP_TO_TC_MAP"]
    dscps["OTHER"] = {**dscps["AZURE"], 3: rng.choice([3, 4, 1]), 10: rng.choice([1, 3])}
    queues = qos.maps["TC_TO_QUEUE_MAP"]
    queues["OTHER"] = {**queues["AZURE"], 3: rng.choice([3, 4]), 1: rng.choice([1, 3])}
    groups = qos.maps["TC_TO_PRIORITY_GROUP_MAP"]
    groups["OTHER"] = {**groups["AZURE"], 4: rng.choice([3, 4, 0])}
    pauses = qos.maps["MAP_PFC_PRIORITY_TO_QUEUE"]
    pauses["OTHER"] = {**pauses["AZURE"], 3: rng.choice([3, 4])}
    if rng.random() < 0.3:
        remarks = {tc: rng.choice([3, 4, 8, 10]) for tc in range(8)}
        qos.maps["TC_TO_DSCP_MAP"] = {"OTHER": remarks}
        for uses in qos.ports.values():
            if rng.random() < 0.5:
                uses["tc_to_dscp_map"] = "OTHER"
    for uses in qos.ports.values():
        for use in list(uses):
            if use != "pfc_enable" and rng.random() < 0.3:
                uses[use] = "OTHER"
        if rng.random() < 0.15:
            del uses[rng.choice(list(uses))]
