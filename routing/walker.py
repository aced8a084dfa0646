"""Sends frames through the rules of a whole fabric and keeps what they show."""

from __future__ import annotations

from routing.cdg import virtual_channel
from routing.channels import Channels, channels_of
from routing.host_tags import EVERYTHING_ELSE, HostTags
from routing.multicast import MulticastGroup
from routing.pipeline import Copies, Frame, Pipeline
from routing.rules import FabricRules, SwitchRules
from topologies.fabric import Fabric
from topologies.numbering import mac_text, mac_value

BROADCAST = 0xFFFFFFFFFFFF
IPV4, ARP = 0x0800, 0x0806
_MAX_PROBLEMS = 50

Tags = tuple[int, ...]
Hosts = tuple[int, ...]
Paths = list[tuple[Hosts, list[int]]] | None
"""Hosts and the channels that lead to them; None: these must be looked at one by one."""
_DEEPEST = 400
"""Longer paths are not followed together: Python's stack is not endless."""


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
        self._pipelines = [
            Pipeline(switch.name, rules.get(switch.name, SwitchRules(())))
            for switch in fabric.switches
        ]
        self._hosts = {(index[host.switch], host.port): h for h, host in enumerate(fabric.hosts)}
        self._at = [(index[host.switch], host.port) for host in fabric.hosts]
        self._macs = [mac_value(host.mac) for host in fabric.hosts]
        self._head = self.channels.head.tolist()
        self._in_port = self.channels.in_port.tolist()
        self._tags = tags
        self._everyone = tuple(range(len(fabric.hosts)))
        self._entering = self.channels.entering
        self._split: dict[tuple[int, Hosts], list[Hosts]] = {}
        self._known_paths: dict[tuple[int, int, Tags, Hosts], Paths] = {}
        for switch in fabric.switches:
            if switch.name not in rules:
                self._problem(f"{switch.name}: there are no rules for this switch")

    def unicasts(self, source: int) -> None:
        """Send a frame from host ``source`` to every other.

        All go together as long as the rules treat them alike. Those that do not simply arrive
        are sent again one by one, to find out what becomes of them.
        """
        late = set(range(len(self._macs))) - self._deliver_together(source) - {source}
        for target in sorted(late):
            frame = Frame(self._macs[target], self._macs[source], IPV4)
            delivered, passed, looped = self._send(source, frame)
            if delivered == [(target, frame)] and not looped:
                self._count(passed, 1)
            else:
                self.undelivered += 1
                self._problem(self._story(source, target, delivered, looped))

    def _count(self, passed: list[int], frames: int) -> None:
        """Count ``frames`` paths over the channels ``passed``."""
        self.switches_passed += (len(passed) + 1) * frames
        self.max_switches = max(self.max_switches, len(passed) + 1)
        for channel in passed:
            self.loads[channel] += frames

    def _deliver_together(self, source: int) -> set[int]:
        """Send to all hosts at once; return those that got just their own frame, as sent."""
        arrived: set[int] = set()
        switch, port = self._at[source]
        for tags, sent in self._by_tags(source).items():
            for group in self._alike(switch, sent):
                paths, _ = self._onward(switch, port, tags, group, source)
                for hosts, passed in paths or ():
                    arrived.update(hosts)
                    others = len(hosts) - (source in hosts)
                    if others:
                        self._count(passed, others)
        return arrived

    def _by_tags(self, source: int) -> dict[Tags, Hosts]:
        """Return the hosts by the tags that host ``source`` puts on what it sends to them."""
        if self._tags is None:
            return {(): self._everyone}
        found: dict[Tags, list[int]] = {}
        for host in self._everyone:
            found.setdefault(self._first_tags(source, self._macs[host]), []).append(host)
        return {tags: tuple(hosts) for tags, hosts in found.items()}

    def _first_tags(self, source: int, eth_dst: int) -> Tags:
        """Return the tags that host ``source`` puts on a frame to this address."""
        if self._tags is None:
            return ()
        vlans = self._tags[self.fabric.hosts[source].name]
        return (vlans.get(mac_text(eth_dst), vlans[EVERYTHING_ELSE]),)

    def _onward(
        self, switch: int, port: int, tags: Tags, group: Hosts, source: int, depth: int = 0
    ) -> tuple[Paths, bool]:
        """Send to ``group``, alike in ``switch``: (who gets it and how, does the source matter).

        Where the source does not matter, which is so behind its own switch as a rule, the
        way on is worked out once for all sources.
        """
        key = (switch, port, tags, group)
        if key in self._known_paths:
            return self._known_paths[key], False
        step, depends = self._step(switch, port, tags, group[0], source, depth)
        paths: Paths = None
        if step is not None:
            out_port, out_tags = step
            onward = self.channels.leaving.get((switch, out_port))
            if onward is None:
                if out_tags == () and group == (self._hosts.get((switch, out_port)),):
                    paths = [(group, [])]
            elif depth < _DEEPEST:
                paths = []
                far, far_port = self._head[onward], self._in_port[onward]
                for alike in self._alike(far, group):
                    rest, rest_depends = self._onward(
                        far, far_port, out_tags, alike, source, depth + 1
                    )
                    depends |= rest_depends
                    if rest is None:
                        paths = None
                        break
                    paths += [(hosts, [onward, *passed]) for hosts, passed in rest]
        if not depends and depth > 0:
            self._known_paths[key] = paths
        return paths, depends

    def _alike(self, switch: int, group: Hosts) -> list[Hosts]:
        """Split hosts by how the rules of ``switch`` see them as destinations."""
        if len(group) == 1:
            return [group]
        known = self._split.get((switch, group))
        if known is None:
            by_class: dict[tuple[tuple[int, ...], ...], list[int]] = {}
            for host in group:
                classes = self._pipelines[switch].classes(self._macs[host])
                by_class.setdefault(classes, []).append(host)
            known = [tuple(hosts) for hosts in by_class.values()]
            self._split[switch, group] = known
        return known

    def _step(
        self, switch: int, port: int, tags: Tags, target: int, source: int, depth: int
    ) -> tuple[tuple[int, Tags] | None, bool]:
        """Send a frame through one switch: (where its one copy leaves, did the source matter).

        None where there is not just one copy, or its addresses change.
        """
        pipeline = self._pipelines[switch]
        frame = Frame(self._macs[target], self._macs[source], IPV4, tags)
        copies = pipeline.outputs(port, frame)
        self._note(self._entering.get((switch, port), -1) if depth else -1, frame, switch, copies)
        if len(copies) != 1:
            return None, pipeline.saw_source
        out_port, copy = copies[0]
        if copy != Frame(frame.eth_dst, frame.eth_src, IPV4, copy.tags):
            return None, pipeline.saw_source
        return (out_port, copy.tags), pipeline.saw_source

    def broadcast(self, source: int) -> None:
        """Send a broadcast from host ``source``: every other host must get it once."""
        name = f"a broadcast of {self.fabric.hosts[source].name}"
        self.broadcasts_undelivered += self._flood(
            source, Frame(BROADCAST, self._macs[source], ARP), set(self._everyone), name
        )

    def multicast(self, source: int, group: MulticastGroup) -> None:
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
