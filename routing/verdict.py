"""The check: walks the rules themselves, and says whether they deliver and cannot deadlock."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from routing.cdg import (
    FLOW_CONTROLS,
    cycle_names,
    find_cycle,
    merge_priorities,
    virtual_channel,
)
from routing.channels import Channels, channels_of
from routing.pipeline import Copies, Frame, Pipeline
from routing.rules import FabricRules, SwitchRules
from topologies.errors import RuleError
from topologies.fabric import Fabric
from topologies.numbering import mac_value

BROADCAST = 0xFFFFFFFFFFFF
IPV4, ARP = 0x0800, 0x0806
_MAX_PROBLEMS = 50


@dataclass(frozen=True)
class Verdict:
    """What the check found.

    ``pairs`` ordered pairs of different hosts were tried, ``undelivered`` of them failed: not
    exactly one copy, at the right host only, untagged and unchanged. ``broadcasts`` counts
    (source, receiver) of broadcasts likewise. ``max_channel_load`` is the most paths on
    a channel between switches. The mean number of switches counts a host to itself as one switch.
    ``cycle`` is a cycle of the joint channel dependency graph of unicast and broadcast.
    """

    fabric: str
    flow_control: str
    pairs: int
    undelivered: int
    broadcasts: int
    broadcasts_undelivered: int
    max_channel_load: int
    mean_switches: float
    max_switches: int
    acyclic: bool
    cycle: list[str]
    problems: list[str]

    @property
    def good(self) -> bool:
        """Whether everything is delivered and nothing can deadlock."""
        return self.undelivered == 0 and self.broadcasts_undelivered == 0 and self.acyclic

    def as_json(self) -> dict[str, object]:
        """Return the verdict as plain values."""
        return asdict(self)


def check(fabric: Fabric, rules: FabricRules, *, flow_control: str = "pfc") -> Verdict:
    """Walk ``rules`` for every ordered pair of hosts, and for a broadcast of each host.

    ``flow_control`` says what stops a sender: ``pfc`` one priority of a channel, ``pause``
    (802.3x) the whole channel, so that virtual channels do not help.

    Raises
    ------
    RuleError
        ``flow_control`` is neither, or there are rules for a switch that the fabric has not.

    """
    if flow_control not in FLOW_CONTROLS:
        raise RuleError(f"flow control must be one of {', '.join(FLOW_CONTROLS)}")
    for name in rules:
        if name not in fabric.switch_index:
            raise RuleError(f"there are rules for {name!r}, a switch that {fabric.name} has not")
    walker = _Walker(fabric, rules)
    for source in range(len(fabric.hosts)):
        walker.unicasts(source)
        walker.broadcast(source)
    edges = walker.edges if flow_control == "pfc" else merge_priorities(walker.edges)
    cycle = cycle_names(walker.channels, find_cycle(edges))
    hosts = len(fabric.hosts)
    walks = hosts * (hosts - 1) - walker.undelivered + hosts
    return Verdict(
        fabric=fabric.name,
        flow_control=flow_control,
        pairs=hosts * (hosts - 1),
        undelivered=walker.undelivered,
        broadcasts=hosts * (hosts - 1),
        broadcasts_undelivered=walker.broadcasts_undelivered,
        max_channel_load=max(walker.loads, default=0),
        mean_switches=(walker.switches_passed + hosts) / walks,
        max_switches=walker.max_switches,
        acyclic=not cycle,
        cycle=cycle,
        problems=walker.all_problems(),
    )


class _Walker:
    """Sends frames through the pipelines and keeps what they show."""

    def __init__(self, fabric: Fabric, rules: FabricRules) -> None:
        self.fabric = fabric
        self.channels: Channels = channels_of(fabric)
        self.edges: set[tuple[int, int]] = set()
        self.loads = [0] * len(self.channels)
        self.undelivered = 0
        self.broadcasts_undelivered = 0
        self.switches_passed = 0
        self.max_switches = 1
        self.problems: list[str] = []
        self._more_problems = 0
        index = fabric.switch_index
        self._pipelines = [
            Pipeline(switch.name, rules.get(switch.name, SwitchRules(())))
            for switch in fabric.switches
        ]
        self._hosts = {(index[host.switch], host.port): h for h, host in enumerate(fabric.hosts)}
        self._at = [(index[host.switch], host.port) for host in fabric.hosts]
        self._macs = [mac_value(host.mac) for host in fabric.hosts]
        self._head = self.channels.head.tolist()
        self._in_port = self.channels.in_port.tolist()
        self._seen: set[tuple[int, int, int, int]] = set()
        for switch in fabric.switches:
            if switch.name not in rules:
                self._problem(f"{switch.name}: there are no rules for this switch")

    def unicasts(self, source: int) -> None:
        """Send a frame from host ``source`` to every other."""
        for target in range(len(self._macs)):
            if target == source:
                continue
            frame = Frame(self._macs[target], self._macs[source], IPV4)
            delivered, passed, looped = self._send(source, frame)
            if delivered == [(target, frame)] and not looped:
                self.switches_passed += len(passed) + 1
                self.max_switches = max(self.max_switches, len(passed) + 1)
                for channel in passed:
                    self.loads[channel] += 1
            else:
                self.undelivered += 1
                self._problem(self._story(source, target, delivered, looped))

    def broadcast(self, source: int) -> None:
        """Send a broadcast from host ``source``: every other host must get it once."""
        frame = Frame(BROADCAST, self._macs[source], ARP)
        delivered, _, looped = self._send(source, frame)
        copies: dict[int, int] = {}
        for host, arrived in delivered:
            copies[host] = copies.get(host, 0) + (1 if arrived == frame else len(self._macs))
        wrong = [h for h in range(len(self._macs)) if copies.get(h, 0) != (h != source)]
        if not (wrong or looped):
            return
        self.broadcasts_undelivered += len(wrong) or 1
        name = self.fabric.hosts[source].name
        if looped:
            self._problem(f"a broadcast of {name} goes round for ever")
        for h in wrong[:3]:
            times = "not" if copies.get(h, 0) == 0 else "not exactly once, or changed"
            self._problem(f"a broadcast of {name} reaches {self.fabric.hosts[h].name} {times}")

    def _send(self, source: int, frame: Frame) -> tuple[list[tuple[int, Frame]], list[int], bool]:
        """Follow all copies: (deliveries as (host, frame), channels taken, whether it loops)."""
        delivered: list[tuple[int, Frame]] = []
        passed: list[int] = []
        switch, port = self._at[source]
        waiting: list[tuple[int, int, int, Frame]] = [(switch, port, -1, frame)]
        been: set[tuple[int, int, Frame]] = set()
        while waiting:
            switch, port, channel, frame = waiting.pop()
            if (switch, port, frame) in been:
                return delivered, passed, True
            been.add((switch, port, frame))
            copies = self._pipelines[switch].outputs(port, frame)
            self._note(channel, frame, switch, copies)
            for out_port, copy in copies:
                onward = self.channels.leaving.get((switch, out_port))
                if onward is not None:
                    passed.append(onward)
                    waiting.append((self._head[onward], self._in_port[onward], onward, copy))
                elif (switch, out_port) in self._hosts:
                    delivered.append((self._hosts[switch, out_port], copy))
                else:
                    name = self.fabric.switches[switch].name
                    self._problem(f"{name}: frames go out of port {out_port}, where nothing is")
        return delivered, passed, False

    def _note(self, channel: int, frame: Frame, switch: int, copies: Copies) -> None:
        """Add the dependencies of one frame's passage to the graph."""
        if channel < 0:
            return
        held = virtual_channel(channel, frame.priority)
        for out_port, copy in copies:
            onward = self.channels.leaving.get((switch, out_port))
            if onward is not None:
                self.edges.add((held, virtual_channel(onward, copy.priority)))

    def _story(
        self,
        source: int,
        target: int,
        delivered: list[tuple[int, Frame]],
        looped: bool,
    ) -> str:
        names = [host.name for host in self.fabric.hosts]
        what = f"{names[source]} to {names[target]}"
        if looped:
            return f"{what}: the frame goes round for ever"
        if not delivered:
            return f"{what}: the frame is dropped"
        if [host for host, _ in delivered] != [target]:
            got = ", ".join(names[host] for host, _ in delivered[:5])
            return f"{what}: the frame arrives at {got}"
        arrived = delivered[0][1]
        return f"{what}: the frame arrives {'tagged' if arrived.tags else 'changed'}"

    def _problem(self, text: str) -> None:
        if len(self.problems) < _MAX_PROBLEMS:
            if text not in self.problems:
                self.problems.append(text)
        else:
            self._more_problems += 1

    def all_problems(self) -> list[str]:
        """Return the problems of the walks and of the pipelines, a bounded number of lines."""
        told = list(self.problems)
        for pipeline in self._pipelines:
            told += list(pipeline.problems)
        if len(told) > 2 * _MAX_PROBLEMS or self._more_problems:
            more = self._more_problems + max(0, len(told) - 2 * _MAX_PROBLEMS)
            told = [*told[: 2 * _MAX_PROBLEMS], f"and {more} more"]
        return told
