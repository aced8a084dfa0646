"""What a switch does with a frame, by its rules: an interpreter of the OpenFlow 1.3 we use.

It reads any rules, ours or not. What it cannot follow it tells as a problem; a rule that
matches what it cannot follow it leaves out.
"""

from __future__ import annotations

from collections import defaultdict

from routing.flowtable import FOLLOWED, Class, FlowTable, Frame
from routing.rules import (
    CONTROLLER,
    IN_PORT,
    Action,
    Group,
    Output,
    PopVlan,
    PushVlan,
    Rule,
    SetField,
    SwitchRules,
    ToGroup,
)

__all__ = ["Copies", "Frame", "Pipeline"]

_MAX_NESTED_GROUPS = 8
_MAX_COPIES = 100_000
"""Of one frame in one switch: rules that we did not make may multiply without end."""

Copies = tuple[tuple[int, Frame], ...]
"""Where copies of a frame leave: (port, frame as it leaves)."""


class Pipeline:
    """One switch's rules, made ready for looking up. ``problems`` grows as frames pass."""

    def __init__(self, name: str, rules: SwitchRules) -> None:
        self.name = name
        self.problems: dict[str, None] = {}
        self._groups: dict[int, Group] = {group.group_id: group for group in rules.groups}
        by_table: dict[int, list[Rule]] = defaultdict(list)
        for rule in rules.rules:
            strange = sorted({field.name for field in rule.match} - FOLLOWED)
            if strange:
                names = ", ".join(strange)
                self._problem(f"a rule of table {rule.table} matches {names}: not followed here")
            else:
                by_table[rule.table].append(rule)
        self._tables = {number: FlowTable(of_table) for number, of_table in by_table.items()}
        self._classes: dict[int, dict[int, Class]] = {}

    def _classes_by_table(self, eth_dst: int) -> dict[int, Class]:
        known = self._classes.get(eth_dst)
        if known is None:
            known = {number: table.class_of(eth_dst) for number, table in self._tables.items()}
            self._classes[eth_dst] = known
        return known

    def outputs(self, in_port: int, frame: Frame) -> Copies:
        """Return the copies that leave when ``frame`` comes in by ``in_port``."""
        out: list[tuple[int, Frame]] = []
        table: int | None = 0
        metadata = 0
        while table is not None:
            if table not in self._tables:
                break
            to = self._classes_by_table(frame.eth_dst)[table]
            rule = self._tables[table].lookup(to, in_port, metadata, frame)
            if rule is None:
                break
            frame = self._apply(rule.actions, in_port, frame, out, 0)
            if rule.metadata is not None:
                metadata = rule.metadata
            if rule.goto is not None and rule.goto <= table:
                self._problem(f"a rule of table {table} goes back to table {rule.goto}")
                break
            table = rule.goto
        return tuple(out)

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
