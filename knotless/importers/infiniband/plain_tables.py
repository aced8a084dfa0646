"""The tables of a subnet in the form of :mod:`knotless.importers.subnet_tables`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from knotless.base.errors import ProofError
from knotless.forwarding.state import ForwardingState
from knotless.importers.infiniband.far import AdaptiveTable
from knotless.importers.infiniband.lfts import NO_PORT
from knotless.importers.infiniband.sl2vl import DROP_VL, SlTables
from knotless.importers.infiniband.subnet import Subnet
from knotless.importers.next_hops import NOT_SENT
from knotless.importers.subnet_tables import Levels, LidHost, SubnetTables


def plain_tables(
    subnet: Subnet,
    tables: Mapping[int, NDArray[np.uint8]],
    adaptive: Mapping[int, AdaptiveTable],
    lanes: SlTables,
    sls: NDArray[np.uint16] | None,
    to_others: Sequence[ForwardingState],
) -> SubnetTables:
    """Return the tables of all switches.

    Parameters
    ----------
    subnet : Subnet
        The subnet, with the LIDs of its switches.
    tables, adaptive : mappings by the GUID of the switch
        The output port by LID, and the adaptive tables.
    lanes : SlTables
        The SL to VL tables; none: all packets are in lane 0.
    sls : array of uint16 (hosts, destinations), optional
        The SLs of paths; NOT_SENT where they are not known. None: none is.
    to_others : sequence of ForwardingState
        The states of what hosts send to LIDs that no host has.

    Raises
    ------
    ProofError
        Some of it is not known, or not covered by proofs.

    """
    switches = dict(zip((s.name for s in subnet.fabric.switches), subnet.guids, strict=True))
    if without := [name for name, guid in switches.items() if guid not in tables]:
        raise ProofError(f"proofs need the tables of all switches, and {without[0]} has none")
    if subnet.aggregating.any():
        raise ProofError("proofs do not cover aggregation nodes inside of switches")
    ports = {
        name: dict(_ports(tables[guid], adaptive.get(guid))) for name, guid in switches.items()
    }
    own = {*subnet.lids.tolist()}
    for name, of_switch in ports.items():
        if strange := [lid for lid, out in of_switch.items() if 0 in out and lid not in own]:
            raise ProofError(f"{name} takes LID {strange[0]} for its own, and nobody has it")
    hosts = list(_hosts(subnet))
    if not lanes:
        return SubnetTables(subnet.fabric.links, hosts, ports, to_others=to_others)
    tables_of_lanes = {name: dict(_lanes(subnet, name, lanes)) for name in switches}
    levels = _levels(subnet, sls)
    result = SubnetTables(subnet.fabric.links, hosts, ports, tables_of_lanes, levels, to_others)
    _require_known(result)
    return result


def _ports(
    static: NDArray[np.uint8], adaptive: AdaptiveTable | None
) -> Iterator[tuple[int, tuple[int, ...]]]:
    for lid in np.flatnonzero(static != NO_PORT).tolist():
        if lid > 0:
            yield lid, (int(static[lid]),)
    for lid in adaptive.entries if adaptive else ():
        if adaptive and (ports := adaptive.ports(lid)) != (NO_PORT,):
            yield lid, ports


def _hosts(subnet: Subnet) -> Iterator[LidHost]:
    """Yield the hosts whose LIDs are known."""
    numbers = np.bincount(
        subnet.owner[subnet.owner >= 0], minlength=len(subnet.fabric.hosts)
    ).tolist()
    for host, lid, number in zip(subnet.fabric.hosts, subnet.lids.tolist(), numbers, strict=False):
        if lid > 0:
            lmc = number.bit_length() - 1
            if number != 1 << lmc:
                raise ProofError(f"{host.name} has LIDs that do not exist")
            yield LidHost(host.name, host.switch, host.port, lid, lmc)


def _lanes(
    subnet: Subnet, switch: str, tables: SlTables
) -> Iterator[tuple[tuple[int, int], tuple[int, ...]]]:
    number = subnet.fabric.switch_index[switch]
    attached = sorted([*subnet.fabric.neighbours[switch], *subnet.fabric.hosts_at[switch]])
    for enters in attached:
        for leaves in attached:
            lanes = tables.get((subnet.guids[number], enters, leaves))
            if lanes is None:
                raise ProofError(
                    f"proofs need the SL to VL table of {switch} from port {enters} to port"
                    f" {leaves}"
                )
            yield (enters, leaves), lanes


def _levels(subnet: Subnet, sls: NDArray[np.uint16] | None) -> Mapping[str, Levels]:
    if sls is None:
        return {}
    levels: dict[str, dict[tuple[int, int], list[int]]] = {}
    for number, host in enumerate(subnet.fabric.hosts):
        of_host = sls[number]
        is_known = (of_host != NOT_SENT) & (subnet.lids > 0)
        for sl in np.unique(of_host[is_known]).tolist():
            lids = np.sort(subnet.lids[is_known & (of_host == sl)]).tolist()
            levels.setdefault(host.switch, {})[host.port, sl] = lids
    return levels


def _require_known(tables: SubnetTables) -> None:
    """Raise ProofError unless the SL of each path is known, and arrives, or makes no difference."""
    all_lanes = {lanes for of_switch in tables.lanes.values() for lanes in of_switch.values()}
    if all(len({*lanes}) == 1 and DROP_VL not in lanes for lanes in all_lanes):
        return
    for host in tables.hosts:
        levels = tables.levels.get(host.switch, {})
        with_sl = {lid for (port, _), lids in levels.items() if port == host.port for lid in lids}
        for other in tables.hosts:
            if other != host and (unknown := {*other.lids} - with_sl):
                raise ProofError(
                    "proofs need the SLs of all paths (saquery -p) where SLs use different VLs, and"
                    f" that from {host.name} to LID {min(unknown)} is not known"
                )
    used: dict[int, set[int]] = {}
    for levels in tables.levels.values():
        for (_, sl), lids in levels.items():
            for lid in lids:
                used.setdefault(lid, set()).add(sl)
    for host in tables.hosts:
        sls = set[int]().union(*(used.get(lid, ()) for lid in host.lids))
        for (_, leaves), lanes in tables.lanes[host.switch].items():
            if leaves == host.port and (dropped := [sl for sl in sls if lanes[sl] == DROP_VL]):
                raise ProofError(
                    "such a proof says that all is delivered, and"
                    f" {host.switch} drops SL {dropped[0]} at port {leaves} (VL {DROP_VL})"
                )
