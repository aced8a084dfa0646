"""What to change in a switch so that it holds the wanted rules, in an order that loses no frame.

Whose entries are whose:

- A rule with our cookie is ours. It stays if it is wanted and right, is modified in place if
  it is wanted and wrong, and is deleted if it is not wanted.
- A rule with another cookie is someone else's, and is never deleted. Where it has the table,
  priority and match of a wanted rule, the wanted rule takes its place, since a switch holds
  one of each. What is left is reported: its frames are outside of what was proved.
- Groups carry no cookie. A group is someone else's while a rule with another cookie uses it
  and no rule of ours is to; otherwise it is ours. Where ids clash the wanted group wins.

The order: groups before the rules that use them; rules of later tables before those of
earlier ones that lead there, so that a frame that enters finds the rest of its way; only then
the deletions, earlier tables first for the same reason; and groups last, for a switch deletes
with a group every rule that uses it. A barrier stands between the steps. A right rule is in no
step: a frame that it forwards does not notice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from forwarding.openflow.rules import COOKIE, Field, Group, Rule, SwitchRules, match_order

Command = Literal["add", "modify", "delete"]
Key = tuple[int, int, tuple[Field, ...]]


@dataclass(frozen=True)
class FoundRule:
    """A rule that a switch holds; ``rule`` is None when it is nothing that we could write."""

    table: int
    priority: int
    match: tuple[Field, ...]
    cookie: int
    rule: Rule | None
    uses_groups: frozenset[int] = frozenset()

    @property
    def key(self) -> Key:
        """What identifies the entry, as :attr:`forwarding.openflow.rules.Rule.key` does."""
        return (self.table, self.priority, self.match)


@dataclass(frozen=True)
class FoundGroup:
    """A group that a switch holds; ``group`` is None when it is nothing that we could write."""

    group_id: int
    group: Group | None


@dataclass(frozen=True)
class RuleChange:
    """One flow mod."""

    command: Command
    rule: Rule

    def __str__(self) -> str:
        match = "".join(
            f", {f.name}={f.value:#x}" + ("" if f.mask is None else f"/{f.mask:#x}")
            for f in self.rule.match
        )
        rule = self.rule
        return f"{self.command} the rule in table {rule.table}, priority {rule.priority}{match}"


@dataclass(frozen=True)
class GroupChange:
    """One group mod."""

    command: Command
    group: Group

    def __str__(self) -> str:
        return f"{self.command} group {self.group.group_id}"


Change = RuleChange | GroupChange


@dataclass(frozen=True)
class Changes:
    """Steps to be made one after the other, the changes of one step in any order.

    ``foreign`` are the rules of others that will still be in the switch.
    """

    steps: tuple[tuple[Change, ...], ...]
    foreign: tuple[FoundRule, ...]

    def count(self, command: Command) -> int:
        """Return how many rules and groups are added, modified or deleted."""
        return sum(change.command == command for step in self.steps for change in step)


def reconcile(
    wanted: SwitchRules, rules: Sequence[FoundRule], groups: Sequence[FoundGroup]
) -> Changes:
    """Return the changes that turn what a switch holds into ``wanted``."""
    target = {rule.key: rule for rule in map(normal, wanted.rules)}
    held = {found.key: found for found in rules}
    before = _group_additions(wanted.groups, groups)
    additions = [
        RuleChange(_how(held.get(key)), rule)
        for key, rule in target.items()
        if key not in held or held[key].rule != rule
    ]
    deletions = [
        RuleChange("delete", Rule(*key, cookie=COOKIE))
        for key, found in held.items()
        if found.cookie == COOKIE and key not in target
    ]
    foreign = tuple(r for key, r in held.items() if r.cookie != COOKIE and key not in target)
    after = _group_deletions(wanted.groups, groups, foreign)
    tables = sorted({change.rule.table for change in additions + deletions})
    steps: list[tuple[Change, ...]] = [before]
    steps += [tuple(c for c in additions if c.rule.table == table) for table in reversed(tables)]
    steps += [tuple(c for c in deletions if c.rule.table == table) for table in tables]
    steps.append(after)
    return Changes(tuple(step for step in steps if step), foreign)


def normal(rule: Rule) -> Rule:
    """Return ``rule`` as ours, its match in the one order in which matches are compared."""
    return replace(rule, match=match_order(rule.match), cookie=COOKIE)


def _how(found: FoundRule | None) -> Command:
    # OpenFlow's 'modify' keeps the cookie, the time-outs and the flags of the old entry.
    return "modify" if found and found.cookie == COOKIE and found.rule else "add"


def _group_additions(
    wanted: Sequence[Group], groups: Sequence[FoundGroup]
) -> tuple[GroupChange, ...]:
    held = {found.group_id: found.group for found in groups}
    return tuple(
        GroupChange("modify" if group.group_id in held else "add", group)
        for group in wanted
        if group.group_id not in held or held[group.group_id] != group
    )


def _group_deletions(
    wanted: Sequence[Group], groups: Sequence[FoundGroup], foreign: Sequence[FoundRule]
) -> tuple[GroupChange, ...]:
    keep = {group.group_id for group in wanted}.union(*(rule.uses_groups for rule in foreign))
    return tuple(
        GroupChange("delete", Group(found.group_id, ()))
        for found in groups
        if found.group_id not in keep
    )
