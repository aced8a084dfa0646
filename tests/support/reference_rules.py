"""Tables of OpenFlow rules, read as text by the OpenFlow 1.3 specification, for the interpreter.

They are the ``.flows`` and ``.groups`` that ``knotless flows`` writes; only what those hold is
understood. Rules can also change while frames are under way: time has phases, in phase q each
switch holds rule set q - 1 or q, and a frame may stay anywhere for any number of phases. If sets
are sent before the last is confirmed, it holds one of q - lag to q, of a lag for each phase.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.reference import CUT, LOOP, TAGGED, Outcome, Place, Reference

BROADCAST = "ff:ff:ff:ff:ff:ff"
Files = Path | Mapping[str, str]
"""A folder, or the texts of its files by name."""


class Frame(NamedTuple):
    """A frame between switches, and the phase of the change of rules.

    ``below`` are the VLAN and priority of the tags below the first one.
    """

    eth_dst: int
    eth_src: int
    eth_type: int = 0x0800
    vlan: int | None = None
    priority: int = 0
    phase: int = 0
    below: tuple[tuple[int, int], ...] = ()

    @property
    def tagged(self) -> bool:
        """Whether it has a VLAN tag."""
        return self.vlan is not None


class TwoTagsError(Exception):
    """A rule pushes a second tag, which frames have only where several tags are followed."""


Copies = list[tuple[int, Frame]]


class Flow(NamedTuple):
    """A rule: ``match`` has (field, value) or (field, value, mask)."""

    table: int
    priority: int
    match: list[tuple[Any, ...]]
    actions: list[str]


def _num(text: str) -> int:
    return int(text.replace(":", ""), 16) if ":" in text else int(text, 0)


_CHOICE = re.compile(
    r"move:NXM_OF_ETH_SRC\[\]->NXM_NX_XXREG0\[0..47\],"
    r"move:NXM_OF_ETH_DST\[0..23\]->NXM_OF_ETH_SRC\[24..47\],"
    r"bundle_load\(eth_src,\d+,hrw,ofport,OXM_OF_METADATA\[0..15\],members:([\d,]+)\),"
    r"move:NXM_NX_XXREG0\[0..47\]->NXM_OF_ETH_SRC\[\]"
)
"""The whole of these actions is followed as one, which chooses a port of any of the members."""


def _flow(line: str) -> Flow:
    match, actions = line.split(" actions=")
    fields = dict(part.split("=") for part in match.split(","))
    table, priority = int(fields.pop("table")), int(fields.pop("priority"))
    assert fields.pop("cookie") == "0x6b6e6f74"
    wanted = [(name, *map(_num, value.split("/"))) for name, value in fields.items()]
    actions = _CHOICE.sub(lambda found: "choose:" + found[1].replace(",", "/"), actions)
    return Flow(table, priority, wanted, [] if actions == "drop" else actions.split(","))


class RuleFiles:
    """The table of the files of a folder, while the ports ``down`` are down.

    ``used`` are the rules that frames have met, by switch and place in its file.
    """

    several_tags = False
    """Whether frames may have more than one tag."""

    def __init__(self, files: Files, down: Iterable[Place] = ()) -> None:
        def text(name: str) -> str:
            return (files / name).read_text() if isinstance(files, Path) else files[name]

        self.fabric = json.loads(text("fabric.json"))
        has_tags = (
            (files / "tags.json").exists() if isinstance(files, Path) else "tags.json" in files
        )
        self.tags = json.loads(text("tags.json")) if has_tags else None
        self.flows: dict[str, list[Flow]] = {}
        self.groups: dict[tuple[str, int], list[list[str]]] = {}
        self.used: set[tuple[str, int]] = set()
        self._known: dict[tuple[Place, Frame], list[Copies]] = {}
        dead = set(down)
        for switch in self.fabric["switches"]:
            name = switch["name"]
            self.flows[name] = [_flow(line) for line in text(f"{name}.flows").splitlines()]
            for line in text(f"{name}.groups").splitlines():
                parts = re.fullmatch(r"group_id=(\d+),type=(all|ff)(.*)", line)
                assert parts is not None, line
                buckets = [part.split(",") for part in parts[3].split(",bucket=")[1:]]
                if parts[2] == "ff":  # the first bucket whose port is up
                    ports = [int(bucket.pop(0).removeprefix("watch_port:")) for bucket in buckets]
                    up = zip(buckets, ports, strict=True)
                    buckets = [bucket for bucket, port in up if (name, port) not in dead][:1]
                self.groups[name, int(parts[1])] = [
                    [first.removeprefix("actions="), *others] for first, *others in buckets
                ]

    def __call__(self, place: Place, frame: Frame) -> list[Copies]:
        """Return the copies that leave a switch, for each port that its rules may choose."""
        key = (place, frame)
        if key not in self._known:
            self._known[key] = list(self._from_table(0, place, frame, 0))
        return self._known[key]

    def _from_table(
        self, table: int, place: Place, frame: Frame, metadata: int
    ) -> Iterator[Copies]:
        hit: int | None = None
        flows = self.flows[place[0]]
        for number, flow in enumerate(flows):
            better = hit is None or flow.priority > flows[hit].priority
            if flow.table == table and better and fits(flow, place, frame, metadata):
                hit = number
        if hit is None:
            yield []
            return
        self.used.add((place[0], hit))
        yield from self._applied(flows[hit].actions, place, frame, metadata)

    def _applied(
        self, actions: list[str], place: Place, frame: Frame, metadata: int
    ) -> Iterator[Copies]:
        out: Copies = []
        following = None
        for number, action in enumerate(actions):
            verb, _, argument = action.partition(":")
            if verb == "output":
                if int(argument) != place[1]:
                    out.append((int(argument), frame))
            elif verb == "IN_PORT":
                out.append((place[1], frame))
            elif verb == "push_vlan":
                if frame.vlan is None:
                    frame = frame._replace(vlan=0, priority=0)
                elif self.several_tags:
                    first = (frame.vlan, frame.priority)
                    frame = frame._replace(below=(first, *frame.below))
                else:
                    raise TwoTagsError
            elif verb == "pop_vlan":
                assert frame.vlan is not None
                (vlan, priority), below = (None, 0), frame.below
                if below:
                    (vlan, priority), *others = below
                    below = tuple(others)
                frame = frame._replace(vlan=vlan, priority=priority, below=below)
            elif verb == "set_field":
                value, field = argument.split("->")
                assert frame.vlan is not None
                if field == "vlan_vid":
                    frame = frame._replace(vlan=int(value) & 0xFFF)
                else:
                    assert field == "vlan_pcp"
                    frame = frame._replace(priority=int(value) & 7)
            elif verb == "group":
                for bucket in self.groups[place[0], int(argument)]:
                    [copies] = self._applied(bucket, place, frame, metadata)
                    out += copies
            elif verb == "choose":
                for member in argument.split("/"):
                    for rest in self._applied(actions[number + 1 :], place, frame, int(member)):
                        yield out + rest
                return
            elif verb == "write_metadata":
                metadata = int(argument, 0)
            elif verb == "goto_table":
                following = int(argument)
            else:
                raise AssertionError(action)
        if following is None:
            yield out
            return
        for rest in self._from_table(following, place, frame, metadata):
            yield out + rest


def fits(flow: Flow, place: Place, frame: Frame, metadata: int) -> bool:
    """Return whether a rule matches a frame in a switch."""
    for name, value, *mask in flow.match:
        if name == "vlan_vid":
            have = 0 if frame.vlan is None else 0x1000 | frame.vlan
        elif name == "vlan_pcp":
            if frame.vlan is None:
                return False
            have = frame.priority
        else:
            others = {"in_port": place[1], "metadata": metadata}
            have = others[name] if name in others else getattr(frame, name)
        if have & (mask[0] if mask else -1) != value & (mask[0] if mask else -1):
            return False
    return True


class RuleReference(Reference[Frame]):
    """Follows frames of hosts through rules that are installed one set after the other."""

    def __init__(self, *sets: Files | RuleFiles, lags: Sequence[int] = ()) -> None:
        self.rules = [each if isinstance(each, RuleFiles) else RuleFiles(each) for each in sets]
        super().__init__(self.rules[0].fabric, self._by_phases)
        self.hosts = {host["name"]: host for host in self.fabric["hosts"]}
        self._last = max(2, len(self.rules))
        behind = lags or [1] * self._last
        self._oldest = [max(0, phase - lag) for phase, lag in enumerate(behind)]

    def _by_phases(self, place: Place, frame: Frame) -> Sequence[Copies]:
        found: list[Copies] = []
        for now in range(frame.phase, self._last):
            for number in range(self._oldest[now], min(now, len(self.rules) - 1) + 1):
                for copies in self.rules[number](place, frame._replace(phase=0)):
                    found.append([(port, copy._replace(phase=now)) for port, copy in copies])
        return [copies for number, copies in enumerate(found) if copies not in found[:number]]

    def frames(self, source: str, eth_dst: str, eth_src: str | None = None) -> list[Frame]:
        """Return the frames of a host to an address: one for each phase, and its tags then."""
        sender = eth_src or self.hosts[source]["mac"]
        eth_type = 0x0806 if eth_dst == BROADCAST else 0x0800
        untagged = Frame(_num(eth_dst), _num(sender), eth_type)
        found = []
        for phase in range(1, self._last):
            for rules in self.rules[self._oldest[phase] : phase + 1]:
                tags = {} if rules.tags is None else rules.tags[source]
                vlan = tags.get(eth_dst, tags.get("default"))
                found.append(untagged._replace(vlan=vlan, phase=phase))
        return list(dict.fromkeys(found))

    def sent(self, source: str, eth_dst: str, eth_src: str | None = None) -> set[Outcome]:
        """Return all possible fates of a frame from a host to an address."""
        place = (self.hosts[source]["switch"], self.hosts[source]["port"])
        fates = (self.outcomes(place, frame) for frame in self.frames(source, eth_dst, eth_src))
        return set().union(*fates)

    def fates(self, source: str, destination: str) -> set[Outcome]:
        """Return all possible fates of a frame from one host to another, or to all (``all``)."""
        mac = BROADCAST if destination == "all" else self.hosts[destination]["mac"]
        return self.sent(source, mac)

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield all pairs of different hosts."""
        yield from ((a, b) for a in self.hosts for b in self.hosts if a != b)

    def failed_pairs(self) -> set[tuple[str, str]]:
        """Return the pairs for which some fate is not one untagged copy at the destination."""
        return {(a, b) for a, b in self.pairs() if self.fates(a, b) != {(b,)}}

    def wrong_receivers(self) -> tuple[set[tuple[str, str]], bool]:
        """Return (source, receiver) of wrong numbers of broadcast copies, and whether any loops."""
        wrong, loops = set[tuple[str, str]](), False
        for source in self.hosts:
            fates = [Counter(outcome) for outcome in self.fates(source, "all")]
            wrong |= {
                (source, name)
                for name in self.hosts
                if any(fate[name] != (name != source) for fate in fates)
            }
            loops |= any(fate[LOOP] or fate[TAGGED] for fate in fates)
        return wrong, loops

    def all_pairs(self) -> tuple[float, int, float]:
        """Return the mean switches of all pairs, the most, and the largest load of a channel.

        A host to itself counts. Of several walks of a pair, each has an equal share at each choice.
        Asserts that all arrive.
        """
        mean, most, load = Fraction(len(self.hosts)), 1, dict[Place, Fraction]()
        for source, target in self.pairs():
            assert self.fates(source, target) == {(target,)}, (source, target)
            place = (self.hosts[source]["switch"], self.hosts[source]["port"])
            [frame] = self.frames(source, self.hosts[target]["mac"])
            for walk, share in self.walks(place, frame).items():
                mean += share * (1 + len(walk))
                most = max(most, 1 + len(walk))
                for node in walk:
                    load[node[:2]] = load.get(node[:2], Fraction(0)) + share
        return float(mean / len(self.hosts) ** 2), most, float(max(load.values(), default=0))

    def broadcasts(self) -> None:
        """Assert that every other host gets one untagged copy of each host's broadcast."""
        assert self.wrong_receivers() == (set(), False)
        for source in self.hosts:
            assert all(CUT not in fate for fate in self.fates(source, "all")), source
