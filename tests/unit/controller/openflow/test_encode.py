"""Rules and groups in our own encoding are those that Ryu writes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knotless.controller.openflow.elements import FIELDS
from knotless.controller.openflow.messages import encode
from knotless.controller.reconcile import Change, Command, GroupChange, RuleChange
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.rules import (
    Action,
    Field,
    Group,
    Output,
    PopVlan,
    PushVlan,
    Rule,
    SetField,
    ToGroup,
)
from knotless.forwarding.openflow.vlan_generations import VlanGeneration, rules_in
from knotless.routing.plan import make_plan
from knotless.topologies import load
from tests.support.ryu_messages import written_by_ryu

COMMANDS: list[Command] = ["add", "modify", "delete"]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("spec", "request_"),
    [
        ("torus,4,4,hosts=2", {"request": "dor", "vcs": 2}),
        ("random,8,degree=3,hosts=2,seed=1", {"request": "dfsssp"}),
        ("fattree,2,4,2", {"request": "fattree", "tagging": "host"}),
    ],
)
def test_every_compiled_rule_is_encoded_as_by_ryu(
    spec: str, request_: dict[str, Any], command: Command
) -> None:
    rules = rules_in(compile_rules(make_plan(load(spec), **request_)), VlanGeneration(1))
    changes: set[Change] = set()
    for switch in rules.values():
        changes |= {RuleChange(command, rule) for rule in switch.rules}
        changes |= {GroupChange(command, group) for group in switch.groups}
    assert len(changes) > 50
    for change in changes:
        assert encode(change, 77) == written_by_ryu(change, 77), str(change)


@st.composite
def fields(draw: st.DrawFn) -> Field:
    """Draw a field of any name, with any mask or none."""
    name = draw(st.sampled_from(list(FIELDS)))
    numbers = st.integers(0, (1 << 8 * FIELDS[name].size) - 1)
    return Field(name, draw(numbers), draw(st.none() | numbers))


NUMBERS = st.integers(0, 0xFFFFFFFF)
ACTIONS: st.SearchStrategy[Action] = st.one_of(
    st.builds(Output, NUMBERS),
    st.just(PushVlan()),
    st.just(PopVlan()),
    st.builds(ToGroup, NUMBERS),
    fields().map(lambda field: SetField(field.name, field.value)),
)
LISTS = st.lists(ACTIONS, max_size=4).map(tuple)
RULES = st.builds(
    Rule,
    st.integers(0, 0xFF),
    st.integers(0, 0xFFFF),
    st.lists(fields(), max_size=6, unique_by=lambda field: field.name).map(tuple),
    LISTS,
    st.none() | st.integers(0, 0xFFFFFFFFFFFFFFFF),
    st.none() | st.integers(0, 0xFF),
    st.integers(0, 0xFFFFFFFFFFFFFFFF),
)


@given(st.sampled_from(COMMANDS), RULES)
def test_any_rule_is_encoded_as_by_ryu(command: Command, rule: Rule) -> None:
    change = RuleChange(command, rule)
    assert encode(change, 77) == written_by_ryu(change, 77)


@given(st.sampled_from(COMMANDS), NUMBERS, st.lists(st.tuples(NUMBERS, LISTS)), st.booleans())
def test_any_group_is_encoded_as_by_ryu(
    command: Command, number: int, buckets: list[tuple[int, tuple[Action, ...]]], watched: bool
) -> None:
    watch = tuple(port for port, _ in buckets) if watched else ()
    change = GroupChange(command, Group(number, tuple(actions for _, actions in buckets), watch))
    assert encode(change, 77) == written_by_ryu(change, 77)


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_is_encoded_as_by_ryu(name: str) -> None:
    all_bits = (1 << 8 * FIELDS[name].size) - 1
    for field in (Field(name, all_bits), Field(name, all_bits, 1)):
        change = RuleChange("add", Rule(0, 5, (field,), (SetField(name, 1),)))
        assert encode(change, 1) == written_by_ryu(change, 1)


def test_a_field_that_openflow_does_not_define_is_refused() -> None:
    with pytest.raises(KeyError, match="reg0"):
        encode(RuleChange("add", Rule(0, 5, (Field("reg0", 1),))), 1)
