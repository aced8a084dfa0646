"""Proof files for InfiniBand subnets, whose tables have LIDs.

As in :mod:`knotless.verification.proof_file`, nothing in here is trusted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

import numpy as np

from knotless.base.errors import ProofError
from knotless.base.flow_control import FlowControl
from knotless.importers.fabric import TableFabric
from knotless.importers.subnet_tables import LidHost, SubnetTables
from knotless.routing.graphs.dependencies import find_cycle
from knotless.verification.dependencies import edges_of
from knotless.verification.imported_verdict import ImportedVerdict, SentWitness
from knotless.verification.proof_file import VERSION, rank_lines
from knotless.verification.proof_walk import Place, channels_to

_LID_BITS = 16


def subnet_proof(
    imported: TableFabric,
    tables: SubnetTables,
    verdict: ImportedVerdict,
    read_from: Mapping[str, str],
) -> tuple[dict[str, str], str]:
    """Return the files of a subnet by name, and the proof file of the verdict on it.

    ``read_from`` are the SHA-256 of the files that the subnet was read from.

    Raises
    ------
    ProofError
        Proofs do not cover the tables or the verdict; the message says what of it.

    """
    if verdict.safe and verdict.failed:
        raise ProofError("such a proof says that all is delivered, and not all is: see check")
    if verdict.losses:
        raise ProofError(f"such a proof says that nothing is lost, but {verdict.losses[0]}")
    files = tables.files(imported.fabric.name, read_from)
    lines = [VERSION, f"flow-control {FlowControl.CREDITS.value}"]
    for name, text in sorted(files.items()):
        lines.append(f"file {name} {hashlib.sha256(text.encode()).hexdigest()}")
    if verdict.safe:
        lines += ["claim safe", *_rank_lines(imported, tables), *_class_lines(tables)]
    else:
        lines += ["claim cycle", *_wait_lines(tables, verdict)]
    return files, "\n".join(lines) + "\n"


def _rank_lines(imported: TableFabric, tables: SubnetTables) -> Iterator[str]:
    states = [*(traffic.state for traffic in imported.traffics), *tables.to_others]
    edges = np.unique(np.concatenate([edges_of(state) for state in states]), axis=0)
    if find_cycle(edges):
        raise ProofError(
            "proofs do not cover subnets where packets to switches' own LIDs close a cycle"
        )
    return rank_lines(edges, imported.channels)


def _class_lines(tables: SubnetTables) -> Iterator[str]:
    """Yield classes of LIDs: each that an entry or a host has, and the ranges between them.

    Ranges are divided into aligned ones, of which there are few where LIDs follow each other: a
    class without exceptions is followed more quickly than all others as one with many.
    """
    lids = {lid for ports in tables.ports.values() for lid in ports}
    lids |= {lid for host in tables.hosts for lid in host.lids}
    first = 0
    for lid in (*sorted(lids), 1 << _LID_BITS):
        while first < lid:
            aligned = first & -first or 1 << _LID_BITS
            number = min(aligned, 1 << (lid - first).bit_length() - 1)
            yield f"class {_lid(first)}/{_lid((1 << _LID_BITS) - number)}"
            first += number
        if lid in lids:
            yield f"class {_lid(lid)}"
            first = lid + 1


def _lid(value: int) -> str:
    return f"0x{value:04x}"


def _wait_lines(tables: SubnetTables, verdict: ImportedVerdict) -> Iterator[str]:
    """Yield each wait of the cycle, with a packet and the channels on which it comes there."""
    walker = _Walker(tables)
    hosts = {host.name: host for host in tables.hosts}
    for witness in verdict.witnesses:
        source = hosts.get(witness.source)
        if witness.destination in hosts:
            lid = hosts[witness.destination].lid
        else:
            lid = int(witness.destination.removeprefix("LID "))
        if source is None:
            raise ProofError(f"the LID of {witness.source} is not known")
        packet = f"{source.name} {_lid(lid)} {_lid(source.lid)}"
        yield f"wait {witness.held} {witness.wanted} {packet}"
        yield f"via {' '.join([source.name, *walker.channels_of(witness, source, lid)])}"


class _Walker:
    """Follows single packets through tables, from switch to switch."""

    def __init__(self, tables: SubnetTables) -> None:
        self._tables = tables
        self._peer = {}
        for link in tables.links:
            self._peer[link.a, link.a_port] = link.b, link.b_port
            self._peer[link.b, link.b_port] = link.a, link.a_port

    def channels_of(self, witness: SentWitness, source: LidHost, lid: int) -> list[str]:
        """Return the channels on which a packet comes to the wait of a witness."""
        start = Place(source.switch, source.port)
        return channels_to(witness, start, lambda place: self._next(place, lid, witness.value))

    def _next(self, place: Place, lid: int, sl: int) -> Iterator[Place]:
        switch, entered = place[:2]
        lanes = self._tables.lanes.get(switch)
        for port in self._tables.ports[switch].get(lid, ()):
            if (switch, port) in self._peer:
                lane = lanes[entered, port][sl] if lanes else 0
                to, into = self._peer[switch, port]
                yield Place(to, into, lane, f"{switch}:{port}/{lane}", place)
