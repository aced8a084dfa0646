"""Fabrics from tables in a format of our own: next hops by destination, or paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from knotless.base.errors import RuleError
from knotless.base.flow_control import FlowControl
from knotless.base.memory import Cost, refuse_beyond
from knotless.forwarding.state import ForwardingState
from knotless.importers.causes import Cause, Source
from knotless.importers.fabric import TableFabric, TableTraffic
from knotless.importers.file_kinds import FoundFile
from knotless.importers.findings import Findings
from knotless.importers.host_links import one_buffer
from knotless.importers.neutral.model import MAX_VCS, NeutralTables, Path
from knotless.importers.next_hops import HERE, NOT_SENT, Actions, NextHops, VcMap, classes_of
from knotless.routing.graphs.channels import Channels, End, channels_of
from knotless.topologies.fabric import Fabric
from knotless.topologies.numbering import host_ip, mac_text
from knotless.topologies.partial_fabric import PartialHost, PartialLink, PartialSwitch, complete

_FIRST_MAC = 0x06 << 40


def assemble(name: str, files: Sequence[FoundFile]) -> TableFabric:
    """Return the fabric called ``name`` that a file describes.

    Raises
    ------
    RuleError
        There are several files, or a name in the file is not that of a switch, port or host.
    FabricError
        The cables contradict each other.

    """
    tables = [file.value for file in files if isinstance(file.value, NeutralTables)]
    if len(tables) != len(files) or len(tables) != 1:
        raise RuleError(f"one file of Knotless tables is a whole fabric; there are {len(files)}")
    return _Assembly(name, str(files[0].path), tables[0]).fabric_of_tables()


class _Assembly:
    """The names of a file as numbers. Ports are numbered in the order in which they are named."""

    def __init__(self, name: str, path: str, tables: NeutralTables) -> None:
        self.source, self.tables = Source((path,)), tables
        self.index = {switch: number for number, switch in enumerate(tables.switches)}
        self.port_numbers: dict[tuple[int, str], int] = {}
        self.port_counts = Counter[int]()
        self.hosts = list(tables.hosts)
        ends = [self._port(text, new=True) for text in tables.hosts.values()]
        links = [
            PartialLink(a[0], b[0], a[1], b[1])
            for one, other in tables.cables
            for a, b in [(self._port(one, new=True), self._port(other, new=True))]
        ]
        self.fabric = complete(
            name,
            [PartialSwitch(switch) for switch in tables.switches],
            [
                PartialHost(
                    host,
                    *end,
                    mac_text(_FIRST_MAC + number),
                    host_ip(1 + number // 254, 1 + number % 254),
                    ip_invented=True,
                )
                for number, (host, end) in enumerate(zip(self.hosts, ends, strict=True))
            ],
            links,
            whole=False,
        )
        self.ends: list[End] = ends
        self.host_at = {end: host for host, end in enumerate(ends)}
        self.channels = _named(self.fabric, self.port_numbers)
        self.findings = Findings()

    def _port(self, text: str, *, new: bool = False) -> End:
        """Return the port ``SWITCH:PORT``; raises RuleError if there is none."""
        switch, colon, port = text.partition(":")
        if not colon or switch not in self.index:
            raise RuleError(f"{text!r} is not SWITCH:PORT of one of the switches")
        number = self.index[switch]
        if new and (number, port) not in self.port_numbers:
            self.port_counts[number] += 1
            self.port_numbers[number, port] = self.port_counts[number]
        return number, self._known_port(number, port)

    def _known_port(self, switch: int, port: str) -> int:
        try:
            return self.port_numbers[switch, port]
        except KeyError:
            name = f"{self.tables.switches[switch]}:{port}"
            raise RuleError(f"{name!r} has neither a cable nor a host") from None

    def _host(self, name: str) -> int:
        if name not in self.fabric.host_index:
            raise RuleError(f"{name!r} is not one of the hosts")
        return self.fabric.host_index[name]

    def _switch(self, name: str) -> int:
        if name not in self.index:
            raise RuleError(f"{name!r} is not one of the switches")
        return self.index[name]

    def fabric_of_tables(self) -> TableFabric:
        """Return the fabric with its forwarding state."""
        paths = self.tables.paths
        hops, vcs, first, more = self._by_paths(paths) if paths is not None else self._by_tables()
        state = ForwardingState(
            self.fabric, self.channels, (), hops.state(vcs, first), more=tuple(more)
        )
        count = len(self.hosts)
        return TableFabric(
            fabric=self.fabric,
            channels=self.channels,
            flow_control=FlowControl(self.tables.flow_control),
            traffics=(TableTraffic(state, _begins_with_zero, vcs, first),),
            pairs=count * (count - 1) if first is None else int((first != NOT_SENT).sum()),
            label="VC",
            hops=hops,
            findings=self.findings,
            causes_at=self._causes,
            host_links=lambda: one_buffer([state.core], count),
        )

    def _causes(self, switch: int, _port: int | None, destination: int) -> list[Cause]:
        if self.tables.paths is not None:
            return [self.source.cause("paths", str(destination - len(self.hosts)))]
        return [
            self.source.cause("next_hops", self.tables.switches[switch], self.hosts[destination])
        ]

    def _by_tables(self) -> tuple[NextHops, VcMap, None, list[str]]:
        """Return next hops by host; the label of a packet is its virtual channel."""
        actions = Actions()
        table = np.full((len(self.hosts), len(self.index)), actions.unknown(), dtype=np.int32)
        for switch_name, of_switch in (self.tables.next_hops or {}).items():
            switch = self._switch(switch_name)
            for name, ports in of_switch.items():
                numbers = [self._known_port(switch, port) for port in ports]
                table[self._host(name), switch] = actions.send(numbers)
        for host, (home, _) in enumerate(self.ends):
            table[host, home] = actions.send([HERE])
        missing = [
            name for name in self.tables.switches if name not in (self.tables.next_hops or {})
        ]
        for name in missing:
            self.findings.gap(f"the next hops of {name}", self.source.cause("next_hops"))
        changes: dict[tuple[int, int], dict[int, int]] = {}
        for change in self.tables.virtual_channels:
            switch = self._switch(change.switch)
            turn = tuple(self._known_port(switch, p) for p in (change.in_port, change.out_port))
            ends = (self.channel_in(switch, turn[0]), self.channels.leaving.get((switch, turn[1])))
            if ends[0] is None or ends[1] is None:
                continue  # what goes to a host leaves all virtual channels
            changes.setdefault((ends[0], ends[1]), {})[change.before] = change.after
        same = tuple(range(MAX_VCS))
        rows = {same: 0}
        turns = []
        for channel_in, channel in self._turns():
            after = tuple(changes.get((channel_in, channel), {}).get(vc, vc) for vc in same)
            turns.append((channel_in, channel, rows.setdefault(after, len(rows))))
        onward = np.array(list(rows), dtype=np.uint16)
        classes, action_of = classes_of(table, actions)
        hops = NextHops(self.channels, self.ends, classes, action_of, actions)
        return hops, _vc_map(turns, onward.astype(np.uint8), onward), None, []

    def channel_in(self, switch: int, port: int) -> int | None:
        """Return the channel, from a switch or host, that enters by a port."""
        if (switch, port) in self.host_at:
            return len(self.channels) + self.host_at[switch, port]
        return self.channels.entering.get((switch, port))

    def _turns(self) -> Iterator[tuple[int, int]]:
        """Yield every channel into a switch with every one that leaves it."""
        leaving: list[list[int]] = [[] for _ in self.index]
        for channel, tail in enumerate(self.channels.tail.tolist()):
            leaving[tail].append(channel)
        heads = [*enumerate(self.channels.head.tolist())]
        heads += [(len(self.channels) + host, end[0]) for host, end in enumerate(self.ends)]
        for channel_in, head in heads:
            for channel in leaving[head]:
                yield channel_in, channel

    def _by_paths(
        self, paths: Sequence[Path]
    ) -> tuple[NextHops, VcMap, NDArray[np.uint16], list[str]]:
        """Return each path as a destination of its own, whose label says its virtual channels."""
        count = len(self.hosts)
        destinations = count + len(paths)
        needed = Cost.LISTED_PATH.bytes_for(destinations * (len(self.index) + destinations))
        refuse_beyond("this fabric", needed, RuleError)
        actions = Actions()
        drop = actions.send([])
        table = np.full((destinations, len(self.index)), drop, dtype=np.int32)
        for host, (switch, _) in enumerate(self.ends):
            table[host, switch] = actions.send([HERE])
        first = np.full((count, destinations), NOT_SENT, dtype=np.uint16)
        ends, names = list(self.ends), []
        used: dict[tuple[int, int], dict[int, int]] = {}
        labels: dict[tuple[tuple[int, int, int], ...], int] = {}
        for number, path in enumerate(paths):
            source, target = self._host(path.source), self._host(path.target)
            hops = tuple(self._followed(source, target, path))
            label = labels.setdefault(hops, len(labels))
            for channel_in, channel, vc in hops:
                used.setdefault((channel_in, channel), {})[label] = vc
                table[count + number, self.channels.tail[channel]] = actions.send(
                    [int(self.channels.out_port[channel])]
                )
            table[count + number, self.ends[target][0]] = actions.send([HERE])
            ends.append(self.ends[target])
            first[source, count + number] = label
            names.append(f"{path.target} by path {number + 1}")
        refuse_beyond("this fabric", len(used) * max(1, len(labels)), RuleError)
        rows = np.zeros((max(1, len(used)), max(1, len(labels))), dtype=np.uint8)
        turns = []
        for row, ((channel_in, channel), by_label) in enumerate(used.items()):
            turns.append((channel_in, channel, row))
            rows[row, list(by_label)] = list(by_label.values())
        ends_of_senders = np.full((destinations, destinations), NOT_SENT, dtype=np.uint16)
        ends_of_senders[:count] = first
        classes, action_of = classes_of(table, actions)
        hops_table = NextHops(self.channels, ends, classes, action_of, actions)
        return hops_table, _vc_map(turns, rows, None), ends_of_senders, names

    def _followed(self, source: int, target: int, path: Path) -> Iterator[tuple[int, int, int]]:
        """Yield (channel in, channel, virtual channel) of each hop; RuleError if it is no path."""
        where = f"the path from {path.source} to {path.target}"
        channel_in, switch = len(self.channels) + source, self.ends[source][0]
        visited = {switch}
        for text in path.hops:
            port_text, _, vc = text.rpartition("/")
            end = self._port(port_text)
            channel = self.channels.leaving.get(end)
            if channel is None or end[0] != switch:
                raise RuleError(f"{where}: {text!r} does not lead on from the hop before it")
            if not vc.isascii() or not vc.isdigit() or len(vc) > 2 or int(vc) >= MAX_VCS:
                raise RuleError(f"{where}: {text!r} does not end with a virtual channel, 0 to 15")
            yield channel_in, channel, int(vc)
            channel_in, switch = channel, int(self.channels.head[channel])
            if switch in visited:
                raise RuleError(f"{where} passes {self.tables.switches[switch]} twice")
            visited.add(switch)
        if switch != self.ends[target][0]:
            raise RuleError(f"{where} ends at {self.tables.switches[switch]}, without its host")


def _vc_map(
    turns: Sequence[tuple[int, int, int]],
    rows: NDArray[np.uint8],
    onward: NDArray[np.uint16] | None,
) -> VcMap:
    channel_in, channel, row = np.array(turns, dtype=np.uint32).reshape(-1, 3).T.copy()
    return VcMap(channel_in, channel, row, rows, onward)


def _named(fabric: Fabric, numbers: Mapping[tuple[int, str], int]) -> Channels:
    channels = channels_of(fabric)
    names = {(switch, number): port for (switch, port), number in numbers.items()}
    return replace(channels, port_names=names)


def _begins_with_zero(_source: int, _destination: int) -> int:
    return 0
