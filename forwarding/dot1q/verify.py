"""Whether a fabric of 802.1Q switches delivers, without loops, and can deadlock.

Frames are followed through the tables that were read: from every host to every other, from every
host to all, and whatever they make a switch flood. Under PAUSE a channel that such a frame
holds waits for those on which the frame goes on; a cycle of that can deadlock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forwarding.dot1q.model import L2Fabric
from forwarding.dot1q.semantics import UNTAGGED, Tables, tables_of
from routing.cdg import find_cycle
from routing.channels import Ints
from routing.host_tags import EVERYTHING_ELSE
from topologies.fabric import Fabric

MOST_PROBLEMS = 10
ROOM = 1 << 22
"""How many (source, port) pairs of broadcasts are followed at a time: bounds the memory."""


@dataclass
class Verdict:
    """What was found. Pairs are ordered, of different hosts.

    ``undelivered`` pairs do not get a unicast exactly once, untagged, and nobody else a copy of
    it; ``broadcasts_undelivered`` are those of which the one does not get the other's broadcast
    exactly once. ``loops`` are ports that frames come back to (``s1:2 in VLAN 3``), ``cycle`` one
    of channel dependencies, and ``problems`` explain the first failures.
    """

    pairs: int
    undelivered: int = 0
    broadcasts_undelivered: int = 0
    loops: list[str] = field(default_factory=list)
    cycle: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def delivers(self) -> bool:
        """Whether everything arrives as it should."""
        return not (self.undelivered or self.broadcasts_undelivered or self.loops)

    @property
    def good(self) -> bool:
        """Whether everything arrives, and nothing can deadlock."""
        return self.delivers and not self.cycle

    def problem(self, text: str) -> None:
        """Note an explanation, unless there are enough."""
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(text)


def verify(fabric: L2Fabric) -> Verdict:
    """Follow every unicast and every broadcast.

    Where hosts tag, their untagged frames are followed too: a host that does not tag must not
    harm the others, and is served as well. An address that nobody has told a host of goes where
    its broadcasts go, and is flooded as they are.
    """
    hosts = fabric.fabric.hosts
    explorer = _Explorer(fabric.fabric, tables_of(fabric))
    verdict = Verdict(pairs=len(hosts) * (len(hosts) - 1))
    sources = np.arange(len(hosts), dtype=np.int32)
    failed = np.zeros((len(hosts), len(hosts)), dtype=np.bool_)
    for d, host in enumerate(hosts):
        others = sources[sources != d]
        for how, tags in _tags(fabric, host.mac):
            came = explorer.follow(verdict, host.mac, others, tags[others])
            right = np.bincount(came.frame[came.host == d], minlength=len(others))
            stray = np.bincount(came.frame[came.host != d], minlength=len(others))
            bad = came.wrong | (right != 1) | (stray != 0)
            failed[others, d] |= bad
            for i in np.flatnonzero(bad)[:MOST_PROBLEMS].tolist():
                pair = f"{hosts[others[i]].name} to {host.name}"
                verdict.problem(f"{pair}, {how}: {right[i]} copies there, {stray[i]} at others")
    verdict.undelivered = int(failed.sum())
    failed[:] = False
    step = max(1, ROOM // len(explorer.peer))
    for how, tags in _tags(fabric, EVERYTHING_ELSE):
        for some in np.split(sources, np.arange(step, len(hosts), step)):
            came = explorer.follow(verdict, None, some, tags[some])
            copies = np.zeros((len(some), len(hosts)), dtype=np.int32)
            np.add.at(copies, (came.frame, came.host), 1)
            bad = came.wrong[:, None] | (copies != (some[:, None] != sources))
            failed[some] |= bad
            for s, d in np.argwhere(bad)[:MOST_PROBLEMS].tolist():
                pair = f"{hosts[some[s]].name} to {hosts[d].name}"
                verdict.problem(f"broadcast of {pair}, {how}: {copies[s, d]} copies there")
    failed[sources, sources] = False
    verdict.broadcasts_undelivered = int(failed.sum())
    verdict.cycle = explorer.cycle()
    return verdict


def _tags(fabric: L2Fabric, address: str) -> list[tuple[str, Ints]]:
    """Return in which VLANs the hosts send to ``address``: a name, and the tag of each host."""
    hosts = fabric.fabric.hosts
    untagged = ("untagged", np.full(len(hosts), UNTAGGED, dtype=np.int32))
    if fabric.tags is None:
        return [untagged]
    own = [fabric.tags[host.name] for host in hosts]
    vlans = [vlan_of.get(address, vlan_of[EVERYTHING_ELSE]) for vlan_of in own]
    return [("tagged", np.array(vlans, dtype=np.int32)), untagged]


class _Arrived(NamedTuple):
    """The copies that arrive: of which frame (its place among the sources), at which host.

    ``wrong`` (sources): a copy of it arrived with a tag, or one link got more than one.
    """

    frame: NDArray[np.int64]
    host: Ints
    wrong: NDArray[np.bool_]


class _Explorer:
    """Follows frames over the links of a fabric and remembers who waits for whom.

    ``peer`` is the port at the other end of each port, or -1, ``host`` the host there, or -1;
    ``held`` (ports, ports of a switch) whether a frame that came in by a port went on by the
    port of that place in the same switch, both to other switches.
    """

    def __init__(self, fabric: Fabric, tables: Tables) -> None:
        self.tables = tables
        self.names: list[str] = []
        at: dict[tuple[str, int], int] = {}
        for switch in fabric.switches:
            ports = [*fabric.hosts_at[switch.name], *fabric.neighbours[switch.name]]
            for port in sorted(ports):
                at[switch.name, port] = len(self.names)
                self.names.append(f"{switch.name}:{port}")
        self.peer = np.full(len(at), -1, dtype=np.int32)
        self.host = np.full(len(at), -1, dtype=np.int32)
        for link in fabric.links:
            a, b = at[link.a, link.a_port], at[link.b, link.b_port]
            self.peer[a], self.peer[b] = b, a
        self.entry = np.array([at[h.switch, h.port] for h in fabric.hosts], dtype=np.int32)
        self.host[self.entry] = np.arange(len(fabric.hosts))
        widest = int(np.diff(tables.first).max())
        self.held = np.zeros((len(at), widest), dtype=np.bool_)

    def follow(self, verdict: Verdict, mac: str | None, source: Ints, tag: Ints) -> _Arrived:
        """Send a frame from each source (a host) to ``mac``, or to all."""
        next_ports = self.tables.next_ports(mac)
        wrong = np.zeros(len(source), dtype=np.bool_)
        frame: NDArray[np.int64] = np.arange(len(source))
        port = self.entry[source]
        arrived = [(frame[:0], source[:0])]
        seen = np.zeros(0, dtype=np.int64)
        while len(frame):
            sent = self.tables.send(next_ports, port, tag)
            frame, came_by, port, tag = frame[sent.frame], port[sent.frame], sent.port, sent.tag
            self._note(came_by, port)
            to_host = self.host[port] >= 0
            arrived.append((frame[to_host], self.host[port[to_host]]))
            wrong[frame[to_host & (tag != UNTAGGED)]] = True
            frame, port, tag = frame[~to_host], self.peer[port[~to_host]], tag[~to_host]
            # A second copy on a link does what the first did: it is noted, not followed.
            state = (frame * len(self.peer) + port) * 4096 + tag
            _, once = np.unique(state, return_index=True)
            fresh = np.zeros(len(state), dtype=np.bool_)
            fresh[once] = True
            fresh &= ~np.isin(state, seen)
            wrong[frame[~fresh]] = True
            self._note_loops(verdict, next_ports, port[~fresh], tag[~fresh])
            frame, port, tag = frame[fresh], port[fresh], tag[fresh]
            seen = np.concatenate([seen, state[fresh]])
        frames, hosts = zip(*arrived, strict=True)
        return _Arrived(np.concatenate(frames), np.concatenate(hosts), wrong)

    def _note(self, came_by: Ints, port: Ints) -> None:
        """Note that frames hold the channel they came by while they wait for that of ``port``."""
        between = (self.peer[came_by] >= 0) & (self.peer[port] >= 0)
        came_by, port = came_by[between], port[between]
        self.held[came_by, port - self.tables.first[self.tables.switch[port]]] = True

    def _note_loops(self, verdict: Verdict, next_ports: Ints, port: Ints, tag: Ints) -> None:
        """Note those of the states that a frame comes back to."""
        for p, t in sorted(set(zip(port.tolist(), tag.tolist(), strict=True))):
            name = f"{self.names[p]} in VLAN {t}" if t else f"{self.names[p]} untagged"
            if name not in verdict.loops and self._comes_back(next_ports, p, t):
                verdict.loops.append(name)

    def _comes_back(self, next_ports: Ints, port: int, tag: int) -> bool:
        seen: set[tuple[int, int]] = set()
        waiting = [(port, tag)]
        while waiting:
            at = np.array([waiting.pop()], dtype=np.int32)
            sent = self.tables.send(next_ports, at[:, 0], at[:, 1])
            onward = zip(self.peer[sent.port].tolist(), sent.tag.tolist(), strict=True)
            new = {state for state in onward if state[0] >= 0} - seen
            seen |= new
            waiting += sorted(new)
        return (port, tag) in seen

    def cycle(self) -> list[str]:
        """Return a cycle of channel dependencies (``s1:2/0``), or an empty list.

        A channel is named by the port that it leaves by; all frames have priority 0.
        """
        came_by, turn = np.nonzero(self.held)
        onward = self.tables.first[self.tables.switch[came_by]] + turn
        edges = zip(self.peer[came_by].tolist(), onward.tolist(), strict=True)
        return [f"{self.names[port]}/0" for port in find_cycle(edges)]
