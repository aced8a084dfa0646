"""For any input, parsers return a value or raise an error of one line."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from knotless._core.schedule import GoalReader
from knotless._core.simulator import poisson_messages
from knotless.forwarding.openflow.ofctl_parser import parse
from knotless.forwarding.openflow.ofctl_writer import write
from knotless.forwarding.openflow.rules import (
    COOKIE,
    Field,
    Group,
    Output,
    PopVlan,
    PushVlan,
    Rule,
    SetField,
    SwitchRules,
    ToGroup,
    match_order,
)
from knotless.topologies import Fabric, KnotlessError, load
from knotless.topologies.formats.files import from_json, from_text, to_json
from knotless.topologies.spec import build
from knotless.traffic.sizes import parse as parse_sizes
from knotless.verification.check import check

FABRIC = load("torus,3,2,hosts=2")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def _one_line(error: KnotlessError) -> None:
    assert str(error)
    assert "\n" not in str(error)


@given(
    st.text()
    | st.from_regex(r"(mesh|torus|ring|mtree|flat)(,[-0-9a-z=.]{0,6}){0,4}", fullmatch=True)
)
def test_specs(text: str) -> None:
    try:
        fabric = build(text)
    except KnotlessError as error:
        _one_line(error)
    else:
        assert build(fabric.name) == fabric


GOAL_LINES = st.sampled_from(
    [
        *("num_ranks 2", "rank 0 {", "rank 1 {", "}", "", "/* x", "x */", "// y", "rank 0 { }"),
        *("a: calc 5", "a: calc 5 cpu 1", "b: send 7b to 1", "b: recv 7b from 1 tag 3"),
        *("c: send 7b to 0 nic 0", "recv 7b from 0", "a requires b", "b irequires a", "a requires"),
    ]
)


@given(
    st.lists(GOAL_LINES | st.text(max_size=20), max_size=14).map("\n".join)
    | st.lists(GOAL_LINES, max_size=9).map(lambda lines: "\n".join(["num_ranks 2", *lines])),
    st.integers(1, 9),
)
def test_goal(text: str, piece: int) -> None:
    data = text.encode(errors="replace")

    def read(size: int) -> tuple[int, int] | str:
        reader = GoalReader(2)
        try:
            for begin in range(0, len(data), size):
                reader.feed(data[begin : begin + size])
            schedule = reader.finish()
        except ValueError as error:
            return str(error)
        return schedule.ranks, schedule.operations

    done = read(piece)
    assert done == read(max(1, len(data)))
    assert not isinstance(done, str) or (done.startswith("line ") and "\n" not in done)


@given(
    st.text()
    | st.lists(st.tuples(st.integers(-1, 9), st.floats(0, 1))).map(
        lambda rows: "\n".join(["bytes,probability", *(f"{b},{p}" for b, p in rows)])
    )
)
def test_sizes(text: str) -> None:
    try:
        sizes = parse_sizes("file.csv", text)
    except KnotlessError as error:
        _one_line(error)
    else:
        assert 0 < sizes.mean_bytes <= sizes.points[-1][0]
        drawn = poisson_messages(
            np.zeros(1, dtype=np.uint32),
            np.ones(1, dtype=np.int64),
            np.ones(1),
            list(sizes.points),
            hosts=2,
            seed=1,
            most=9,
            until_ps=2**63,
        )
        assert 1 <= int(drawn[3].min()) <= int(drawn[3].max()) <= sizes.points[-1][0]


def _places(obj: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    paths = [path] if path else []
    if isinstance(obj, dict):
        for key, value in obj.items():
            paths += _places(value, (*path, key))
    elif isinstance(obj, list):
        for place, value in enumerate(obj):
            paths += _places(value, (*path, place))
    return paths


PLACES = _places(to_json(FABRIC))


@given(st.sampled_from(PLACES), JSON, st.booleans())
def test_a_fabric_with_one_invalid_value(path: tuple[Any, ...], value: Any, drop: bool) -> None:
    obj: Any = copy.deepcopy(to_json(FABRIC))
    node = obj
    for key in path[:-1]:
        node = node[key]
    if drop:
        del node[path[-1]]
    else:
        node[path[-1]] = value
    try:
        fabric = from_json(obj)
    except KnotlessError as error:
        _one_line(error)
    else:
        assert isinstance(fabric, Fabric)
        assert from_text(json.dumps(to_json(fabric))) == fabric


@given(st.text() | JSON.map(lambda value: json.dumps(value)))
def test_json_text(text: str) -> None:
    try:
        from_text(text)
    except KnotlessError as error:
        _one_line(error)


FLOW_TEXT = st.from_regex(
    r"((table|priority|in_port|dl_vlan|vlan_tci|vlan_vid|dl_dst|metadata|cookie|x)="
    r"(0x)?[0-9a-f:/]{0,19},){0,4} ?actions=((output|group|push_vlan|set_field|goto_table|drop|"
    r"write_metadata|pop_vlan):?[0-9a-fx>()-]{0,8},){0,3}",
    fullmatch=True,
)


@given(st.text() | FLOW_TEXT, st.text() | FLOW_TEXT.map(lambda text: f"group_id=1,bucket={text}"))
def test_flow_text(flows: str, groups: str) -> None:
    try:
        rules = parse(flows, groups)
    except KnotlessError as error:
        _one_line(error)
    else:
        assert parse(*write(rules)) == rules


PORT = st.integers(0, 5) | st.sampled_from([0xFFFFFFF8, 0xFFFFFFFD])
FIELD = st.one_of(
    st.builds(Field, st.just("in_port"), PORT, st.none()),
    st.builds(Field, st.just("metadata"), st.integers(0, 5), st.none()),
    st.builds(
        Field, st.just("eth_dst"), st.sampled_from([0x020000000101, 0x020000000201]), st.none()
    ),
    st.just(Field("eth_dst", 0x010000000000, 0x010000000000)),
    st.just(Field("vlan_vid", 0x1000, 0x1000)),
    st.builds(Field, st.just("vlan_vid"), st.sampled_from([0, 0x1002]), st.none()),
    st.builds(Field, st.just("vlan_pcp"), st.integers(0, 7), st.none()),
    st.just(Field("tcp_dst", 80)),
)
ACTION = st.one_of(
    st.builds(Output, PORT),
    st.just(PushVlan()),
    st.just(PopVlan()),
    st.builds(
        SetField, st.sampled_from(["vlan_vid", "vlan_pcp", "eth_dst", "x"]), st.integers(0, 7)
    ),
    st.builds(ToGroup, st.integers(1, 3)),
)
ACTIONS = st.lists(ACTION, max_size=3).map(tuple)
RULE = st.builds(
    Rule,
    table=st.integers(0, 3),
    priority=st.integers(0, 9),
    match=st.lists(FIELD, max_size=2, unique_by=lambda field: field.name).map(match_order),
    actions=ACTIONS,
    metadata=st.none() | st.integers(0, 5),
    goto=st.none() | st.integers(0, 4),
    cookie=st.just(COOKIE),
)
RULES = st.builds(
    SwitchRules,
    rules=st.lists(RULE, max_size=8).map(tuple),
    groups=st.lists(st.lists(ACTIONS, max_size=3).map(tuple), max_size=3).map(
        lambda groups: tuple(Group(i + 1, buckets) for i, buckets in enumerate(groups))
    ),
)


@given(st.dictionaries(st.sampled_from(["s1", "s2", "s3"]), RULES))
def test_any_rules_are_judged(rules: dict[str, SwitchRules]) -> None:
    fabric = load("ring,3")
    verdict = check(fabric, rules)
    assert 0 <= verdict.undelivered <= verdict.pairs == 6
    assert verdict.acyclic == (verdict.cycle == [])
    assert all("\n" not in problem for problem in verdict.problems)
    assert check(fabric, dict(sorted(rules.items(), reverse=True))).cycle == verdict.cycle
