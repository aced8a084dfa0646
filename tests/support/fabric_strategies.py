"""Generated fabrics: grids of any size, and random graphs with parallel links."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from knotless.base.errors import FabricError
from knotless.topologies import Fabric, Host, Link, Switch, load
from knotless.topologies.formats.files import from_json, to_json
from knotless.topologies.numbering import host_ip, host_mac
from knotless.topologies.validate import validate


@st.composite
def grids(draw: st.DrawFn) -> Fabric:
    """Meshes and tori of up to three dimensions."""
    family = draw(st.sampled_from(["mesh", "torus"]))
    dims = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    while len(dims) > 1 and prod(dims) > 30:
        dims.pop()
    hosts = draw(st.integers(1, 3))
    return load(",".join([family, *map(str, dims), f"hosts={hosts}"]))


def prod(numbers: list[int]) -> int:
    """Return the product of ``numbers``."""
    result = 1
    for number in numbers:
        result *= number
    return result


@st.composite
def graphs(draw: st.DrawFn) -> Fabric:
    """Connected graphs: a random tree with more links (also parallel ones) and some hosts.

    Ports are in no order and have gaps, dpids are any, some MACs follow no numbering.
    """
    count = draw(st.integers(1, 9))
    pairs = [(draw(st.integers(0, i - 1)), i) for i in range(1, count)]
    if count > 1:
        ends = st.integers(0, count - 1)
        pairs += draw(
            st.lists(st.tuples(ends, ends).filter(lambda pair: pair[0] != pair[1]), max_size=10)
        )
    homes = draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=10))
    ports = [
        iter(draw(st.permutations(list(range(1, 41)))))
        if draw(st.booleans())
        else iter(range(1, 41))
        for _ in range(count)
    ]
    numbered = draw(st.booleans())
    hosts = []
    for h, switch in enumerate(homes):
        port = next(ports[switch])
        mac = host_mac(switch + 1, port) if numbered else f"0a:00:00:00:{h:02x}:07"
        hosts.append(Host(f"h{h + 1}", mac, host_ip(switch + 1, port), f"s{switch + 1}", port))
    links = [Link(f"s{a + 1}", next(ports[a]), f"s{b + 1}", next(ports[b])) for a, b in pairs]
    switches = tuple(Switch(f"s{i + 1}", 1000 + 3 * i) for i in range(count))
    fabric = Fabric("generated", switches, tuple(hosts), tuple(links))
    validate(fabric)
    return fabric


@st.composite
def shuffled(draw: st.DrawFn, fabric: Fabric) -> Fabric:
    """The same fabric from lists in another order, with the ends of links exchanged.

    The order of the switches of a grid says where they are; it is kept.
    """
    links = [
        Link(link.b, link.b_port, link.a, link.a_port, link.rate_mbps, link.delay_us)
        if draw(st.booleans())
        else link
        for link in draw(st.permutations(fabric.links))
    ]
    hosts = tuple(draw(st.permutations(fabric.hosts)))
    switches = fabric.switches
    if fabric.grid is None:
        switches = tuple(draw(st.permutations(switches)))
    listed = replace(fabric, switches=switches, hosts=hosts, links=tuple(links))
    return from_json(to_json(listed))


@st.composite
def dragonflies(draw: st.DrawFn) -> Fabric:
    """Dragonflies of two groups up to all."""
    a, h = draw(st.integers(1, 4)), draw(st.integers(1, 2))
    groups = draw(st.integers(2, a * h + 1))
    return load(f"dragonfly,a={a},h={h},p={draw(st.integers(1, 2))},g={groups}")


@st.composite
def dragonflies_plus(draw: st.DrawFn) -> Fabric:
    """Dragonfly+ of two groups up to all."""
    leaves, spines = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    h, p = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    groups = draw(st.integers(2, min(5, spines * h + 1)))
    return load(f"dragonflyplus,l={leaves},s={spines},h={h},p={p},g={groups}")


@st.composite
def hyperxs(draw: st.DrawFn) -> Fabric:
    """HyperX of up to three dimensions with links in parallel, and full meshes."""
    dims = draw(st.lists(st.integers(2, 5), min_size=1, max_size=3))
    while len(dims) > 1 and prod(dims) > 36:
        dims.pop()
    parallel = [draw(st.integers(1, 2)) for _ in dims]
    hosts = draw(st.integers(1, 2))
    if len(dims) == 1:
        return load(f"fullmesh,{dims[0]},K={parallel[0]},hosts={hosts}")
    texts = ["x".join(map(str, numbers)) for numbers in (dims, parallel)]
    return load(f"hyperx,S={texts[0]},K={texts[1]},hosts={hosts}")


@st.composite
def of_diameter_2(draw: st.DrawFn) -> Fabric:
    """Slim Fly, PolarFly and full meshes."""
    spec = draw(
        st.sampled_from(
            ["slimfly,3", "slimfly,4", "polarfly,2", "polarfly,3", "polarfly,4", "fullmesh,6"]
        )
    )
    return load(f"{spec},hosts={draw(st.integers(1, 2))}")


@st.composite
def rails_and_clos(draw: st.DrawFn) -> Fabric:
    """Rail-optimized fabrics, and Clos networks of three levels."""
    if draw(st.booleans()):
        servers, rails, spines = (draw(st.integers(1, most)) for most in (6, 3, 3))
        unit, links = draw(st.integers(1, 4)), draw(st.integers(1, 2))
        return load(f"rail,{servers},{rails},{spines},unit={unit},links={links}")
    spec = draw(st.sampled_from(["clos3,4", "clos3,4,over=3", "clos3,6,over=2,pods=3"]))
    return load(f"{spec},hosts={draw(st.integers(1, 2))}")


@st.composite
def cubes(draw: st.DrawFn) -> Fabric:
    """Tori of cubes, twisted or not; only some switches have hosts."""
    fabric = load(draw(st.sampled_from(["cube,4x4x4", "cube,4x4x8", "cube,4x4x8,twist"])))
    hosts = draw(st.lists(st.sampled_from(fabric.hosts), min_size=1, max_size=24, unique=True))
    kept = set(hosts)
    return replace(fabric, hosts=tuple(host for host in fabric.hosts if host in kept))


def cluster_fabrics() -> st.SearchStrategy[Fabric]:
    """Fabrics of all families that clusters buy, except cubes."""
    return st.one_of(
        dragonflies(), dragonflies_plus(), hyperxs(), of_diameter_2(), rails_and_clos()
    )


@st.composite
def without_a_switch(draw: st.DrawFn, fabrics: st.SearchStrategy[Fabric]) -> Fabric:
    """A fabric without one switch, its links and hosts, if it stays connected and has hosts."""
    fabric = draw(fabrics)
    gone = draw(st.sampled_from(fabric.switches)).name
    damaged = replace(
        fabric,
        switches=tuple(switch for switch in fabric.switches if switch.name != gone),
        hosts=tuple(host for host in fabric.hosts if host.switch != gone),
        links=tuple(link for link in fabric.links if gone not in (link.a, link.b)),
        grid=None,
    )
    try:
        validate(damaged)
    except FabricError:
        return fabric
    return damaged


@st.composite
def cut(draw: st.DrawFn, fabrics: st.SearchStrategy[Fabric]) -> Fabric:
    """A fabric without some drawn links, as far as it stays connected."""
    fabric = draw(fabrics)
    for link in draw(st.lists(st.sampled_from(fabric.links), max_size=8)) if fabric.links else []:
        without = replace(fabric, links=tuple(kept for kept in fabric.links if kept != link))
        try:
            validate(without)
        except FabricError:
            continue
        fabric = without
    return fabric


@st.composite
def thinned(draw: st.DrawFn, fabrics: st.SearchStrategy[Fabric]) -> Fabric:
    """A fabric without some of its hosts; a switch that had hosts keeps one at least."""
    fabric = draw(fabrics)
    dropped = draw(st.sets(st.sampled_from(fabric.hosts), max_size=12))
    kept = [
        host
        for host in fabric.hosts
        if host not in dropped or host is next(iter(fabric.hosts_at[host.switch].values()))
    ]
    return replace(fabric, hosts=tuple(kept))
