"""InfiniBand subnets as files, as ibnetdiscover, dump_fts and OpenSM write them, and an oracle."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from knotless.routing.plan import Plan
from tests.support.cycles import has_cycle

SLS = range(16)
Vls = tuple[int, ...]


@dataclass
class Subnet:
    """``lfts[switch][lid]`` is a port; ``sl2vl`` is by (switch, port in, port out).

    ``adapter_vls`` are those of all adapters; None: they are not written.
    """

    names: list[str]
    links: list[tuple[int, int, int, int]]
    hosts: list[tuple[str, int, int]]
    lmc: int = 0
    lfts: list[dict[int, int]] = field(default_factory=list)
    sl2vl: dict[tuple[int, int, int], Vls] = field(default_factory=dict)
    path_sls: dict[tuple[int, int], int] = field(default_factory=dict)
    adapter_vls: Vls | None = None

    def lids(self, host: int) -> range:
        """Return the LIDs of a host."""
        return range((host + 1) << self.lmc, (host + 2) << self.lmc)

    @property
    def ends(self) -> dict[tuple[int, int], tuple[str, int, int]]:
        """The end at each (switch, port): ("switch", its number, port) or ("host", number, 1)."""
        peers = {(s, p): ("host", h, 1) for h, (_, s, p) in enumerate(self.hosts)}
        for a, ap, b, bp in self.links:
            peers[a, ap], peers[b, bp] = ("switch", b, bp), ("switch", a, ap)
        return peers

    def files(self) -> dict[str, str]:
        """Return the content of all files by name."""
        texts = {
            "ibnetdiscover.txt": self._cables(),
            "dump_fts.txt": self._tables(opensm=False),
            "opensm-lfts.dump": self._tables(opensm=True),
        }
        if self.sl2vl:
            texts["opensm-sl2vl.dump"] = self._vls()
        if self.path_sls:
            rows = sorted(self.path_sls.items())
            texts["path-sl.txt"] = "".join(
                f"0x{0x900000 + 2 * h + 1:016x} {lid} {sl}\n" for (h, lid), sl in rows
            )
        return texts

    def write(self, folder: Path, *left_out: str) -> Path:
        """Write all files except those named ``left_out``."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in self.files().items():
            if name not in left_out:
                (folder / name).write_text(text)
        return folder

    def switch_lid(self, switch: int) -> int:
        """Return the LID of a switch."""
        return ((len(self.hosts) + 1) << self.lmc) + switch

    def _cables(self) -> str:
        lines = ["#", "# Topology file: generated", "#"]
        for switch, name in enumerate(self.names):
            lid = self.switch_lid(switch)
            lines += [
                "",
                "vendid=0x2c9",
                f"switchguid=0x{0x500000 + switch:x}({0x500000 + switch:x})",
                f'Switch\t36 "S-{0x500000 + switch:016x}"\t\t'
                f'# "{name}" base port 0 lid {lid} lmc 0',
            ]
            for (s, port), (kind, peer, peer_port) in sorted(self.ends.items()):
                if s != switch:
                    continue
                if kind == "switch":
                    comment = f'"{self.names[peer]}" lid {self.switch_lid(peer)} 4xQDR'
                    lines.append(
                        f'[{port}]\t"S-{0x500000 + peer:016x}"[{peer_port}]\t\t# {comment}'
                    )
                else:
                    guid = 0x900000 + 2 * peer
                    comment = f'"{self.hosts[peer][0]}" lid {self.lids(peer)[0]} 4xQDR'
                    lines.append(f'[{port}]\t"H-{guid:016x}"[1]({guid + 1:x}) \t\t# {comment}')
        for number, (name, switch, port) in enumerate(self.hosts):
            guid = 0x900000 + 2 * number
            comment = f'"{self.names[switch]}" lid {self.switch_lid(switch)} 4xQDR'
            lines += [
                "",
                f"caguid=0x{guid:x}",
                f'Ca\t1 "H-{guid:016x}"\t\t# "{name}"',
                f'[1]({guid + 1:x}) \t"S-{0x500000 + switch:016x}"[{port}]\t\t'
                f"# lid {self.lids(number)[0]} lmc {self.lmc} {comment}",
            ]
        return "\n".join(lines) + "\n"

    def _tables(self, *, opensm: bool) -> str:
        lines: list[str] = []
        for switch, lft in enumerate(self.lfts):
            guid, top = 0x500000 + switch, max(lft, default=0)
            if opensm:
                lid = self.switch_lid(switch)
                head = f"Unicast lids [0-{top}] of switch Lid {lid} guid 0x{guid:016x} ('x'):"
                mark, tail = "#", f"{len(lft)} lids dumped"
            else:
                path = "DR path slid 0; dlid 0; 0,1"
                head = f"Unicast lids [0x0-0x{top:x}] of switch {path} guid 0x{guid:016x} (x):"
                lines += [head, "  Lid  Out   Destination", "       Port     Info "]
                mark, tail = ":", f"{len(lft)} valid lids dumped "
            rows = [f"0x{lid:04x} {port:03d} {mark} (x)" for lid, port in sorted(lft.items())]
            lines += [*([head] if opensm else []), *rows, tail]
        return "\n".join(lines) + "\n"

    def _vls(self) -> str:
        lines: list[str] = []
        for switch, name in enumerate(self.names):
            lines += [
                f'Switch 0x{0x500000 + switch:016x}, base LID {self.switch_lid(switch)}, "{name}"',
                "#in out : 0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15",
                "#--------------------------------------------------------",
            ]
            for (s, port_in, port_out), vls in sorted(self.sl2vl.items()):
                if s == switch:
                    row = "".join(f"{vl:<3d}" for vl in vls)
                    lines.append(f"{port_in:<3d} {port_out:<3d} : {row}")
        for host, (name, *_) in enumerate(self.hosts if self.adapter_vls else ()):
            guid = 0x900000 + 2 * host + 1
            lines.append(f'Channel Adapter 0x{guid:016x}, base LID {self.lids(host)[0]}, "{name}"')
            lines.append(f"0   0   : {''.join(f'{vl:<3d}' for vl in self.adapter_vls or ())}")
        return "\n".join(lines) + "\n"

    # The oracle: every packet alone, hop by hop.

    def judged(
        self, with_vls: bool = True, with_sls: bool = True, *, unknown_sls: bool = True
    ) -> tuple[bool, int]:
        """Return whether the dependencies close no cycle, and how many packets do not arrive.

        Without ``unknown_sls``, packets are those whose SL is known.
        """
        edges: set[tuple[tuple[int, int, int], tuple[int, int, int]]] = set()
        lost = 0
        for source in range(len(self.hosts)):
            for target in range(len(self.hosts)):
                for lid in self.lids(target) if target != source else ():
                    path_sl = self.path_sls.get((source, lid)) if with_sls else None
                    if path_sl is None and not unknown_sls:
                        continue
                    for sl in SLS if path_sl is None else (path_sl,):
                        arrived, path = self._walk(source, target, lid, sl, with_vls)
                        edges.update(pairwise(path))
                        lost += not arrived and sl == (path_sl or 0)
        return not has_cycle(edges), lost

    def acyclic_with(self, stale: Iterable[int], *, unknown_sls: bool = True) -> bool:
        """Return whether dependencies close no cycle if hosts also send to ``stale`` LIDs.

        These packets have any SL; without ``unknown_sls``, others are those whose SL is known.
        """
        edges: set[tuple[tuple[int, int, int], tuple[int, int, int]]] = set()
        for source in range(len(self.hosts)):
            for lid in stale:
                for sl in SLS:
                    edges.update(pairwise(self._walk(source, -1, lid, sl, True)[1]))
            for target in range(len(self.hosts)):
                for lid in self.lids(target) if target != source else ():
                    path_sl = self.path_sls.get((source, lid))
                    if path_sl is None and not unknown_sls:
                        continue
                    for sl in SLS if path_sl is None else (path_sl,):
                        edges.update(pairwise(self._walk(source, target, lid, sl, True)[1]))
        return not has_cycle(edges)

    def _walk(
        self, source: int, target: int, lid: int, sl: int, with_vls: bool
    ) -> tuple[bool, list[tuple[int, int, int]]]:
        ends = self.ends
        _, switch, port = self.hosts[source]
        path: list[tuple[int, int, int]] = []
        while True:
            out = self.lfts[switch].get(lid, 255)
            if (switch, out) not in ends:
                return False, path
            kind, peer, peer_port = ends[switch, out]
            if kind == "host":
                return peer == target, path
            vl = self.sl2vl[switch, port, out][sl] if with_vls and self.sl2vl else 0
            if vl == 15:
                return False, path
            if (switch, out, vl) in path:
                return False, [*path, (switch, out, vl)]
            path.append((switch, out, vl))
            switch, port = peer, peer_port


def of_plan(plan: Plan) -> Subnet | None:
    """Return the subnet with the paths of a plan; None if LIDs and SLs cannot express them."""
    fabric = plan.fabric
    index = fabric.switch_index
    subnet = Subnet(
        [switch.name for switch in fabric.switches],
        [(index[link.a], link.a_port, index[link.b], link.b_port) for link in fabric.links],
        [(host.name, index[host.switch], host.port) for host in fabric.hosts],
        lfts=[{} for _ in fabric.switches],
    )
    vls: dict[tuple[int, int, int, int], int] = {}
    for s, source in enumerate(fabric.hosts):
        for t, target in enumerate(fabric.hosts):
            if s == t:
                continue
            path = plan.path(source.name, target.name)
            lid, sl = subnet.lids(t)[0], path[0].priority
            subnet.path_sls[s, lid] = sl
            for hop in path:
                node = index[hop.switch]
                if subnet.lfts[node].setdefault(lid, hop.out_port) != hop.out_port:
                    return None
                key = (node, hop.in_port, hop.out_port, sl)
                if hop is not path[-1] and vls.setdefault(key, hop.priority) != hop.priority:
                    return None
    for node, port_in, port_out, _ in vls:
        turn = (node, port_in, port_out)
        subnet.sl2vl[turn] = tuple(vls.get((*turn, other), other % 8) for other in SLS)
    ports: dict[int, list[int]] = {}
    for node, port in subnet.ends:
        ports.setdefault(node, []).append(port)
    for node, numbers in ports.items():
        for port_in in numbers:
            for port_out in numbers:
                subnet.sl2vl.setdefault((node, port_in, port_out), tuple(sl % 8 for sl in SLS))
    return subnet


def random_subnet(seed: int) -> Subnet:
    """Return a connected subnet with random tables: detours, loops, holes, ports without cables."""
    rng = random.Random(seed)  # noqa: S311
    switches = rng.randint(1, 5)
    free = [list(range(1, 20)) for _ in range(switches)]
    pairs = [(rng.randrange(switch), switch) for switch in range(1, switches)]
    for _ in range(rng.randint(0, 5) if switches > 1 else 0):
        a, b = rng.sample(range(switches), 2)
        pairs.append((a, b))
    links = [(a, free[a].pop(0), b, free[b].pop(0)) for a, b in pairs]
    hosts = []
    for number in range(rng.randint(2, 6)):
        switch = rng.randrange(switches)
        hosts.append((f"node {number}", switch, free[switch].pop(0)))
    names = [f"sw{switch}" for switch in range(switches)]
    subnet = Subnet(names, links, hosts, lmc=rng.choice([0, 0, 1, 2]))
    ends = subnet.ends
    subnet.lfts = [_table(rng, subnet, switch) for switch in range(switches)]
    if rng.random() < 0.7:
        rows = [tuple(rng.choice([0, 0, 1, 2, 14, 15]) for _ in SLS) for _ in range(3)]
        plain = tuple(sl % 8 for sl in SLS)
        for switch, port_in in ends:
            for out_at, port_out in ends:
                if switch == out_at:
                    subnet.sl2vl[switch, port_in, port_out] = rng.choice([plain, plain, *rows])
    if rng.random() < 0.6:
        for source in range(len(hosts)):
            for target in range(len(hosts)):
                for lid in subnet.lids(target):
                    if source != target and rng.random() < rng.choice([0.6, 1.0]):
                        subnet.path_sls[source, lid] = rng.choice([0, 0, 1, 5])
    return subnet


def _table(rng: random.Random, subnet: Subnet, switch: int) -> dict[int, int]:
    """Return a table whose entries mostly lead nearer, some anywhere, some nowhere."""
    table = {}
    ends = subnet.ends
    near = {switch: 0}
    first: dict[int, list[int]] = {switch: []}
    queue = [switch]
    for here in queue:
        for (s, port), (kind, peer, _) in sorted(ends.items()):
            if s != here or kind == "host":
                continue
            if peer not in near:
                near[peer] = near[here] + 1
                first[peer] = []
                queue.append(peer)
            if near[peer] == near[here] + 1:
                first[peer] += [port] if here == switch else first[here]
    ports = [port for s, port in ends if s == switch]
    for host, (_, home, port) in enumerate(subnet.hosts):
        for lid in subnet.lids(host):
            choices = [port] if home == switch else first[home]
            wild = rng.random()
            if wild < 0.08:
                table[lid] = rng.choice([*ports, 30])
            elif wild > 0.02:
                table[lid] = rng.choice(choices)
    return table
