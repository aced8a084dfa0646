"""Sends frames through the rules of a whole fabric and keeps what they show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from knotless_core.rules import walk
from routing.cdg import virtual_channel
from routing.channels import Channels, channels_of
from routing.host_tags import EVERYTHING_ELSE, HostTags
from routing.multicast import MulticastGroup
from routing.pipeline import Copies, Frame, Pipeline
from routing.rules import FabricRules, SwitchRules
from topologies.errors import RuleError
from topologies.fabric import Fabric
from topologies.numbering import mac_text, mac_value

BROADCAST = 0xFFFFFFFFFFFF
IPV4, ARP = 0x0800, 0x0806
_MAX_PROBLEMS = 50

Tags = tuple[int, ...]


class Walker:
    """The state of one check.

    ``edges`` is the channel dependency graph of all frames sent so far; ``loads`` counts the
    delivered unicast paths on each channel; ``switches_passed`` is their total length.
    """

    def __init__(self, fabric: Fabric, rules: FabricRules, tags: HostTags | None = None) -> None:
        self.fabric = fabric
        self.channels: Channels = channels_of(fabric)
        self.edges: set[tuple[int, int]] = set()
        self.loads = [0] * len(self.channels)
        self.undelivered = 0
        self.broadcasts_undelivered = 0
        self.multicasts_undelivered = 0
        self.switches_passed = 0
        self.max_switches = 1
        self.problems: list[str] = []
        self._more_problems = 0
        index = fabric.switch_index
        self._rules = {
            switch.name: rules.get(switch.name, SwitchRules(())) for switch in fabric.switches
        }
        self._pipelines: dict[int, Pipeline] = {}
        self._hosts = {(index[host.switch], host.port): h for h, host in enumerate(fabric.hosts)}
        self._at = [(index[host.switch], host.port) for host in fabric.hosts]
        self._macs = [mac_value(host.mac) for host in fabric.hosts]
        self._head = self.channels.head.tolist()
        self._in_port = self.channels.in_port.tolist()
        self._tags = tags
        for switch in fabric.switches:
            if switch.name not in rules:
                self._problem(f"{switch.name}: there are no rules for this switch")

    def walk(self, multicast: Sequence[MulticastGroup]) -> None:
        """Send a frame between every two hosts, and from each to all and to every group.

        The Rust core does it. Frames that do not simply arrive are sent again one by one, to
        find out what becomes of them.

        Raises
        ------
        RuleError
            A rule has a number that fits no field.

        """
        hosts = len(self._macs)
        members = [{self.fabric.host_index[name] for name in group.members} for group in multicast]
        floods = [(BROADCAST, ARP, [True] * hosts)]
        floods += [
            (group.address, IPV4, [host in of_group for host in range(hosts)])
            for group, of_group in zip(multicast, members, strict=True)
        ]
        channels = self.channels
        try:
            late, lame, loads, edges, (passed, most), strange = walk(
                [self._rules[switch.name] for switch in self.fabric.switches],
                list(zip(channels.tail.tolist(), channels.out_port.tolist(), strict=True)),
                list(zip(channels.head.tolist(), channels.in_port.tolist(), strict=True)),
                self._at,
                self._macs,
                floods,
                self._tag_table([address for address, _, _ in floods]),
            )
        except OverflowError as error:
            raise RuleError(f"a number of a rule fits no field: {error}") from None
        self.loads = loads.tolist()
        self.edges = set(map(tuple, edges.tolist()))
        self.switches_passed, self.max_switches = passed, most
        for switch in strange:
            self._pipeline(switch)  # names what it does not follow
        again: dict[int, tuple[list[int], list[int]]] = {}
        for source, target in late.tolist():
            again.setdefault(source, ([], []))[0].append(target)
        for flood, source in lame.tolist():
            again.setdefault(source, ([], []))[1].append(flood)
        for source, (targets, lame_floods) in sorted(again.items()):
            self.follow(source, targets, [([None, *multicast])[flood] for flood in lame_floods])

    def follow(
        self, source: int, targets: Iterable[int], floods: Iterable[MulticastGroup | None]
    ) -> None:
        """Send from one host to ``targets`` and groups (None: all), one by one, by this package."""
        for target in targets:
            self._unicast(source, target)
        for group in floods:
            if group is None:
                self._broadcast(source)
            else:
                self._multicast(source, group)

    def _unicast(self, source: int, target: int) -> None:
        """Send a frame from one host to another, and tell what becomes of it."""
        frame = Frame(self._macs[target], self._macs[source], IPV4)
        delivered, passed, looped = self._send(source, frame)
        if delivered == [(target, frame)] and not looped:
            self._count(passed, 1)
        else:
            self.undelivered += 1
            self._problem(self._story(source, target, delivered, looped))

    def _tag_table(self, addresses: list[int]) -> NDArray[np.uint16] | None:
        """Return (hosts, hosts and ``addresses``): the tag that each host puts on; None: none."""
        if self._tags is None:
            return None
        to = [*self._macs, *addresses]
        return np.array(
            [[self._first_tags(source, mac)[0] for mac in to] for source in range(len(self._macs))],
            dtype=np.uint16,
        )

    def _count(self, passed: list[int], frames: int) -> None:
        """Count ``frames`` paths over the channels ``passed``."""
        self.switches_passed += (len(passed) + 1) * frames
        self.max_switches = max(self.max_switches, len(passed) + 1)
        for channel in passed:
            self.loads[channel] += frames

    def _first_tags(self, source: int, eth_dst: int) -> Tags:
        """Return the tags that host ``source`` puts on a frame to this address."""
        if self._tags is None:
            return ()
        vlans = self._tags[self.fabric.hosts[source].name]
        return (vlans.get(mac_text(eth_dst), vlans[EVERYTHING_ELSE]),)

    def _broadcast(self, source: int) -> None:
        """Send a broadcast from host ``source``: every other host must get it once."""
        name = f"a broadcast of {self.fabric.hosts[source].name}"
        self.broadcasts_undelivered += self._flood(
            source, Frame(BROADCAST, self._macs[source], ARP), set(range(len(self._macs))), name
        )

    def _multicast(self, source: int, group: MulticastGroup) -> None:
        """Send from host ``source`` to a group: its other members must get it once, no others."""
        members = {self.fabric.host_index[name] for name in group.members}
        name = f"a multicast of {self.fabric.hosts[source].name} to group {group.number}"
        self.multicasts_undelivered += self._flood(
            source, Frame(group.address, self._macs[source], IPV4), members, name
        )

    def _flood(self, source: int, frame: Frame, members: set[int], name: str) -> int:
        """Send ``frame``, which ``members`` but the source must get once; count who was wronged."""
        delivered, _, looped = self._send(source, frame)
        copies: dict[int, int] = {}
        for host, arrived in delivered:
            copies[host] = copies.get(host, 0) + (1 if arrived == frame else len(self._macs) + 1)
        due = members - {source}
        wrong = [h for h in sorted(due | set(copies)) if copies.get(h, 0) != (h in due)]
        if looped:
            self._problem(f"{name} goes round for ever")
        for h in wrong[:3]:
            to = self.fabric.hosts[h].name
            if h not in due:
                self._problem(f"{name} reaches {to}, which it is not for")
            else:
                times = "not" if copies.get(h, 0) == 0 else "not exactly once, or changed"
                self._problem(f"{name} reaches {to} {times}")
        return len(wrong) or int(looped)

    def _send(self, source: int, frame: Frame) -> tuple[list[tuple[int, Frame]], list[int], bool]:
        """Send ``frame``, as the host tags it, and follow all copies.

        Returns deliveries as (host, frame), channels taken, whether it loops.
        """
        delivered: list[tuple[int, Frame]] = []
        passed: list[int] = []
        switch, port = self._at[source]
        sent = frame._replace(tags=self._first_tags(source, frame.eth_dst))
        waiting: list[tuple[int, int, int, Frame]] = [(switch, port, -1, sent)]
        been: set[tuple[int, int, Frame]] = set()
        while waiting:
            switch, port, channel, frame = waiting.pop()
            if (switch, port, frame) in been:
                return delivered, passed, True
            been.add((switch, port, frame))
            copies = self._pipeline(switch).outputs(port, frame)
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

    def _pipeline(self, switch: int) -> Pipeline:
        """Return the interpreter of a switch's rules, made when it is first needed."""
        if switch not in self._pipelines:
            name = self.fabric.switches[switch].name
            self._pipelines[switch] = Pipeline(name, self._rules[name])
        return self._pipelines[switch]

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
        for _, pipeline in sorted(self._pipelines.items()):
            told += list(pipeline.problems)
        if len(told) > 2 * _MAX_PROBLEMS or self._more_problems:
            more = self._more_problems + max(0, len(told) - 2 * _MAX_PROBLEMS)
            told = [*told[: 2 * _MAX_PROBLEMS], f"and {more} more"]
        return told
