"""Generated fabrics: grids of any size, and random graphs with parallel links."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

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
