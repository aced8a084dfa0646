"""The changes that give a switch the desired rules, in an order that loses no frame.

Ownership of entries:

- A rule with our cookie is ours. It is kept if it is desired and correct, modified in place if it
  is desired but different, and deleted if it is not desired. Only a rule whose match has a field of
  another class than OpenFlow's own counts as foreign, since no message of ours can name it.
- A rule with another cookie is foreign and is never deleted. If it has the table, priority and
  match of a desired rule, the desired rule replaces it, because a switch holds only one of them.
  Other foreign rules are reported: frames that match them are outside what was verified.
- Groups have no cookie. A group is foreign if a foreign rule uses it and no desired rule does;
  otherwise it is ours. If ids clash, the desired group replaces the other.

Order: first groups, before the rules that use them; then rules, later tables before earlier ones,
so that a frame that enters finds the rest of its path; then deletions, earlier tables first for
the same reason; groups are deleted last, because a switch deletes every rule that uses a deleted
group. A barrier separates the steps. A correct rule is in no step, so its frames are not affected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from knotless.forwarding.openflow.rules import COOKIE, Field, Group, Rule, SwitchRules, match_order

PROBE_COOKIE = 0x6B6E7072
"""The cookie of rules of probes (:mod:`knotless.controller.probes.frames`)."""

OTHER_FIELD = "field_"
"""What the name of a match field begins with that is not of OpenFlow's own class; see
:func:`knotless.controller.openflow.elements.parse_match`."""

Command = Literal["add", "modify", "delete"]
Key = tuple[int, int, tuple[Field, ...]]


@dataclass(frozen=True)
class FoundRule:
    """A rule in a switch; ``rule`` is None if our rules cannot represent it."""

    table: int
    priority: int
    match: tuple[Field, ...]
    cookie: int
    rule: Rule | None
    uses_groups: frozenset[int] = frozenset()

    @property
    def key(self) -> Key:
        """The identity of the entry, as :attr:`knotless.forwarding.openflow.rules.Rule.key`."""
        return (self.table, self.priority, self.match)

    @property
    def is_ours(self) -> bool:
        """Whether it is a rule that Knotless may have written, and can delete; or one of probes."""
        if self.cookie == PROBE_COOKIE:
            return self.rule is not None
        return self.cookie == COOKIE and not any(
            field.name.startswith(OTHER_FIELD) for field in self.match
        )


@dataclass(frozen=True)
class FoundGroup:
    """A group in a switch; ``group`` is None if our groups cannot represent it."""

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
    """Steps to apply in order; changes within a step may be in any order.

    ``foreign`` are the foreign rules that remain in the switch.
    """

    steps: tuple[tuple[Change, ...], ...]
    foreign: tuple[FoundRule, ...]

    def count(self, command: Command) -> int:
        """Return the number of rules and groups that are added, modified or deleted."""
        return sum(change.command == command for step in self.steps for change in step)


def reconcile(
    wanted: SwitchRules,
    rules: Sequence[FoundRule],
    groups: Sequence[FoundGroup],
    *,
    unread: int = 0,
) -> Changes:
    """Return the changes from the rules in a switch to the ``wanted`` ones.

    If it holds rules of others that were not read, ``unread``, they may use any group: none is
    deleted.
    """
    target = {rule.key: rule for rule in map(normal, wanted.rules)}
    held = {rule.key: rule for rule in rules}
    before = _group_additions(wanted.groups, groups)
    additions = [
        RuleChange(_command(held.get(key)), rule)
        for key, rule in target.items()
        if key not in held or held[key].rule != rule
    ]
    deletions = [
        RuleChange("delete", Rule(*key, cookie=COOKIE))
        for key, rule in held.items()
        if rule.cookie == COOKIE and key not in target and rule.is_ours
    ]
    foreign = tuple(rule for rule in rules if rule.key not in target and not rule.is_ours)
    after = () if unread else _group_deletions(wanted.groups, groups, foreign)
    tables = sorted({change.rule.table for change in additions + deletions})
    steps: list[tuple[Change, ...]] = [before]
    steps += [tuple(c for c in additions if c.rule.table == table) for table in reversed(tables)]
    steps += [tuple(c for c in deletions if c.rule.table == table) for table in tables]
    steps.append(after)
    return Changes(tuple(step for step in steps if step), foreign)


def difference(before: SwitchRules, after: SwitchRules) -> Changes:
    """Return the changes of a switch that holds exactly the rules ``before``."""
    kept = {id(rule) for rule in before.rules} & {id(rule) for rule in after.rules}
    old, new = ([rule for rule in rules.rules if id(rule) not in kept] for rules in (before, after))
    held = [FoundRule(*rule.key, COOKIE, rule) for rule in map(normal, old)]
    groups = [FoundGroup(group.group_id, group) for group in before.groups]
    return reconcile(SwitchRules(tuple(new), after.groups), held, groups)


def own_rules(rules: Sequence[FoundRule], groups: Sequence[FoundGroup] = ()) -> SwitchRules:
    """Return the rules with our cookie that a switch holds, and the groups that they use."""
    own = [held for held in rules if held.cookie == COOKIE and held.rule is not None]
    used = frozenset[int]().union(*(held.uses_groups for held in own))
    return SwitchRules(
        tuple(held.rule for held in own if held.rule is not None),
        tuple(each.group for each in groups if each.group and each.group_id in used),
    )


def normal(rule: Rule) -> Rule:
    """Return ``rule`` with our cookie and its match in canonical order."""
    match = match_order(rule.match)
    if rule.cookie == COOKIE and rule.match == match:
        return rule
    return rule._replace(match=match, cookie=COOKIE)


def _command(held: FoundRule | None) -> Command:
    # OpenFlow's 'modify' keeps the cookie, time-outs and flags of the old entry.
    return "modify" if held and held.cookie == COOKIE and held.rule else "add"


def _group_additions(
    wanted: Sequence[Group], groups: Sequence[FoundGroup]
) -> tuple[GroupChange, ...]:
    held = {group.group_id: group.group for group in groups}
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
        GroupChange("delete", Group(group.group_id, ()))
        for group in groups
        if group.group_id not in keep
    )
