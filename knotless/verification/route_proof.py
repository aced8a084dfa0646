"""Proof files for fabrics of routers, whose tables have prefixes of IPv4.

The packets of a lossless priority stay in it, so that each priority is a network of its own, with
the same routes: one proof, of a network in which each channel has one queue, is for all of them. As
in :mod:`knotless.verification.proof_file`, nothing in here is trusted but which priorities these
are.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from knotless.base.errors import ProofError
from knotless.base.flow_control import FlowControl
from knotless.base.model_limits import PRIORITIES
from knotless.importers.cabling.layer1_topology import NamedEnd
from knotless.importers.fabric import TableFabric
from knotless.importers.route_tables import PacketSource, PlainRoute, RouteTables
from knotless.routing.graphs.dependencies import find_cycle
from knotless.topologies.numbering import mac_text
from knotless.verification.address_classes import AddressClass, Cube, coarse_classes
from knotless.verification.imported_buffers import has_possible_pool_waits
from knotless.verification.imported_verdict import ImportedVerdict, SentWitness
from knotless.verification.proof_file import VERSION, ranks
from knotless.verification.proof_walk import Place, channels_to
from knotless.verification.verdict_parts import is_pool

_IPV4_BITS = 32
_HIGH = 0xFFFF << _IPV4_BITS
"""The bits of an address that are 0 in those of IPv4."""
IPV4 = Cube(0, _HIGH)
_NO_ADDRESS = 0x02 << 40
"""With the number of a host: its address, if none is known. It is none of IPv4."""


def route_proof(
    imported: TableFabric, verdict: ImportedVerdict, read_from: Mapping[str, str]
) -> tuple[dict[str, str], str]:
    """Return the files of a fabric of routers by name, and the proof file of the verdict on it.

    ``read_from`` are the SHA-256 of the files that the fabric was read from.

    Raises
    ------
    ProofError
        Proofs do not cover the tables or the verdict; the message says what of it.

    """
    if verdict.safe and verdict.failed:
        raise ProofError("such a proof says that all is delivered, and not all is: see check")
    if verdict.losses:
        raise ProofError(f"such a proof says that nothing is lost, but {verdict.losses[0]}")
    tables = _with_addresses_that_all_reach(imported.route_tables())
    priorities = _lossless_priorities(imported)
    files = tables.files(imported.fabric.name, read_from)
    control = FlowControl.PAUSE if imported.pausing is None else FlowControl.PFC
    lines = [VERSION, f"flow-control {control.value}"]
    if control is FlowControl.PFC:
        lines.append(f"lossless {' '.join(map(str, priorities))}")
    for name, text in sorted(files.items()):
        lines.append(f"file {name} {hashlib.sha256(text.encode()).hexdigest()}")
    if verdict.safe:
        if has_possible_pool_waits(imported):
            raise ProofError(
                "proofs do not cover lossless buffers without a reserve of their own for a longest"
                " packet"
            )
        lines += ["claim safe", *_rank_lines(imported, priorities[0])]
        lines += map(_class_line, _classes(tables))
    else:
        lines += ["claim cycle", *_wait_lines(imported, tables, verdict)]
    return files, "\n".join(lines) + "\n"


def _with_addresses_that_all_reach(tables: RouteTables) -> RouteTables:
    """Return the same without addresses of hosts that a device outside of the fabric cannot reach.

    A verdict says nothing of what such devices send, and proofs claim that all of it is delivered.
    """
    outside = [source.end for source in tables.hosts if source.address is None]
    walker = _Walker(tables)
    return replace(
        tables,
        sources={
            number: source
            if source.address is None or walker.all_reach(outside, source)
            else replace(source, address=None)
            for number, source in tables.sources.items()
        },
    )


def _lossless_priorities(imported: TableFabric) -> list[int]:
    """Return the priorities that pause on all links and that packets never leave.

    Under PAUSE, 0 stands for all. Raises ProofError if a lossless packet may be in several
    priorities, or if what pauses a priority differs between links.
    """
    if imported.pausing is None:
        if imported.flow_control is FlowControl.PFC:
            raise ProofError("proofs need to know which priorities all routers pause")
        return [0]
    lossless = set()
    for traffic in imported.traffics:
        if traffic.vcs.labels is not None:
            raise ProofError("proofs do not cover packets that get another DSCP on their way")
        numbers, turns = np.unique(traffic.vcs.rows[traffic.vcs.row, 0], return_inverse=True)
        stops = [imported.pausing[:, :, vc // PRIORITIES] for vc in numbers.tolist()]
        if not any(stop.any() for stop in stops):
            continue
        packets = f"packets with {imported.label} {traffic.sent_as(0, 0)}"
        if len(numbers) > 1:
            turn = np.flatnonzero(turns != np.bincount(turns).argmax())[0]
            name = imported.channels.name(int(traffic.vcs.channel_out[turn]), 0)
            raise ProofError(
                "proofs do not cover packets that are not in one queue and priority everywhere, as"
                f" {packets} are not at {name.rpartition('/')[0]}"
            )
        group = int(numbers[0]) % PRIORITIES
        others = np.delete(stops[0], group, axis=1)
        if others.any() or not stops[0][:, group].all():
            raise ProofError(
                "proofs do not cover links that differ in what they pause, as they do for"
                f" {packets}, in priority {group}"
            )
        lossless.add(group)
    if not lossless:
        raise ProofError("proofs need a lossless priority, and no link pauses one")
    return sorted(lossless)


def _rank_lines(imported: TableFabric, priority: int) -> Iterator[str]:
    """Yield the bound of the ranks of channels, and those above 1."""
    dependencies = [traffic.state.dependencies[:, [0, 2]] for traffic in imported.traffics]
    edges = np.unique(np.concatenate(dependencies), axis=0)
    if find_cycle(edges):
        raise ProofError("proofs do not cover cycles that pauses of some priorities only break")
    nodes, rank = ranks(edges)
    yield f"bound {rank.max(initial=1)}"
    for channel, number in zip(nodes.tolist(), rank.tolist(), strict=True):
        if number > 1:
            yield f"rank {imported.channels.name(channel, priority)} {number}"


def prefix_cube(prefix: str) -> Cube:
    """Return the addresses of a prefix of IPv4 among those of 48 bits."""
    network = ipaddress.IPv4Network(prefix)
    return Cube(int(network.network_address), _HIGH | int(network.netmask))


def _classes(tables: RouteTables) -> list[AddressClass]:
    """Return classes of addresses: those that two routers or more tell apart, or that hosts have.

    What one router alone tells apart and does not deliver, such as its own address, divides a class
    there: it needs none of its own.
    """
    tested = Counter(prefix for routes in tables.routes.values() for prefix in routes)
    edges = {source.end for source in tables.sources.values()}
    delivered = {
        prefix
        for router, routes in tables.routes.items()
        for prefix, route in routes.items()
        if any((router, port) in edges for port in route.ports)
    }
    shared = {prefix for prefix, routers in tested.items() if routers > 1} | delivered
    patterns = {prefix: prefix_cube(prefix) for prefix in tested}
    return coarse_classes((patterns[prefix] for prefix in shared), patterns.values(), within=IPV4)


def _class_line(of_class: AddressClass) -> str:
    cube, *without = map(_prefix, (of_class.cube, *of_class.without))
    return f"class {cube}" + (f" but {' '.join(without)}" if without else "")


def _prefix(cube: Cube) -> str:
    length = (cube.mask & ~_HIGH).bit_count()
    return f"{ipaddress.IPv4Address(cube.value)}/{length}"


def _wait_lines(
    imported: TableFabric, tables: RouteTables, verdict: ImportedVerdict
) -> Iterator[str]:
    """Yield each wait of the cycle, with a packet and the channels on which it comes there."""
    if pool := next(filter(is_pool, verdict.cycle), None):
        raise ProofError(f"proofs do not cover cycles through shared memory, as through {pool}")
    walker = _Walker(tables)
    number = {host.name: place for place, host in enumerate(tables.hosts)}
    for witness in verdict.witnesses:
        source, address = _packet(imported, tables, witness)
        own = source.address or mac_text(_NO_ADDRESS + number[source.name])
        yield f"wait {witness.held} {witness.wanted} {source.name} {address} {own}"
        yield f"via {' '.join([source.name, *walker.channels_of(witness, source, address)])}"


def _packet(
    imported: TableFabric, tables: RouteTables, witness: SentWitness
) -> tuple[PacketSource, ipaddress.IPv4Address]:
    """Return who sends the packet of a witness, and an address to which it is sent."""
    state = imported.traffics[0].state
    source = state.source_number(witness.source)
    destination = state.destination_number(witness.source, witness.destination)
    prefixes = [] if destination is None else tables.prefixes_of(destination)
    if source is None or not prefixes:
        raise ProofError(f"the addresses of {witness.packet} are not known")
    return tables.sources[source], ipaddress.IPv4Network(prefixes[0])[0]


class _Walker:
    """Follows single packets through routes, from router to router."""

    def __init__(self, tables: RouteTables) -> None:
        self._peer = {a: b for link in tables.links for a, b in (link, link[::-1])}
        self._routes: dict[str, dict[int, dict[int, PlainRoute]]] = {}
        for router, routes in tables.routes.items():
            by_mask = self._routes.setdefault(router, {})
            for prefix, route in routes.items():
                value, mask = prefix_cube(prefix)
                by_mask.setdefault(mask, {})[value] = route

    def channels_of(
        self, witness: SentWitness, source: PacketSource, address: ipaddress.IPv4Address
    ) -> list[str]:
        """Return the channels on which a packet comes to the wait of a witness."""
        start, to = Place(*source.end), int(address)
        return channels_to(witness, start, lambda place: self._next(place, to), any_priority=True)

    def all_reach(self, starts: Sequence[NamedEnd], host: PacketSource) -> bool:
        """Tell whether packets that enter at any of these ports reach a host, if none goes round.

        The host has an address.
        """
        address = int(ipaddress.IPv4Address(host.address or ""))
        seen, waiting = {*starts}, [*starts]
        while waiting:
            router, entered = waiting.pop()
            route = self._longest(router, address)
            if (
                route is None
                or not route.ports
                or (route.does == "link" and entered in route.ports)
            ):
                return False
            for end in ((router, port) for port in route.ports):
                if end not in self._peer and end != host.end:
                    return False
                if end in self._peer and self._peer[end] not in seen:
                    seen.add(self._peer[end])
                    waiting.append(self._peer[end])
        return True

    def _next(self, place: Place, address: int) -> Iterator[Place]:
        router, entered = place[:2]
        route = self._longest(router, address)
        if route is None or (route.does == "link" and entered in route.ports):
            return
        for port in route.ports:
            if (router, port) in self._peer:
                yield Place(*self._peer[router, port], queue=f"{router}:{port}/", before=place)

    def _longest(self, router: str, address: int) -> PlainRoute | None:
        by_mask = self._routes[router]
        matches = (by_mask[mask].get(address & mask) for mask in sorted(by_mask, reverse=True))
        return next(filter(None, matches), None)
