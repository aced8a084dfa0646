"""YAML as version 1.2 has it: keys are unique, numbers need no point."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from knotless.base.errors import KnotlessError
from knotless.base.yaml_file import parse


def read(text: str) -> object:
    return parse(text, KnotlessError)


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("port: 1\nport: 2\n", 2, "'port'"),
        ('port: 1\n"port": 2\n', 2, "'port'"),
        ("a:\n  - b: 1\n    c: 2\n    b: 3\n", 4, "'b'"),
        ("{a: {b: 1, b: 1}}", 1, "'b'"),
        ("1: a\n0x1: b\n", 2, "1"),
        ("base: &base {x: 1}\nown:\n  <<: *base\n  y: 1\n  y: 2\n", 5, "'y'"),
    ],
)
def test_a_repeated_key_is_refused(text: str, line: int, key: str) -> None:
    with pytest.raises(KnotlessError) as caught:
        read(text)
    assert str(caught.value) == f"line {line}: not YAML: key {key} occurs twice in one mapping"


def test_own_keys_replace_those_of_merged_mappings() -> None:
    text = "base: &base {x: 1, y: 2}\nown: {<<: *base, x: 3}\n"
    assert read(text) == {"base": {"x": 1, "y": 2}, "own": {"x": 3, "y": 2}}


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from("eE"))
def test_a_number_is_a_number_however_it_is_written(value: float, letter: str) -> None:
    for text in (f"{value:.16e}", f"{value:e}", repr(value)):
        assert read(f"- {text.replace('e', letter)}") == [float(text)]
        assert read(f"- '{text}'") == [text]
    short = f"{int(value):d}{letter}-3"
    assert read(f"- {short}") == [float(short)]


@pytest.mark.parametrize("text", ["1e", "e3", "1e3x", "1e-", "0x", "1_0e3", "1:30e3", "1e3 2"])
def test_text_stays_text(text: str) -> None:
    assert read(f"- {text}") == [text]


KEYS = st.sampled_from(["a", "b", "c", "d"])
TREES = st.recursive(
    st.integers(0, 9), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner)
)


@given(TREES)
def test_what_is_written_is_read(tree: object) -> None:
    assert read(yaml.safe_dump(tree)) == tree


@given(st.lists(st.tuples(KEYS, TREES), max_size=5))
def test_exactly_mappings_with_repeated_keys_are_refused(items: list[tuple[str, object]]) -> None:
    flow = [f"{key}: {yaml.safe_dump(value, default_flow_style=True)}" for key, value in items]
    text = "{" + ", ".join(line.replace("\n...", "").strip() for line in flow) + "}"
    if len(dict(items)) == len(items):
        assert read(text) == dict(items)
    else:
        with pytest.raises(KnotlessError, match="occurs twice in one mapping"):
            read(text)
