"""What a switch does with a frame, by its rules: an interpreter of the OpenFlow 1.3 we use.

It reads any rules, ours or not. What it cannot follow it tells as a problem, and takes
the rule as not matching.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from routing.rules import (
    CONTROLLER,
    IN_PORT,
    Action,
    Field,
    Group,
    Output,
    PopVlan,
    PushVlan,
    Rule,
    SetField,
    SwitchRules,
    ToGroup,
)

VLAN_PRESENT = 0x1000
_ALL_48 = (1 << 48) - 1
_MAX_TABLES = 255
_MAX_NESTED_GROUPS = 8
_MAX_COPIES = 100_000
"""Of one frame in one switch: rules that we did not make may multiply without end."""


@dataclass(frozen=True)
class Frame:
    """The headers of a frame. ``tags`` are its 802.1Q tags, outermost first, 16 bits each."""

    eth_dst: int
    eth_src: int
    eth_type: int
    tags: tuple[int, ...] = ()

    @property
    def priority(self) -> int:
        """The priority that flow control sees: that of the outer tag, or 0."""
        return self.tags[0] >> 13 if self.tags else 0


Copies = tuple[tuple[int, Frame], ...]
"""Where copies of a frame leave: (port, frame as it leaves)."""


_Key = tuple[int, tuple[tuple[int, ...], ...], int, tuple[int, ...]]


class _Table:
    """One flow table, indexed so that few rules are left to try for a frame."""

    def __init__(self, rules: list[Rule]) -> None:
        self._general: list[tuple[int, Rule]] = []
        self._by_destination: dict[int, dict[int, list[tuple[int, Rule]]]] = {}
        for order, rule in enumerate(sorted(rules, key=lambda rule: -rule.priority)):
            to = next((field for field in rule.match if field.name == "eth_dst"), None)
            if to is None:
                self._general.append((order, rule))
            else:
                mask = _ALL_48 if to.mask is None else to.mask
                of_mask = self._by_destination.setdefault(mask, {})
                of_mask.setdefault(to.value & mask, []).append((order, rule))
        self._candidates: dict[tuple[int, tuple[int, ...]], list[Rule]] = {}

    def destination_class(self, eth_dst: int) -> tuple[int, ...]:
        """Return what this table can tell of a destination: equal for those treated alike."""
        return tuple(
            eth_dst & mask if eth_dst & mask in values else -1
            for mask, values in self._by_destination.items()
        )

    def candidates(self, in_port: int, to: tuple[int, ...]) -> list[Rule]:
        """Return the rules that match the port and the class of destination, highest first."""
        known = self._candidates.get((in_port, to))
        if known is None:
            found = list(self._general)
            for value, values in zip(to, self._by_destination.values(), strict=True):
                found += values.get(value, ())
            found.sort(key=lambda entry: entry[0])
            known = [
                rule
                for _, rule in found
                if all(_fits(f, in_port) for f in rule.match if f.name == "in_port")
            ]
            self._candidates[in_port, to] = known
        return known


class Pipeline:
    """One switch's rules, made ready for looking up. ``problems`` grows as frames pass."""

    def __init__(self, name: str, rules: SwitchRules) -> None:
        self.name = name
        self.problems: dict[str, None] = {}
        self._groups: dict[int, Group] = {group.group_id: group for group in rules.groups}
        by_table: dict[int, list[Rule]] = defaultdict(list)
        for rule in rules.rules:
            by_table[rule.table].append(rule)
        self._tables = {number: _Table(of_table) for number, of_table in by_table.items()}
        self._classes: dict[int, dict[int, tuple[int, ...]]] = {}
        self._saw_source = False
        self._known: dict[_Key, Copies | None] = {}
        self._known_by_source: dict[tuple[int, Frame], Copies] = {}

    def _classes_of(self, eth_dst: int) -> dict[int, tuple[int, ...]]:
        """Return the class of a destination in each table."""
        known = self._classes.get(eth_dst)
        if known is None:
            known = {
                number: table.destination_class(eth_dst) for number, table in self._tables.items()
            }
            self._classes[eth_dst] = known
        return known

    def outputs(self, in_port: int, frame: Frame) -> Copies:
        """Return the copies that leave when ``frame`` comes in by ``in_port``.

        Frames that the rules cannot tell apart are worked out once.
        """
        classes = tuple(self._classes_of(frame.eth_dst).values())
        key = (in_port, classes, frame.eth_type, frame.tags)
        if key in self._known:
            known = self._known[key]
            if known is not None:
                return tuple(
                    (
                        port,
                        Frame(frame.eth_dst, frame.eth_src, copy.eth_type, copy.tags),
                    )
                    for port, copy in known
                )
            by_source = (in_port, frame)
            if by_source not in self._known_by_source:
                self._known_by_source[by_source] = self.process(in_port, frame)
            return self._known_by_source[by_source]
        self._saw_source = False
        copies = self.process(in_port, frame)
        rewritten = any(
            (copy.eth_dst, copy.eth_src) != (frame.eth_dst, frame.eth_src) for _, copy in copies
        )
        if self._saw_source or rewritten:
            self._known[key] = None
            self._known_by_source[in_port, frame] = copies
        else:
            self._known[key] = copies
        return copies

    def process(self, in_port: int, frame: Frame) -> Copies:
        """Work out what :meth:`outputs` returns, without memory."""
        out: list[tuple[int, Frame]] = []
        table: int | None = 0
        metadata = 0
        for _ in range(_MAX_TABLES):
            if table is None:
                return tuple(out)
            rule = self._lookup(table, in_port, metadata, frame)
            if rule is None:
                return tuple(out)
            frame = self._apply(rule.actions, in_port, frame, out, 0)
            if rule.metadata is not None:
                metadata = rule.metadata
            if rule.goto is not None and rule.goto <= table:
                self._problem(f"a rule of table {table} goes back to table {rule.goto}")
                return tuple(out)
            table = rule.goto
        return tuple(out)

    def _lookup(self, table: int, in_port: int, metadata: int, frame: Frame) -> Rule | None:
        if table not in self._tables:
            return None
        to = self._classes_of(frame.eth_dst)[table]
        candidates = self._tables[table].candidates(in_port, to)
        for rule in candidates:
            if all(self._matches(rule, field, metadata, frame) for field in rule.match):
                return rule
        return None

    def _matches(self, rule: Rule, field: Field, metadata: int, frame: Frame) -> bool:
        name = field.name
        if name in ("in_port", "eth_dst"):
            return True
        if name == "metadata":
            return _fits(field, metadata)
        if name == "vlan_vid":
            value = VLAN_PRESENT | frame.tags[0] & 0xFFF if frame.tags else 0
            return _fits(field, value)
        if name == "vlan_pcp":
            return bool(frame.tags) and _fits(field, frame.tags[0] >> 13)
        if name == "eth_src":
            self._saw_source = True
            return _fits(field, frame.eth_src)
        if name == "eth_type":
            return _fits(field, frame.eth_type)
        self._problem(f"a rule of table {rule.table} matches {name}, which is not followed here")
        return False

    def _apply(
        self,
        actions: tuple[Action, ...],
        in_port: int,
        frame: Frame,
        out: list[tuple[int, Frame]],
        depth: int,
    ) -> Frame:
        """Apply ``actions`` in order, add copies that leave to ``out``, return the frame."""
        for action in actions:
            match action:
                case Output(port):
                    self._output(port, in_port, frame, out)
                case PushVlan():
                    outer = frame.tags[0] if frame.tags else 0
                    frame = _with_tags(frame, (outer, *frame.tags))
                case PopVlan():
                    if not frame.tags:
                        self._problem("a rule takes the tag off an untagged frame")
                    frame = _with_tags(frame, frame.tags[1:])
                case SetField(name, value):
                    frame = self._set(frame, name, value)
                case ToGroup(group_id):
                    self._to_group(group_id, in_port, frame, out, depth)
        return frame

    def _output(self, port: int, in_port: int, frame: Frame, out: list[tuple[int, Frame]]) -> None:
        if port == CONTROLLER:
            self._problem("a rule sends frames to the controller; they are not followed")
        elif port == IN_PORT:
            out.append((in_port, frame))
        elif port != in_port:  # OpenFlow 1.3, 7.2.5: never back, unless IN_PORT says so
            out.append((port, frame))

    def _to_group(
        self, group_id: int, in_port: int, frame: Frame, out: list[tuple[int, Frame]], depth: int
    ) -> None:
        if group_id not in self._groups:
            self._problem(f"a rule uses group {group_id}, which is not there")
        elif depth >= _MAX_NESTED_GROUPS or len(out) > _MAX_COPIES:
            self._problem(f"group {group_id} uses groups without end")
        else:
            for bucket in self._groups[group_id].buckets:
                self._apply(bucket, in_port, frame, out, depth + 1)

    def _set(self, frame: Frame, name: str, value: int) -> Frame:
        if name in ("vlan_vid", "vlan_pcp"):
            if not frame.tags:
                self._problem(f"a rule sets {name} of an untagged frame")
                return frame
            tag = frame.tags[0]
            tag = tag & ~0xFFF | value & 0xFFF if name == "vlan_vid" else tag & 0x1FFF | value << 13
            return _with_tags(frame, (tag, *frame.tags[1:]))
        if name in ("eth_dst", "eth_src"):
            dst = value if name == "eth_dst" else frame.eth_dst
            src = value if name == "eth_src" else frame.eth_src
            return Frame(dst, src, frame.eth_type, frame.tags)
        self._problem(f"a rule sets {name}, which is not followed here")
        return frame

    def _problem(self, text: str) -> None:
        self.problems[f"{self.name}: {text}"] = None


def _with_tags(frame: Frame, tags: tuple[int, ...]) -> Frame:
    return Frame(frame.eth_dst, frame.eth_src, frame.eth_type, tags)


def _fits(field: Field, value: int) -> bool:
    if field.mask is None:
        return value == field.value
    return (value ^ field.value) & field.mask == 0
