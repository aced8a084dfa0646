"""InfiniBand subnets: cables, forwarding tables, SL to VL tables and path SLs.

A packet keeps its SL on the whole path. At a switch it enters by port i, it leaves by port
o = LFT[destination LID], on VL = SL2VL[i][o][SL]. Every VL has its own credits, so every VL except
15 is lossless. See InfiniBand Architecture Specification 1.4, volume 1, 7.6 and 14.2.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from knotless._core import forwarding as core
from knotless.base.errors import RuleError
from knotless.base.flow_control import FlowControl
from knotless.base.memory import Cost, refuse_beyond
from knotless.base.printable import listed
from knotless.forwarding.state import ForwardingState
from knotless.importers.causes import Cause, Source
from knotless.importers.fabric import SentAs, TableFabric, TableTraffic
from knotless.importers.file_kinds import FoundFile
from knotless.importers.findings import Findings
from knotless.importers.infiniband import far, lfts
from knotless.importers.infiniband.far import AdaptiveTable, AdaptiveTables
from knotless.importers.infiniband.host_links import UNKNOWN_SLS, AdapterLanes
from knotless.importers.infiniband.lfts import MAX_LID, NO_PORT, ForwardingTables
from knotless.importers.infiniband.path_sls import PathSls
from knotless.importers.infiniband.plain_tables import plain_tables
from knotless.importers.infiniband.sl2vl import DROP_VL, SLS, SlTables
from knotless.importers.infiniband.sl2vl import KIND as SL2VL
from knotless.importers.infiniband.subnet import Subnet, subnet_of
from knotless.importers.next_hops import (
    DROPPED,
    NOT_SENT,
    UNKNOWN,
    Actions,
    NextHops,
    VcMap,
    classes_at,
)
from knotless.importers.subnet_tables import SubnetTables
from knotless.routing.graphs.dependencies import find_cycle, virtual_channel
from knotless.topologies.formats.ibnetdiscover import Discovered

_FIRST_CHOICE = 256
_OF_SWITCHES = (lfts.KIND.name, far.KIND.name, SL2VL.name)


def assemble(name: str, files: Sequence[FoundFile]) -> TableFabric:
    """Return the subnet called ``name`` that ``files`` describe.

    Raises
    ------
    RuleError
        There is no ibnetdiscover output, or more than one.
    FabricError
        The cables contradict each other.

    """
    cables = [file for file in files if isinstance(file.value, Discovered)]
    if len(cables) != 1:
        there = listed((str(file.path) for file in cables), 3) or "none"
        raise RuleError(f"one output of ibnetdiscover is needed, for the cables; there is {there}")
    subnet = subnet_of(name, cables[0].value)
    count = len(subnet.lids)
    refuse_beyond("this subnet", Cost.INFINIBAND_PAIR.bytes_for(count * count), RuleError)
    findings = Findings()
    of_cables = Source((str(cables[0].path),))
    for switch, guid in zip(subnet.fabric.switches, subnet.guids, strict=True):
        findings.sources[switch.name] = Source(_of_guid(files, guid).files, (f"0x{guid:016x}",))
    for line in cables[0].value.notes():
        findings.note(line, of_cables.cause())
    for line in cables[0].value.complaints:
        findings.gap(f"what ibnetdiscover could not query: {line}", of_cables.cause(line))
    tables = _tables(files, findings)
    adaptive = _adaptive(subnet, files, tables, findings)
    unassigned = _unassigned(subnet, tables, adaptive)
    refuse_beyond("this subnet", Cost.INFINIBAND_PAIR.bytes_for(count * len(unassigned)), RuleError)
    hops = _next_hops(subnet, tables, adaptive, findings, unassigned)
    sls = _path_sls(subnet, files)
    vcs = _vcs(subnet, files, sls, findings)
    sent = _between_hosts(subnet)
    management = dict(_management(subnet, files, tables, adaptive))
    traffics = _traffics(subnet, hops, vcs, sls, sent, findings, unassigned)
    is_known = sls is not None and not (sent[: len(sls)] & (sls == NOT_SENT)).any()
    if not is_known and len(np.unique(vcs.rows, axis=1).T) > 1:
        certain = traffics[: sls is not None]
        if len(unassigned):
            nobody = np.zeros_like(sent)
            certain += _traffics(subnet, hops, vcs, None, nobody, Findings(), unassigned)
        _judge_sls(certain, findings)
    unknown = np.flatnonzero(subnet.lids < 0)
    for host in unknown[:5]:
        findings.gap(
            f"the LID of {subnet.fabric.hosts[host].name}",
            of_cables.cause(f"H-{subnet.host_guids[host][0]:016x}"),
        )
    cut_off = [f for f in files if isinstance(f.value, ForwardingTables) and f.value.cut_off]
    if cut_off:
        last = max(cut_off[0].value.cut_off)
        findings.gap(
            f"the end of the forwarding tables in {cut_off[0].path}",
            Source((str(cut_off[0].path),)).cause(f"0x{last:016x}"),
        )
    return TableFabric(
        fabric=subnet.fabric,
        channels=subnet.channels,
        flow_control=FlowControl.CREDITS,
        traffics=tuple(traffics),
        pairs=int(np.count_nonzero(sent)),
        label="SL",
        hops=hops,
        findings=findings,
        management=management,
        causes_at=partial(_causes, subnet, unassigned, findings),
        subnet_tables=partial(_subnet_tables, subnet, files, tables, adaptive, management),
        host_links=lambda: AdapterLanes(
            subnet, hops, vcs, _sl_tables(files), sls, is_known, sent
        ).links,
    )


def _causes(
    subnet: Subnet,
    unassigned: NDArray[np.int32],
    findings: Findings,
    switch: int,
    _port: int | None,
    destination: int,
) -> list[Cause]:
    """Return the source of a switch's entry for a LID."""
    lid = int([*subnet.lids, *unassigned][destination])
    return [findings.cause(subnet.fabric.switches[switch].name, f"0x{lid:04x}")]


def _subnet_tables(
    subnet: Subnet,
    files: Sequence[FoundFile],
    tables: LidTables,
    adaptive: Adaptive,
    management: Mapping[str, Sequence[TableTraffic]],
) -> SubnetTables:
    with_switches = subnet.with_switches()
    return plain_tables(
        with_switches,
        tables,
        adaptive,
        _sl_tables(files),
        _path_sls(with_switches, files),
        [traffic.state for traffic in chain.from_iterable(management.values())],
    )


def _management(
    subnet: Subnet,
    files: Sequence[FoundFile],
    tables: LidTables,
    adaptive: Adaptive,
) -> Iterator[tuple[str, tuple[TableTraffic, ...]]]:
    """Yield what hosts do not send to each other; what is missing is known already."""
    if subnet.aggregating.any():
        count = np.count_nonzero(subnet.aggregating)
        sent = _all_others(subnet) & ~_between_hosts(subnet)
        name = f"packets of {count} aggregation nodes"
        yield name, _also_sent(subnet, files, tables, adaptive, sent)
    with_switches = subnet.with_switches()
    if len(with_switches.lids) > len(subnet.lids):
        sent = _all_others(with_switches)
        sent[:, with_switches.owner >= 0] = False
        name = "packets to the switches' own LIDs"
        yield name, _also_sent(with_switches, files, tables, adaptive, sent)


def _also_sent(
    subnet: Subnet,
    files: Sequence[FoundFile],
    tables: LidTables,
    adaptive: Adaptive,
    sent: NDArray[np.bool_],
) -> tuple[TableTraffic, ...]:
    count, findings = len(subnet.lids), Findings()
    refuse_beyond("this subnet", Cost.INFINIBAND_PAIR.bytes_for(count * count), RuleError)
    hops = _next_hops(subnet, tables, adaptive, findings)
    sls = _path_sls(subnet, files)
    vcs = _vcs(subnet, files, sls, findings)
    return tuple(_traffics(subnet, hops, vcs, sls, sent, findings))


def _judge_sls(certain: Sequence[TableTraffic], findings: Findings) -> None:
    """Doubt cycles that need SLs which are not known to be used: those of ``certain`` packets are.

    Engines such as LASH and DFSSSP keep paths apart by their SLs.
    """
    edges = [traffic.state.dependencies for traffic in certain]
    held, held_vl, wanted, wanted_vl = np.concatenate([np.empty((0, 6), np.int64), *edges]).T[:4]
    nodes = np.stack([virtual_channel(held, held_vl), virtual_channel(wanted, wanted_vl)], 1)
    if not find_cycle(nodes):
        findings.doubt(UNKNOWN_SLS)


def _of_guid(files: Sequence[FoundFile], guid: int) -> Cause:
    """Return the source of the tables of a switch."""
    paths = tuple(str(file.path) for file in files if file.kind.name in _OF_SWITCHES)
    return Source(paths).cause(f"0x{guid:016x}")


LidTables = dict[int, NDArray[np.uint8]]
"""The output port by LID, by switch GUID."""
Adaptive = dict[int, AdaptiveTable]


def _adaptive(
    subnet: Subnet, files: Sequence[FoundFile], tables: LidTables, findings: Findings
) -> Adaptive:
    """Return the adaptive tables by switch GUID; their static ports are added to ``tables``."""
    adaptive: Adaptive = {}
    for file in files:
        if isinstance(file.value, AdaptiveTables):
            for guid, table in file.value.of_switch.items():
                if adaptive.setdefault(guid, table) != table:
                    findings.unclear(
                        f"which of two adaptive tables of 0x{guid:016x} is right",
                        _of_guid(files, guid),
                    )
    for guid, table in adaptive.items():
        if table.private:
            findings.unclear(
                f"which of several tables (PLFT) of 0x{guid:016x} packets meet",
                _of_guid(files, guid),
            )
        used = {group for _, group in table.entries.values() if group is not None}
        for group in sorted(used - table.groups.keys())[:1]:
            findings.unclear(f"the ports of group {group} of 0x{guid:016x}", _of_guid(files, guid))
        static = np.full(MAX_LID + 1, NO_PORT, dtype=np.uint8)
        for lid, (port, _) in table.entries.items():
            static[lid] = port
        if not np.array_equal(tables.setdefault(guid, static), static):
            findings.unclear(
                f"which of two forwarding tables of 0x{guid:016x} is right", _of_guid(files, guid)
            )
    without = [
        switch.name
        for switch, guid in zip(subnet.fabric.switches, subnet.guids, strict=True)
        if guid not in adaptive
    ]
    if len(without) == len(subnet.guids):
        findings.note(
            "adaptive routing is not seen in these tables (ibdiagnet2.far has it): switches that"
            " use it send packets out of other ports too, which can close cycles",
            _of_guid(files, subnet.guids[0]),
        )
    elif without:
        findings.gap(
            f"the adaptive routing of {listed(without, 5)}", *map(findings.cause, without[:5])
        )
    return adaptive


def _tables(files: Sequence[FoundFile], findings: Findings) -> LidTables:
    """Return the output port by LID, by switch GUID; from several files if they agree."""
    tables: LidTables = {}
    for file in files:
        if not isinstance(file.value, ForwardingTables):
            continue
        for guid, of_switch in file.value.of_switch.items():
            ports = np.full(MAX_LID + 1, NO_PORT, dtype=np.uint8)
            lids = np.frombuffer(of_switch.lids, dtype=np.uint16)
            ports[lids] = np.frombuffer(of_switch.ports, dtype=np.uint8)
            if not np.array_equal(tables.setdefault(guid, ports), ports):
                findings.unclear(
                    f"which of two forwarding tables of 0x{guid:016x} is right",
                    _of_guid(files, guid),
                )
    return tables


_NO_LIDS = np.empty(0, dtype=np.int32)


def _unassigned(subnet: Subnet, tables: LidTables, adaptive: Adaptive) -> NDArray[np.int32]:
    """Return the LIDs of which tables have entries although no port has them, as of old ones.

    It is one of those that all switches treat alike. A LID for which a switch has port 0 is its
    own.
    """
    cabled = [guid for guid in subnet.guids if guid in tables]
    unknown = np.ones(MAX_LID + 1, dtype=bool)
    unknown[[0, *subnet.lids[subnet.lids > 0], *subnet.switch_lids[subnet.switch_lids > 0]]] = False
    has_entry = np.zeros(MAX_LID + 1, dtype=bool)
    for guid in cabled:
        has_entry |= tables[guid] != NO_PORT
        if guid in adaptive:
            has_entry[[*adaptive[guid].entries]] = True
        unknown &= tables[guid] != 0
    lids = np.flatnonzero(unknown & has_entry).astype(np.int32)
    if not len(lids):
        return lids
    refuse_beyond("this subnet", Cost.INFINIBAND_PAIR.bytes_for(len(lids) * len(cabled)), RuleError)
    outs = (_outputs(tables[guid], adaptive.get(guid), lids)[0] for guid in cabled)
    rows = np.stack([out.astype(np.uint16) for out in outs], axis=1)
    _, first = np.unique(rows, axis=0, return_index=True)
    return lids[np.sort(first)]


def _next_hops(
    subnet: Subnet,
    tables: LidTables,
    adaptive: Adaptive,
    findings: Findings,
    unassigned: NDArray[np.int32] = _NO_LIDS,
) -> NextHops:
    """Return the tables for the LIDs of the subnet, then for LIDs that no port has."""
    fabric, actions = subnet.fabric, Actions()
    lids = np.concatenate([subnet.lids, unassigned])
    classes = np.zeros((len(lids), len(fabric.switches)), dtype=np.uint16)
    action_of: list[NDArray[np.uint32]] = []
    homes = np.array(
        [*(node for node, _ in subnet.ends), *([-1] * len(unassigned))], dtype=np.int32
    )
    without = [
        s.name for s, guid in zip(fabric.switches, subnet.guids, strict=True) if guid not in tables
    ]
    if without:
        findings.gap(f"the forwarding tables of {listed(without, 5)}")
    for switch, (node, guid) in enumerate(zip(fabric.switches, subnet.guids, strict=True)):
        if guid not in tables:
            action_of.append(np.array([actions.unknown()], dtype=np.uint32))
            continue
        out, choices = _outputs(tables[guid], adaptive.get(guid), lids)
        classes[:, switch], values = classes_at(out, homes == switch)
        linked = {*fabric.neighbours[node.name], *fabric.hosts_at[node.name]}
        sets = [
            choices[value - _FIRST_CHOICE] if value >= _FIRST_CHOICE else (value,)
            for value in values.tolist()
        ]
        named = {port for ports in sets for port in ports}
        looped = {port for port in named if (switch, port) in subnet.loopbacks}
        if looped:
            findings.gap(
                f"what {node.name} does with packets that return by the cable from its port"
                f" {min(looped)} to itself",
                findings.cause(node.name),
            )
        uncabled = sorted(port for port in named - linked - looped if 0 < port < NO_PORT)
        if uncabled:
            findings.note(
                f"{node.name}: entries name port {uncabled[0]}, which has no cable",
                findings.cause(node.name),
            )
        action_of.append(
            np.array(
                [
                    actions.unknown()
                    if min(ports) < 0 or looped.intersection(ports)
                    else actions.send([port for port in ports if port in linked])
                    for ports in sets
                ],
                dtype=np.uint32,
            )
        )
    unused = sorted(set(tables) - set(subnet.guids))
    if unused:
        findings.note(f"no cable leads to switch 0x{unused[0]:016x}; its table is not used")
    return NextHops(subnet.channels, subnet.ends, classes, action_of, actions)


def _outputs(
    ports: NDArray[np.uint8], adaptive: AdaptiveTable | None, lids: NDArray[np.int32]
) -> tuple[NDArray[np.int32], list[tuple[int, ...]]]:
    """Return the port by LID, or from 256 on the number of a set of ports, and these sets.

    A LID that is not known (-1) has port -1.
    """
    out = ports[np.maximum(lids, 0)].astype(np.int32)
    out[lids < 0] = -1
    numbers: dict[tuple[int, ...], int] = {}
    for place, lid in enumerate(lids.tolist() if adaptive else ()):
        if adaptive and lid in adaptive.entries and len(choice := adaptive.ports(lid)) > 1:
            out[place] = _FIRST_CHOICE + numbers.setdefault(choice, len(numbers))
    return out, list(numbers)


def _sl_tables(files: Sequence[FoundFile]) -> SlTables:
    """Return the SL to VL tables of all files; raises RuleError if some contradict each other."""
    tables: SlTables = {}
    for file in files:
        if file.kind is SL2VL:
            for key, vls in file.value.items():
                if tables.setdefault(key, vls) != vls:
                    raise RuleError(f"{file.path}: contradicts another SL to VL table")
    return tables


def _vcs(
    subnet: Subnet, files: Sequence[FoundFile], sls: NDArray[np.uint16] | None, findings: Findings
) -> VcMap:
    """Return the VL of every turn and SL; VL 0 without tables."""
    tables = _sl_tables(files)
    if not tables:
        findings.note("no SL to VL tables: all packets are taken to use VL 0, as without QoS")
        if sls is not None and len(np.unique(sls[sls != NOT_SENT])) > 1:
            findings.doubt("the SL to VL tables: different SLs may use different VLs")
    numbers: dict[tuple[int, ...], int] = {}
    no_row = (0,) * SLS if not tables else (UNKNOWN,) * SLS
    channels = subnet.channels
    columns: list[tuple[int, int, int]] = []
    entering: list[list[tuple[int, int]]] = [[] for _ in channels.names]
    leaving: list[list[tuple[int, int]]] = [[] for _ in channels.names]
    for (switch, port), channel in channels.entering.items():
        entering[switch].append((port, channel))
    for (switch, port), channel in channels.leaving.items():
        leaving[switch].append((port, channel))
    for host, (switch, port) in enumerate(subnet.ends[: len(subnet.fabric.hosts)]):
        entering[switch].append((port, len(channels) + host))
    for switch, guid in enumerate(subnet.guids):
        for in_port, channel_in in entering[switch]:
            for out_port, channel in leaving[switch]:
                vls = tables.get((guid, in_port, out_port), no_row)
                columns.append((channel_in, channel, numbers.setdefault(vls, len(numbers))))
    rows = np.array([*numbers] or [no_row], dtype=np.uint8).reshape(-1, SLS)
    rows[rows == DROP_VL] = DROPPED
    channels_in, outs, row = np.array(columns, dtype=np.uint32).reshape(-1, 3).T.copy()
    return VcMap(channels_in, outs, row, rows)


def _path_sls(subnet: Subnet, files: Sequence[FoundFile]) -> NDArray[np.uint16] | None:
    """Return the SL by (host, destination), NOT_SENT where it is unknown; None without any.

    It is also unknown where several LIDs or files of a host have different ones.
    """
    path_sls = [file.value for file in files if isinstance(file.value, PathSls)]
    if not path_sls:
        return None
    by_lid = {lid: number for number, lid in enumerate(subnet.lids.tolist()) if lid > 0}
    by_guid = {guids[1]: host for host, guids in enumerate(subnet.host_guids)}
    by_guid |= {guids[0]: host for host, guids in enumerate(subnet.host_guids)}
    sls = np.full((len(subnet.fabric.hosts), len(subnet.lids)), NOT_SENT, dtype=np.uint16)
    different = set[tuple[int, int]]()

    def keep(host: int, destination: int, sl: int) -> None:
        if sls[host, destination] not in (NOT_SENT, sl):
            different.add((host, destination))
        sls[host, destination] = sl

    for of_file in path_sls:
        for (guid, dlid), sl in of_file.by_guid.items():
            if guid in by_guid and dlid in by_lid:
                keep(by_guid[guid], by_lid[dlid], sl)
        for (slid, dlid), sl in of_file.by_lid.items():
            if slid in by_lid and dlid in by_lid and subnet.owner[by_lid[slid]] >= 0:
                keep(int(subnet.owner[by_lid[slid]]), by_lid[dlid], sl)
    for path in different:
        sls[path] = NOT_SENT
    return sls


def _traffics(
    subnet: Subnet,
    hops: NextHops,
    vcs: VcMap,
    sls: NDArray[np.uint16] | None,
    sent: NDArray[np.bool_],
    findings: Findings,
    unassigned: NDArray[np.int32] = _NO_LIDS,
) -> list[TableTraffic]:
    """Return what is sent: with the known SLs of paths, and with any SL where they are unknown.

    ``sent`` (destinations, destinations) is who sends to whom. Packets to ``unassigned`` LIDs have
    any SL.
    """
    hosts, count = len(subnet.fabric.hosts), len(subnet.lids)
    others = np.zeros((count, count + len(unassigned)), dtype=bool)
    others[:, :count] = sent
    others[:hosts, count:] = ~subnet.aggregating[:, None]
    names = [*subnet.lids[hosts:].tolist(), *unassigned.tolist()]
    if sls is not None:
        known_sls = np.full(others.shape, NOT_SENT, dtype=np.uint16)
        known_sls[:hosts, :count] = np.where(others[:hosts, :count], sls, NOT_SENT)
        state = hops.state(vcs, known_sls)
        traffics = [_traffic(subnet, names, state, partial(_sl_of, known_sls), vcs, known_sls)]
        others &= known_sls == NOT_SENT
        if not others.any():
            return traffics
        if missing := int(np.count_nonzero(others[:, :count])):
            findings.note(f"{missing} paths without a known SL: they are taken to use any SL")
    else:
        findings.note("no path SLs: every path is taken to use any SL")
        traffics = []
    whole = sls is None and count == hosts and np.array_equal(sent, _all_others(subnet))
    labels = None if whole else np.where(others, 0, NOT_SENT).astype(np.uint16)
    together = _hosts_alike(hops, vcs) if whole else None
    _, firsts = np.unique(vcs.rows, axis=1, return_index=True)
    for number, sl in enumerate(sorted(firsts.tolist())):
        of_sl = vcs.with_labels([sl])
        state = hops.state(of_sl, labels, together)
        sent_as = partial(_constant, sl)
        counted = number == 0
        traffics.append(_traffic(subnet, names, state, sent_as, of_sl, labels, counted=counted))
    return traffics


def _all_others(subnet: Subnet) -> NDArray[np.bool_]:
    """Return whether each destination is a host, and sends to each of another owner."""
    others: NDArray[np.bool_] = subnet.owner[:, None] != subnet.owner[None, :]
    others[len(subnet.fabric.hosts) :] = False
    return others


def _between_hosts(subnet: Subnet) -> NDArray[np.bool_]:
    """Return who sends to whom among hosts that are no aggregation nodes."""
    others = _all_others(subnet)
    aggregating = subnet.aggregating[subnet.owner]
    others[aggregating] = False
    others[:, aggregating] = False
    return others


def _traffic(
    subnet: Subnet,
    lids: Sequence[int],
    state: core.State,
    sent_as: SentAs,
    vcs: VcMap,
    first_labels: NDArray[np.uint16] | None,
    counted: bool = True,
) -> TableTraffic:
    """Return packets of a state; ``lids`` are those of its destinations after the hosts."""
    more = tuple(f"LID {lid}" for lid in lids)
    forwarding = ForwardingState(subnet.fabric, subnet.channels, (), state, more=more)
    return TableTraffic(forwarding, sent_as, vcs, first_labels, counted=counted)


def _sl_of(sls: NDArray[np.uint16], source: int, destination: int) -> int:
    return int(sls[source, destination])


def _constant(sl: int, _source: int, _destination: int) -> int:
    return sl


def _hosts_alike(hops: NextHops, vcs: VcMap) -> NDArray[np.uint32]:
    """Return the first host of each host's switch if their input ports make no difference."""
    first: dict[object, int] = {}
    rows_of: dict[int, list[int]] = {}
    for channel_in, row in zip(vcs.channel_in.tolist(), vcs.row.tolist(), strict=True):
        rows_of.setdefault(channel_in, []).append(row)
    base = len(hops.channels)
    keys = [(end[0], tuple(rows_of.get(base + i, ()))) for i, end in enumerate(hops.ends)]
    return np.array([first.setdefault(key, i) for i, key in enumerate(keys)], dtype=np.uint32)
