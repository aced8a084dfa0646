"""Changes of the rules of an Open vSwitch bridge before they are made, as ovs-ofctl takes them.

A line is one of a file for ``ovs-ofctl add-flows`` (``[add|modify|modify_strict|delete|
delete_strict] FLOW``), or a command (``ovs-ofctl del-flows --strict BRIDGE FLOW``).

References
----------
ovs-ofctl(8), "Flow Syntax" and add-flows; OpenFlow 1.3.5, 6.4 (which rules such a change means).

"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from knotless.base.errors import RuleError
from knotless.forwarding.openflow.ofctl_parser import parse_known
from knotless.forwarding.openflow.rules import Field, Rule
from knotless.importers.file_kinds import FoundFile
from knotless.importers.openflow.ovs_flows import OvsRules
from knotless.importers.openflow.ovs_ports import OvsPorts
from knotless.importers.openflow.ovs_sections import OvsSections

_WORDS = ("add", "modify", "modify_strict", "delete", "delete_strict")
_OF_COMMANDS = {"add-flow": "add", "mod-flows": "modify", "del-flows": "delete"}
_ALL_BITS = -1


@dataclass(frozen=True)
class FlowChange:
    """A line of a change: ``word`` is one of ``add``, ``modify``, ``delete`` or the strict ones.

    ``table`` None: all of them. ``actions`` is their text, which a deletion has not.
    """

    line: int
    word: str
    text: str
    rule: Rule
    table: int | None
    actions: str | None

    def means(self, held: Rule) -> bool:
        """Tell whether a rule is one of those that are modified or deleted."""
        if self.table not in (None, held.table):
            return False
        if self.word in ("add", "modify_strict", "delete_strict"):
            return (held.priority, held.match) == (self.rule.priority, self.rule.match)
        fields = {field.name: field for field in held.match}
        return all(_implies(fields.get(field.name), field) for field in self.rule.match)


def _implies(held: Field | None, wanted: Field) -> bool:
    """Tell whether all frames with a field have another one as well."""
    if held is None:
        return False
    mask = _ALL_BITS if wanted.mask is None else wanted.mask
    covered = _ALL_BITS if held.mask is None else held.mask
    return mask & ~covered == 0 and (held.value ^ wanted.value) & mask == 0


@dataclass(frozen=True)
class Bridge:
    """The dump of the rules of a bridge: its path and text; ``ports`` are numbers by name."""

    path: Path
    text: str
    ports: Mapping[str, int]

    def changed(self, change: str) -> str:
        """Return the dump after the lines of a change; raises RuleError if they cannot be made."""
        return changed_flows(self.text, flow_changes(change, self.ports), self.ports)


def bridge_of(name: str, files: Sequence[object]) -> Bridge | None:
    """Return the dump of the rules of a bridge, of the files of a fabric; None: there is no such.

    Raises
    ------
    RuleError
        Its rules are in several files, or in one with those of other switches.

    """
    found_files = [file for file in files if isinstance(file, FoundFile)]
    own = [file for file in found_files if file.device.name == name]
    dumps = [
        file for file in own if isinstance(file.value, OvsRules) and "actions=" in file.value.text
    ]
    for file in found_files:
        if isinstance(file.value, OvsSections) and name in dict(file.value.dumps):
            raise RuleError(
                f"its rules are in {file.path} with others; they need a file of its own"
            )
    if len(dumps) > 1:
        raise RuleError(f"its rules are in several files: {', '.join(str(f.path) for f in dumps)}")
    if not dumps:
        return None
    ports: dict[str, int] = {}
    for file in own:
        if isinstance(file.value, OvsPorts):
            ports |= file.value.numbers
    return Bridge(dumps[0].path, dumps[0].value.text, ports)


def flow_changes(text: str, ports: Mapping[str, int]) -> list[FlowChange]:
    """Return the changes that lines of text describe; ``ports`` are numbers by name.

    Raises
    ------
    RuleError
        A line is no change of rules, or cannot be read whole.

    """
    changes = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            try:
                changes.append(_change(number, line.strip(), ports))
            except RuleError as error:
                raise RuleError(f"line {number}: {error}") from None
    if not changes:
        raise RuleError("there is no line for ovs-ofctl, such as 'add priority=5,actions=drop'")
    return changes


def _change(number: int, line: str, ports: Mapping[str, int]) -> FlowChange:
    word, flow = _word_and_flow(line)
    is_deletion = word.startswith("delete")
    match, has_actions, actions = re.sub(r"[,\s]*$", "", flow).partition("actions=")
    if has_actions == "" and not is_deletion:
        raise RuleError(f"{flow[:60]!r} has no actions")
    if is_deletion and (has_actions or "cookie=" in match):
        raise RuleError("which rules a cookie or actions mean is not read; name their match")
    if not word.endswith("_strict") and word != "add" and "priority=" in match:
        raise RuleError(f"a priority only counts with --strict, or as {word}_strict")
    match = match.rstrip(", \t")
    read = parse_known(f"{match} actions={actions or 'drop'}", ports)
    if read.faults or len(read.rules.rules) != 1:
        fault = read.faults[0] if read.faults else "line 1: it is not one rule"
        raise RuleError(fault.removeprefix("line 1: "))
    rule = read.rules.rules[0]
    has_table = word == "add" or re.search(r"(?:^|[,\s])table\s*=", match)
    return FlowChange(number, word, match, rule, rule.table if has_table else None, actions or None)


def _word_and_flow(line: str) -> tuple[str, str]:
    """Return what a line changes, as a file of ovs-ofctl says it, and the flow."""
    first, _, rest = line.partition(" ")
    if first in _WORDS:
        return first, rest.strip()
    if first not in ("ovs-ofctl", "sudo"):
        return "add", line
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise RuleError(f"not a command: {error}") from None
    place = next((number for number, word in enumerate(words) if word in _OF_COMMANDS), None)
    if place is None:
        raise RuleError(f"a command is one of ovs-ofctl {', '.join(_OF_COMMANDS)}")
    word = _OF_COMMANDS[words[place]]
    arguments = [one for one in words[place + 1 :] if not one.startswith("-")]
    flags = {one for one in words if one.startswith("--")} - {"--strict", "--bundle"}
    if flags or len(arguments) not in (1, 2):
        raise RuleError(f"it is not 'ovs-ofctl {words[place]} [--strict] BRIDGE FLOW'")
    strict = "_strict" if "--strict" in words and word != "add" else ""
    return f"{word}{strict}", arguments[1] if len(arguments) == 2 else ""


def changed_flows(dump: str, changes: Sequence[FlowChange], ports: Mapping[str, int]) -> str:
    """Return a dump of rules after changes, one after the other.

    Rules of the dump that cannot be read stay, for it is not known whether they are meant.

    Raises
    ------
    RuleError
        A rule is to be modified or deleted, and there is none of this kind.

    """
    lines = [(line, _rule_of(line, ports)) for line in dump.splitlines()]
    for change in changes:
        meant = [held is not None and change.means(held) for _, held in lines]
        if change.word == "add":
            lines = [one for one, is_meant in zip(lines, meant, strict=True) if not is_meant]
            lines.append(
                (f" {change.text} actions={change.actions}".replace("  ", " "), change.rule)
            )
            continue
        if not any(meant):
            raise RuleError(f"line {change.line}: no rule matches {change.text[:60] or 'it'!r}")
        lines = [*_after(lines, meant, change, ports)]
    return "".join(f"{line}\n" for line, _ in lines)


def _after(
    lines: Sequence[tuple[str, Rule | None]],
    meant: Sequence[bool],
    change: FlowChange,
    ports: Mapping[str, int],
) -> Iterator[tuple[str, Rule | None]]:
    for (line, held), is_meant in zip(lines, meant, strict=True):
        if not is_meant:
            yield line, held
        elif change.actions is not None:
            text = f"{line.partition('actions=')[0]}actions={change.actions}"
            yield text, _rule_of(text, ports)


def _rule_of(line: str, ports: Mapping[str, int]) -> Rule | None:
    """Return the rule on a line of a dump; None if there is none that is read whole."""
    if "actions=" not in line:
        return None
    read = parse_known(line, ports)
    return None if read.faults or len(read.rules.rules) != 1 else read.rules.rules[0]
