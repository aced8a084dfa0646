"""Small fabrics of FRR routers: their files, named cases of statements, and random ones."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

DATACENTER = "frr version 8.4\nfrr defaults datacenter\n"
TRADITIONAL = "frr version 8.4\nfrr defaults traditional\n"
RELAXED = "bgp bestpath as-path multipath-relax"
PERMIT = ["route-map PERMIT permit 10", "exit"]
Link = tuple[str, str]


@dataclass(frozen=True)
class Neighbour:
    """A neighbour of a router: by which port, and the addresses of both ends."""

    port: str
    own: str
    address: str
    router: str


@dataclass
class FrrFabric:
    """Routers with a link network for each cable; all redistribute what is connected.

    ``bgp``, ``family`` and ``end`` are more statements by router, of the section of BGP, of its
    IPv4 address family, and after it; ``port`` those of interfaces by router and port.
    ``redistributes`` replaces ``redistribute connected``.
    """

    links: Sequence[Link]
    numbers: Mapping[str, int]
    lans: Mapping[str, str]
    head: str = DATACENTER
    relaxed: bool = True
    bgp: dict[str, list[str]] = field(default_factory=dict)
    family: dict[str, list[str]] = field(default_factory=dict)
    end: dict[str, list[str]] = field(default_factory=dict)
    port: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    redistributes: dict[str, list[str]] = field(default_factory=dict)

    @property
    def cables(self) -> list[tuple[tuple[str, str], tuple[str, str]]]:
        """The two ends of each cable: router and port."""
        used = dict.fromkeys(self.numbers, 0)
        ends = []
        for a, b in self.links:
            used[a], used[b] = used[a] + 1, used[b] + 1
            ends.append(((a, f"swp{used[a]}"), (b, f"swp{used[b]}")))
        return ends

    def neighbours(self, router: str) -> list[Neighbour]:
        """Return the neighbours of a router, by port."""
        found = []
        for number, ends in enumerate(self.cables):
            for side, (name, port) in enumerate(ends):
                if name == router:
                    own, far = (f"10.255.{number}.{end}" for end in (side, 1 - side))
                    found.append(Neighbour(port, own, far, ends[1 - side][0]))
        return found

    def neighbour(self, router: str, peer: str) -> str:
        """Return the address by which a router speaks with another."""
        return next(n.address for n in self.neighbours(router) if n.router == peer)

    def text(self, router: str) -> str:
        """Return the configuration of a router."""
        lines = [f"hostname {router}", "!", "interface lo"]
        number = [*self.numbers].index(router) + 1
        lines += [f" ip address 10.0.0.{number}/32", "exit"]
        for one in self.neighbours(router):
            lines += ["!", f"interface {one.port}", f" ip address {one.own}/31"]
            lines += [f" {line}" for line in self.port.get((router, one.port), [])]
            lines += ["exit"]
        if router in self.lans:
            lines += ["!", "interface vlan10", f" ip address {self.lans[router]}", "exit"]
        lines += ["!", f"router bgp {self.numbers[router]}", f" bgp router-id 10.0.0.{number}"]
        lines += [f" {RELAXED}"] * self.relaxed
        lines += [
            f" neighbor {one.address} remote-as {self.numbers[one.router]}"
            for one in self.neighbours(router)
        ]
        lines += [f" {line}" for line in self.bgp.get(router, [])]
        lines += [" !", " address-family ipv4 unicast"]
        redistributes = self.redistributes.get(router, ["redistribute connected"])
        lines += [f"  {line}" for line in [*redistributes, *self.family.get(router, [])]]
        lines += [" exit-address-family", "exit", "!", *self.end.get(router, [])]
        return self.head + "\n".join(lines) + "\n"

    def write(self, folder: Path) -> Path:
        """Write a folder for each router, and the list of cables; returns the folder."""
        for router in self.numbers:
            (folder / router).mkdir(parents=True, exist_ok=True)
            (folder / router / "frr.conf").write_text(self.text(router))
        edges = [
            {
                f"node{n}": {"hostname": name, "interfaceName": port}
                for n, (name, port) in enumerate(ends, 1)
            }
            for ends in self.cables
        ]
        (folder / "layer1_topology.json").write_text(json.dumps({"edges": edges}))
        return folder


def leaf_spine(leaves: int = 2, *, one_as: bool = True) -> FrrFabric:
    """Return leaves and two spines, which share an AS with ``one_as``."""
    names = [f"leaf{n}" for n in range(1, leaves + 1)]
    numbers = {name: 65_100 + n for n, name in enumerate(names, 1)}
    numbers |= {"spine1": 65_000, "spine2": 65_000 if one_as else 65_001}
    return FrrFabric(
        [(name, spine) for name in names for spine in ("spine1", "spine2")],
        numbers,
        {name: f"192.168.{n}.1/24" for n, name in enumerate(names, 1)},
    )


def _required(fabric: FrrFabric) -> None:
    fabric.head = TRADITIONAL


def _on_some(fabric: FrrFabric) -> None:
    """Leave leaf1 and leaf2 one session with policies each, to different spines."""
    fabric.head = TRADITIONAL
    for router in fabric.numbers:
        fabric.end[router] = list(PERMIT)
        fabric.family[router] = [
            f"neighbor {one.address} route-map PERMIT {way}"
            for one in fabric.neighbours(router)
            for way in ("in", "out")
            if {router, one.router} not in ({"leaf1", "spine2"}, {"leaf2", "spine1"})
        ]


def _out_map(router: str, *statements: str) -> Callable[[FrrFabric], None]:
    """Return what gives a router a map with statements, for all that it sends."""

    def change(fabric: FrrFabric) -> None:
        fabric.end[router] = ["route-map M permit 10", *(f" {s}" for s in statements), "exit"]
        fabric.family[router] = [
            f"neighbor {one.address} route-map M out" for one in fabric.neighbours(router)
        ]

    return change


def _at_each(router: str, *statements: str) -> Callable[[FrrFabric], None]:
    """Return what gives each neighbour of a router statements, such as ``password a``."""

    def change(fabric: FrrFabric) -> None:
        fabric.family[router] = [
            f"neighbor {one.address} {statement}"
            for one in fabric.neighbours(router)
            for statement in statements
        ]

    return change


def _bgp(router: str, *statements: str) -> Callable[[FrrFabric], None]:
    return lambda fabric: fabric.bgp.__setitem__(router, [*statements])


def _end(router: str, *statements: str) -> Callable[[FrrFabric], None]:
    return lambda fabric: fabric.end.__setitem__(router, [*statements])


def _redistribute(kind: str, *route_map: str) -> Callable[[FrrFabric], None]:
    """Return what lets leaf1 redistribute by a map."""

    def change(fabric: FrrFabric) -> None:
        fabric.redistributes["leaf1"] = [f"redistribute {kind} route-map M"]
        fabric.end["leaf1"] = [*route_map]

    return change


def _loop(fabric: FrrFabric) -> None:
    fabric.end["leaf1"] = ["ip route 0.0.0.0/0 10.255.0.1"]
    fabric.end["spine1"] = ["ip route 10.96.0.0/16 10.255.0.0"]


def _defaults(fabric: FrrFabric) -> None:
    """A default route is sent without a policy, and past one that denies all."""
    fabric.head = TRADITIONAL
    fabric.end["leaf1"] = list(PERMIT)
    fabric.family["leaf1"] = ["neighbor 10.255.0.1 route-map PERMIT in"]
    fabric.family["spine1"] = [
        "neighbor 10.255.0.0 default-originate",
        "neighbor 10.255.0.0 route-map D out",
    ]
    fabric.end["spine1"] = ["route-map D deny 10", "exit"]


def _metrics(fabric: FrrFabric) -> None:
    """``max-med`` counts after route maps."""
    fabric.bgp["spine1"] = ["bgp max-med administrative 5"]
    for spine, metric, leaf in (("spine1", 3, "10.255.0.0"), ("spine2", 4, "10.255.1.0")):
        fabric.family[spine] = [f"neighbor {leaf} route-map M out"]
        fabric.end[spine] = ["route-map M permit 10", f" set metric {metric}", "exit"]


def _silent(fabric: FrrFabric) -> None:
    _out_map("leaf1", "set community no-export")(fabric)
    fabric.family["leaf1"] += ["no neighbor 10.255.0.1 send-community"]


def _sessions(fabric: FrrFabric) -> None:
    fabric.bgp["leaf1"] = [
        "neighbor 10.255.0.1 ttl-security hops 1",
        "neighbor 10.255.1.1 passive",
    ]
    fabric.bgp["leaf2"] = ["neighbor 10.255.3.1 bfd"]


_STATIC = (
    *("ip route 192.168.1.0/24 10.255.2.1 30", "ip route 192.168.93.0/24 blackhole"),
    *("ip route 192.168.94.0/24 10.255.2.1 200", "ip route 192.168.95.0/24 10.255.2.1 5"),
    *("ip route 192.168.95.0/24 10.255.3.1 9", "ip route 192.168.96.0/24 10.255.2.1 tag 7"),
    *("ip route 192.168.97.0/24 10.255.3.1 swp1", "ip route 192.168.98.0/24 10.255.3.1 swp2"),
)
_TAGGED = (
    *("route-map M permit 10", " match tag 7", "exit", "ip route 192.168.50.0/24 blackhole tag 7"),
    *("ip route 192.168.51.0/24 10.255.0.1 tag 8", "ip route 192.168.52.0/24 10.255.0.1 tag 7"),
)
CASES: Mapping[str, tuple[FrrFabric, Callable[[FrrFabric], None]]] = {
    name: (fabric, change)
    for name, fabric, change in (
        ("plain", leaf_spine(), lambda _: None),
        ("policies are required", leaf_spine(), _required),
        ("policies on some sessions", leaf_spine(4, one_as=False), _on_some),
        ("no-advertise", leaf_spine(), _out_map("leaf1", "set community no-advertise")),
        ("no-export", leaf_spine(), _out_map("leaf1", "set community 65535:65281 additive")),
        ("no communities are sent", leaf_spine(), _silent),
        (
            "prepended number of another",
            leaf_spine(),
            _out_map("leaf1", "set as-path prepend 65102"),
        ),
        ("max-med", leaf_spine(), _bgp("spine1", "bgp max-med administrative")),
        ("metrics", leaf_spine(), _metrics),
        (
            "preference",
            leaf_spine(),
            lambda f: (
                f.end.__setitem__("leaf2", ["route-map P permit 10", " set local-preference 90"]),
                f.family.__setitem__("leaf2", ["neighbor 10.255.2.1 route-map P in"]),
            )[0],
        ),
        (
            "networks that are not there",
            leaf_spine(),
            lambda f: f.family.__setitem__(
                "leaf1", ["network 172.20.0.0/16", "network 10.0.0.2/32"]
            ),
        ),
        ("too many prefixes", leaf_spine(), _at_each("leaf1", "maximum-prefix 1")),
        ("passwords differ", leaf_spine(), _bgp("leaf1", "neighbor 10.255.0.1 password a")),
        ("sessions", leaf_spine(), _sessions),
        ("default routes", leaf_spine(), _defaults),
        (
            "port is shut down",
            leaf_spine(),
            lambda f: f.port.__setitem__(("leaf1", "swp1"), ["shutdown"]),
        ),
        ("static routes", leaf_spine(), _end("leaf2", *_STATIC)),
        ("static routes by tag", leaf_spine(), _redistribute("static", *_TAGGED)),
        ("loop of static routes", leaf_spine(), _loop),
        (
            "match interface",
            leaf_spine(),
            _redistribute(
                *("connected", "route-map M permit 10", " match interface lo", "exit"),
                *("route-map M permit 20", " match interface vlan10", "exit"),
            ),
        ),
        (
            "interface that is not there",
            leaf_spine(),
            _redistribute(
                *("connected", "route-map M deny 10", " match interface eth0", "exit"),
                *("route-map M permit 20", "exit"),
            ),
        ),
        (
            "matches of zebra",
            leaf_spine(),
            _redistribute(
                *("connected", "route-map M permit 10", " match ip address prefix-len 24"),
                *(" match source-protocol static", "exit"),
            ),
        ),
    )
}
"""Fabrics whose routes are stored as real FRR installed them, with what each changes."""


def case(name: str) -> FrrFabric:
    """Return the fabric of a case."""
    fabric, change = CASES[name]
    copy = FrrFabric(fabric.links, fabric.numbers, fabric.lans)
    change(copy)
    return copy


def random_fabric(rng: random.Random) -> FrrFabric:
    """Return a leaf-spine, ring or random graph whose routers have some statements drawn."""
    kind = rng.choice(["leaf-spine", "ring", "graph"])
    if kind == "leaf-spine":
        fabric = leaf_spine(rng.choice([2, 3]), one_as=rng.random() < 0.5)
    else:
        count = rng.randint(3, 5)
        names = [f"r{n}" for n in range(1, count + 1)]
        links = [(names[n], names[(n + 1) % count]) for n in range(count)]
        if kind == "graph":
            chords = [
                (a, b)
                for n, a in enumerate(names)
                for b in names[n + 2 :]
                if (a, b) != (names[0], names[-1])
            ]
            links += rng.sample(chords, min(len(chords), rng.randint(0, 2)))
        fabric = FrrFabric(
            links,
            {name: 65_000 + n for n, name in enumerate(names, 1)},
            {name: f"192.168.{n}.1/24" for n, name in enumerate(names, 1)},
        )
    if rng.random() < 0.2:
        fabric.head = TRADITIONAL
    for router in fabric.numbers:
        for _ in range(rng.choice([0, 0, 1, 1, 2])):
            _draw_statement(fabric, router, rng)
    return fabric


def _draw_statement(fabric: FrrFabric, router: str, rng: random.Random) -> None:
    one = rng.choice(fabric.neighbours(router))
    bgp, family, end = (of.setdefault(router, []) for of in (fabric.bgp, fabric.family, fabric.end))
    number = len(end)
    lan = rng.choice([*fabric.lans.values()]).replace(".1/", ".0/")
    match rng.randrange(15):
        case 0:
            fabric.port[router, one.port] = ["shutdown"]
        case 1:
            bgp.append(
                f"neighbor {one.address} {rng.choice(['shutdown', 'passive', 'password a'])}"
            )
        case 2:
            bgp.append(rng.choice(["bgp max-med administrative", "no bgp ebgp-requires-policy"]))
        case 3:
            family.append(f"neighbor {one.address} allowas-in {rng.randint(1, 2)}")
        case 4:
            family.append(f"neighbor {one.address} default-originate")
        case 5:
            family.append(f"neighbor {one.address} maximum-prefix {rng.randint(1, 12)}")
        case 6:
            family.append(f"no neighbor {one.address} send-community")
        case 7:
            end.append(f"ip prefix-list L{number} seq 5 deny {lan}")
            end.append(f"ip prefix-list L{number} seq 10 permit any")
            family.append(
                f"neighbor {one.address} prefix-list L{number} {rng.choice(['in', 'out'])}"
            )
        case 8:
            end.append(f"ip route 172.16.{number}.0/24 {rng.choice([one.address, 'blackhole'])}")
            family.append(rng.choice([f"network 172.16.{number}.0/24", "redistribute static"]))
        case 9:
            end.append(f"ip route {lan} {one.address} {rng.choice([1, 5, 200])}")
        case 10:
            family.append(f"network 172.17.{number}.0/24")
            bgp += ["no bgp network import-check"] * rng.randint(0, 1)
        case kind:
            way = rng.choice(["in", "out"])
            sets = {
                11: f"set as-path prepend {rng.choice([*fabric.numbers.values()])}",
                12: f"set metric {rng.randint(0, 3)}",
                13: f"set community {rng.choice(['no-export', 'no-advertise', '65000:1'])}",
                14: f"set local-preference {rng.choice([90, 100])}",
            }
            end += [f"ip prefix-list M{number} permit {lan}", f"route-map M{number} permit 10"]
            end += [f" match ip address prefix-list M{number}"] * rng.randint(0, 1)
            end += [f" {sets[kind]}", "exit", f"route-map M{number} permit 20", "exit"]
            family.append(f"neighbor {one.address} route-map M{number} {way}")
