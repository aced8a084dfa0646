"""From any rules of a switch, reconciling ends with the desired rules and without gaps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from knotless.controller.reconcile import (
    Changes,
    FoundGroup,
    FoundRule,
    GroupChange,
    RuleChange,
    normal,
    reconcile,
)
from knotless.forwarding.openflow.rules import (
    COOKIE,
    Field,
    Group,
    Output,
    PopVlan,
    Rule,
    SwitchRules,
    ToGroup,
)

FOREIGN = 0x1234


class FakeSwitch:
    """A model of adding and deleting on an OpenFlow 1.3 switch.

    A rule that uses an absent group is refused; deleting a group deletes the rules that use it.
    """

    def __init__(self, rules: list[FoundRule], groups: list[FoundGroup]) -> None:
        self.rules = {rule.key: rule for rule in rules}
        self.groups = {group.group_id: group for group in groups}

    def make(self, change: RuleChange | GroupChange) -> None:
        if isinstance(change, RuleChange):
            self._rule(change)
        else:
            self._group(change)

    def _rule(self, change: RuleChange) -> None:
        rule, key = change.rule, change.rule.key
        uses = frozenset(a.group_id for a in rule.actions if isinstance(a, ToGroup))
        if change.command == "delete":
            if key in self.rules and self.rules[key].cookie == rule.cookie:
                del self.rules[key]
            return
        assert uses <= self.groups.keys(), "OFPBAC_BAD_OUT_GROUP"
        if change.command == "modify":
            assert key in self.rules, "a modification of nothing changes nothing"
            assert self.rules[key].cookie == rule.cookie, "a modification keeps the old cookie"
        self.rules[key] = FoundRule(*key, rule.cookie, rule, uses)

    def _group(self, change: GroupChange) -> None:
        group_id = change.group.group_id
        if change.command == "delete":
            del self.groups[group_id]
            self.rules = {k: r for k, r in self.rules.items() if group_id not in r.uses_groups}
            return
        exists = group_id in self.groups
        assert exists == (change.command == "modify"), "OFPGMFC_GROUP_EXISTS or UNKNOWN_GROUP"
        self.groups[group_id] = FoundGroup(group_id, change.group)

    def has(self, rule: Rule) -> bool:
        return rule.key in self.rules and self.rules[rule.key].rule == rule


MATCHES = st.sampled_from(
    [
        (),
        (Field("in_port", 1),),
        (Field("vlan_vid", 0x1001), Field("eth_dst", 1)),
        (Field("vlan_vid", 0x1001), Field("eth_dst", 0x10, 0xF0)),
        (Field("metadata", 3),),
    ]
)
GROUP_IDS = st.integers(1, 4)
ACTIONS = st.lists(
    st.builds(Output, st.integers(1, 3)) | st.builds(ToGroup, GROUP_IDS) | st.just(PopVlan()),
    max_size=2,
).map(tuple)
RULES = st.builds(
    Rule,
    st.integers(0, 3),
    st.integers(0, 2),
    MATCHES,
    ACTIONS,
    st.none() | st.integers(0, 2),
    st.none(),
    st.just(COOKIE),
).map(normal)
GROUPS = st.builds(
    Group, GROUP_IDS, st.lists(ACTIONS.filter(lambda a: not any(map(is_group, a))), max_size=2)
)


def is_group(action: object) -> bool:
    return isinstance(action, ToGroup)


def uses(rule: Rule) -> frozenset[int]:
    return frozenset(a.group_id for a in rule.actions if isinstance(a, ToGroup))


@st.composite
def wanted_rules(draw: st.DrawFn) -> SwitchRules:
    groups = {g.group_id: Group(g.group_id, tuple(g.buckets)) for g in draw(st.lists(GROUPS))}
    rules = {r.key: r for r in draw(st.lists(RULES, max_size=12)) if uses(r) <= groups.keys()}
    return SwitchRules(tuple(rules.values()), tuple(groups.values()))


@st.composite
def held(draw: st.DrawFn, wanted: SwitchRules) -> tuple[list[FoundRule], list[FoundGroup]]:
    """Some of the desired rules, correct or not, stale rules, and rules of others."""
    groups: dict[int, FoundGroup] = {}
    for group in draw(st.lists(GROUPS)):
        content = draw(st.sampled_from([None, Group(group.group_id, tuple(group.buckets))]))
        groups[group.group_id] = FoundGroup(group.group_id, content)
    for group in wanted.groups:
        if draw(st.booleans()):
            groups[group.group_id] = FoundGroup(group.group_id, group)
    candidates = draw(st.lists(RULES, max_size=8))
    if wanted.rules:
        candidates += draw(st.lists(st.sampled_from(wanted.rules)))
    rules: dict[object, FoundRule] = {}
    for rule in candidates:
        cookie = draw(st.sampled_from([COOKIE, COOKIE, FOREIGN, 0]))
        ours = draw(st.booleans()) or cookie == COOKIE
        content_rule = Rule(*rule.key, rule.actions, rule.metadata, rule.goto, cookie)
        if uses(rule) <= groups.keys():
            rules[rule.key] = FoundRule(
                *rule.key, cookie, content_rule if ours else None, uses(rule)
            )
    return list(rules.values()), list(groups.values())


@st.composite
def cases(draw: st.DrawFn) -> tuple[SwitchRules, list[FoundRule], list[FoundGroup], int]:
    wanted = draw(wanted_rules())
    rules, groups = draw(held(wanted))
    return wanted, rules, groups, draw(st.integers(0, 2**32))


def apply(changes: Changes, switch: FakeSwitch, order: int) -> list[RuleChange | GroupChange]:
    """Make all changes; within a step the switch may use any order, here that of ``order``."""
    applied: list[RuleChange | GroupChange] = []
    for step in changes.steps:
        turn = order % len(step)
        for change in (*step[turn:], *step[:turn]):
            switch.make(change)
            applied.append(change)
    return applied


@given(cases())
def test_the_switch_ends_with_the_wanted_rules(
    case: tuple[SwitchRules, list[FoundRule], list[FoundGroup], int],
) -> None:
    wanted, rules, groups, order = case
    switch = FakeSwitch(rules, groups)
    changes = reconcile(wanted, rules, groups)
    apply(changes, switch, order)
    ours = {key for key, rule in switch.rules.items() if rule.cookie == COOKIE}
    assert ours == {rule.key for rule in wanted.rules}
    assert all(switch.has(rule) for rule in wanted.rules)
    assert all(switch.groups[g.group_id].group == g for g in wanted.groups)


@given(cases())
def test_foreign_rules_stay_unless_ours_replace_them(
    case: tuple[SwitchRules, list[FoundRule], list[FoundGroup], int],
) -> None:
    wanted, rules, groups, order = case
    switch = FakeSwitch(rules, groups)
    changes = reconcile(wanted, rules, groups)
    apply(changes, switch, order)
    keys = {rule.key for rule in wanted.rules}
    others = {r.key: r for r in rules if r.cookie != COOKIE and r.key not in keys}
    assert {k: r for k, r in switch.rules.items() if k in others} == others
    assert {rule.key for rule in changes.foreign} == others.keys()


@given(cases())
def test_no_right_rule_is_ever_absent(
    case: tuple[SwitchRules, list[FoundRule], list[FoundGroup], int],
) -> None:
    wanted, rules, groups, order = case
    switch = FakeSwitch(rules, groups)
    right = [rule for rule in wanted.rules if switch.has(rule)]
    changes = reconcile(wanted, rules, groups)
    untouched = {rule.key for rule in right}
    for step in changes.steps:
        turn = order % len(step)
        for change in (*step[turn:], *step[:turn]):
            if isinstance(change, RuleChange):
                assert change.rule.key not in untouched
            switch.make(change)
            assert all(switch.has(rule) for rule in right)


@given(cases())
def test_a_second_time_changes_nothing(
    case: tuple[SwitchRules, list[FoundRule], list[FoundGroup], int],
) -> None:
    wanted, rules, groups, order = case
    switch = FakeSwitch(rules, groups)
    apply(reconcile(wanted, rules, groups), switch, order)
    again = reconcile(wanted, list(switch.rules.values()), list(switch.groups.values()))
    assert again.steps == ()


@given(cases())
def test_additions_come_from_the_last_table_to_the_first_and_before_deletions(
    case: tuple[SwitchRules, list[FoundRule], list[FoundGroup], int],
) -> None:
    wanted, rules, groups, _ = case
    changes = [c for step in reconcile(wanted, rules, groups).steps for c in step]
    of_rules = [c for c in changes if isinstance(c, RuleChange)]
    added = [c.rule.table for c in of_rules if c.command != "delete"]
    deleted = [c.rule.table for c in of_rules if c.command == "delete"]
    assert added == sorted(added, reverse=True)
    assert deleted == sorted(deleted)
    commands = [c.command == "delete" for c in of_rules]
    assert commands == sorted(commands)
