"""The interface of a topology family, and the assembly of a fabric from its cables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import NamedTuple

from knotless.base.errors import SpecError
from knotless.topologies.fabric import (
    DEFAULT_DELAY_US,
    DEFAULT_RATE_MBPS,
    Fabric,
    FamilyMember,
    Grid,
    Host,
    Link,
    Switch,
)
from knotless.topologies.numbering import (
    CODE_BITS,
    MAX_HOSTS,
    MAX_HOSTS_PER_SWITCH,
    MAX_LINKS,
    MAX_PORT,
    MAX_SWITCHES,
    codes,
    host_ip,
    host_mac,
)

Point = tuple[float, float]
"""A place in a drawing, x to the right and y upwards; neighbours are about 1.5 apart."""


@dataclass(frozen=True)
class Request:
    """A parsed spec.

    Attributes
    ----------
    name : str
        The canonical spec: sizes, then the options that differ from their defaults.
    sizes : tuple of int
        The sizes, each at least 1.
    hosts : int
        Hosts of each switch that has hosts.
    rate_mbps, delay_us : float
        Rate and one-way delay of all links.
    options : mapping of str to int
        The family's own options, with defaults.
    lists : mapping of str to tuple of int
        The family's options with a number for each size.

    """

    name: str
    sizes: tuple[int, ...]
    hosts: int = 1
    rate_mbps: float = DEFAULT_RATE_MBPS
    delay_us: float = DEFAULT_DELAY_US
    options: Mapping[str, int] = field(default_factory=dict)
    lists: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def one_host(sizes: tuple[int, ...], options: Mapping[str, int]) -> int:
    """Return 1, the default number of hosts per switch of most families."""
    del sizes, options
    return 1


@dataclass(frozen=True)
class Family:
    """A topology family. A module of :mod:`knotless.topologies.families` defines one or more.

    Attributes
    ----------
    name : str
        The first word of a spec.
    usage : str
        A spec with letters for sizes, as shown to users.
    summary : str
        One line.
    sizes : tuple of int
        The minimum and maximum number of sizes in a spec.
    build : callable
        Returns the :class:`Fabric` of a :class:`Request`; raises SpecError.
    hosts : bool
        Whether the family has the option ``hosts=K``.
    options : mapping of str to int
        The family's own options and their defaults.
    default_hosts : callable
        Returns the default of ``hosts`` for given sizes and own options.
    default_delay_us : float
        The default one-way delay of links.
    hosts_option : str
        What the literature calls ``hosts``.
    required : tuple of str
        The options that a spec must give.
    flags : tuple of str
        The own options that are written without a value, and then are 1.
    lists : tuple of str
        Options with a number for each size, ``2x1x1``, or one for all, by default 1.
    shape : str or None
        None: sizes are separated by commas. Otherwise by ``x``, as in ``4x4x4``; if not empty, it
        is the option of the sizes: ``S=4x4x4``.
    positions : callable or None
        Returns where to draw each switch; None: :mod:`knotless.topologies.layout` decides.

    """

    name: str
    usage: str
    summary: str
    sizes: tuple[int, int]
    build: Callable[[Request], Fabric]
    hosts: bool = True
    options: Mapping[str, int] = field(default_factory=dict)
    default_hosts: Callable[[tuple[int, ...], Mapping[str, int]], int] = one_host
    default_delay_us: float = DEFAULT_DELAY_US
    hosts_option: str = "hosts"
    required: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    shape: str | None = None
    positions: Callable[[FamilyMember], Sequence[Point]] | None = None


class Cable(NamedTuple):
    """A link whose ports are not yet numbered.

    Attributes
    ----------
    a, b : int
        The indices of the switches.
    a_key, b_key : tuple of int
        At each switch, cables take ports in the order of their keys there.

    """

    a: int
    a_key: tuple[int, ...]
    b: int
    b_key: tuple[int, ...]


def need_switches(spec: str, count: int) -> None:
    """Raise SpecError if ``count`` switches cannot be numbered; call it before building them."""
    if count > MAX_SWITCHES:
        raise SpecError(
            f"{spec}: {count} switches are too many, at most {MAX_SWITCHES} are possible"
        )


def need_links(spec: str, count: int) -> None:
    """Raise SpecError if ``count`` links are too many; call it before building them."""
    if count > MAX_LINKS:
        raise SpecError(f"{spec}: {count} links are too many, at most {MAX_LINKS} are possible")


def need_room(request: Request, leaves: int, others: int, links: int) -> None:
    """Raise SpecError if a fabric cannot be numbered; call it before building its cables.

    ``leaves`` switches have ``request.hosts`` hosts each, ``others`` have none.
    """
    need_switches(request.name, leaves + others)
    _check_hosts(request.name, request.hosts, leaves * request.hosts)
    need_links(request.name, links)


def join(low: int, high: int) -> Cable:
    """Return a cable between two switches; ports are in the order of the neighbours."""
    return Cable(low, (high,), high, (low,))


def cables(pairs: Iterable[tuple[int, int]]) -> list[Cable]:
    """Return a cable for each pair of switches; ports are in the order of the neighbours.

    Examples
    --------
    >>> len(cables([(0, 1), (1, 2), (2, 0)]))
    3

    """
    return [join(low, high) for low, high in pairs]


def assemble(
    request: Request,
    hosts_per_switch: Sequence[int],
    cables: Sequence[Cable],
    grid: Grid | None = None,
    places: Sequence[tuple[int, ...]] | None = None,
) -> Fabric:
    """Number switches, hosts and ports, and return the fabric.

    Host ports come first, from 1, then the cables in the order of their keys. Links are sorted
    by (switch, port) of their end ``a``.

    Parameters
    ----------
    request : Request
        Name, rate and delay.
    hosts_per_switch : sequence of int
        The number of hosts of each switch, and so the number of switches.
    cables : sequence of Cable
        The links.
    grid : Grid, optional
        The grid, if the family is a mesh or torus.
    places : sequence of tuple of int, optional
        The coordinates of the switches with hosts, which come first; they determine addresses (see
        :func:`knotless.topologies.numbering.codes`). By default addresses count the switches.

    Returns
    -------
    Fabric
        The fabric, not yet validated.

    Raises
    ------
    SpecError
        More switches or hosts than can be numbered, or a cable does not join two of the switches.

    Examples
    --------
    >>> fabric = assemble(Request("pair", ()), [2, 1], [join(0, 1)])
    >>> [(host.name, host.switch, host.port) for host in fabric.hosts]
    [('h1', 's1', 1), ('h2', 's1', 2), ('h3', 's2', 1)]
    >>> fabric.links[0].name
    's1:3-s2:2'

    """
    need_switches(request.name, len(hosts_per_switch))
    _check_hosts(request.name, max(hosts_per_switch, default=0), sum(hosts_per_switch))
    _check_cables(request.name, len(hosts_per_switch), cables)
    switches = tuple(Switch(f"s{i + 1}", i + 1) for i in range(len(hosts_per_switch)))
    code = codes(places) if places else range(1, len(switches) + 1)
    hosts: list[Host] = []
    for i, count in ((i, count) for i, count in enumerate(hosts_per_switch) if count):
        hosts += [
            Host(
                f"h{len(hosts) + p}",
                host_mac(code[i], p),
                host_ip(code[i], p),
                switches[i].name,
                p,
                request.rate_mbps,
                request.delay_us,
            )
            for p in range(1, count + 1)
        ]
    ports = _number_ports(hosts_per_switch, cables)
    ordered = sorted(range(len(cables)), key=lambda c: (cables[c].a, ports[c][0]))
    links = tuple(
        Link(
            switches[cables[c].a].name,
            ports[c][0],
            switches[cables[c].b].name,
            ports[c][1],
            request.rate_mbps,
            request.delay_us,
        )
        for c in ordered
    )
    fabric = Fabric(request.name, switches, tuple(hosts), links, grid)
    # Places and cables may be those of a user's family.
    is_valid = len({*code}) == len(code) and all(0 <= number < 1 << CODE_BITS for number in code)
    is_valid &= max(map(max, ports), default=0) <= MAX_PORT
    return fabric.as_numbered() if is_valid else fabric


def _check_cables(spec: str, switches: int, cables: Sequence[object]) -> None:
    """Raise SpecError for what joins no two switches, which families of users may give."""
    for cable in cables:
        if not isinstance(cable, Cable):
            raise SpecError(f"{spec}: {cable!r} is no cable: make them by cables([(0, 1), (1, 2)])")
        if cable.a == cable.b or not (0 <= cable.a < switches and 0 <= cable.b < switches):
            raise SpecError(
                f"{spec}: a cable joins switches {cable.a} and {cable.b}; it must join two of the"
                f" switches 0 to {switches - 1}"
            )


def _check_hosts(spec: str, most: int, total: int) -> None:
    if most > MAX_HOSTS_PER_SWITCH:
        raise SpecError(
            f"{spec}: {most} hosts on a switch are too many,"
            f" at most {MAX_HOSTS_PER_SWITCH} are possible"
        )
    if total > MAX_HOSTS:
        raise SpecError(f"{spec}: {total} hosts are too many, at most {MAX_HOSTS} are possible")


def _number_ports(
    hosts_per_switch: Sequence[int], cables: Sequence[Cable]
) -> list[tuple[int, int]]:
    """Return the ports (at a, at b) of each cable."""
    ends: list[list[tuple[tuple[int, ...], int, int]]] = [[] for _ in hosts_per_switch]
    for c, cable in enumerate(cables):
        ends[cable.a].append((cable.a_key, c, 0))
        ends[cable.b].append((cable.b_key, c, 1))
    ports = [[0, 0] for _ in cables]
    for switch, of_switch in enumerate(ends):
        first = hosts_per_switch[switch] + 1
        for port, (_, c, end) in enumerate(sorted(of_switch), first):
            ports[c][end] = port
    return [(a, b) for a, b in ports]


Keep = Callable[[tuple[int, ...], int], bool]
"""Whether a coordinate has the cable in the positive direction of a dimension."""

POSITIVE, NEGATIVE = 0, 1


def build_grid(request: Request, wrap: bool, keep: Keep | None = None) -> Fabric:
    """Return the mesh (or torus, with ``wrap``) of ``request.sizes``.

    In a dimension of size 2 one link connects the two switches, also in a torus, as in the
    4x2 torus with 12 links of Otsuka et al. A dimension of size 1 has no links.

    Raises
    ------
    SpecError
        A size below 1, or too many switches.

    """
    dims = request.sizes
    if min(dims) < 1:
        raise SpecError(f"{request.name}: a size must be at least 1, not {min(dims)}")
    need_switches(request.name, prod(dims))
    strides = [prod(dims[:d]) for d in range(len(dims))]
    cables = []
    places = []
    for backwards in product(*(range(size) for size in reversed(dims))):
        place = backwards[::-1]
        places.append(place)
        here = sum(x * stride for x, stride in zip(place, strides, strict=True))
        for d, size in enumerate(dims):
            wraps = place[d] == size - 1
            if wraps and not (wrap and size > 2):
                continue
            if keep is not None and not keep(place, d):
                continue
            there = here + (strides[d] if not wraps else -(size - 1) * strides[d])
            cables.append(Cable(here, (d, POSITIVE), there, (d, NEGATIVE)))
    grid = Grid(dims, wrap) if keep is None else None
    return assemble(request, [request.hosts] * prod(dims), cables, grid, places)
