"""The rules that switches were last known to hold, in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from knotless.controller.config import ConfigError
from knotless.controller.updates.inherited import holds_other
from knotless.controller.updates.last_rules import LastRules
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.rules import FabricRules
from knotless.forwarding.openflow.vlan_generations import VlanGeneration, rules_in
from knotless.routing.plan import make_plan
from knotless.topologies import load

RULES = rules_in(compile_rules(make_plan(load("ring,4"), "updown")), VlanGeneration(1))


def assert_same(read: FabricRules, kept: FabricRules) -> None:
    assert read.keys() == kept.keys()
    for name, rules in kept.items():
        assert not holds_other(read[name], rules)
        assert not holds_other(rules, read[name])
        assert set(read[name].groups) == set(rules.groups)


def test_rules_are_kept_beside_the_state_file(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    LastRules.beside(state).keep(RULES)
    assert [file.name for file in tmp_path.iterdir()] == ["state-rules.json"]
    assert_same(LastRules.beside(state).read(), RULES)


def test_switches_that_did_not_confirm_keep_what_they_had(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    LastRules.beside(state).keep({name: RULES[name] for name in ("s1", "s2")})
    again = LastRules.beside(state)
    again.keep({"s2": RULES["s3"]})
    assert_same(LastRules.beside(state).read(), {"s1": RULES["s1"], "s2": RULES["s3"]})


def test_equal_rules_are_not_written_again(tmp_path: Path) -> None:
    last = LastRules.beside(tmp_path / "state.json")
    last.keep(RULES)
    (tmp_path / "state-rules.json").unlink()
    last.keep(dict(RULES))
    assert list(tmp_path.iterdir()) == []


def test_without_a_state_file_nothing_is_kept() -> None:
    last = LastRules.beside(None)
    last.keep(RULES)
    assert (last.is_kept, last.read()) == (False, {})


@pytest.mark.parametrize("text", ["", "{", "[]", '{"s1": ["a", "b", "c"]}', '{"s1": ["x", ""]}'])
def test_a_damaged_file_is_named_and_replaced(text: str, tmp_path: Path) -> None:
    file = tmp_path / "state-rules.json"
    file.write_text(text)
    last = LastRules.beside(tmp_path / "state.json")
    with pytest.raises(ConfigError, match=r"^.*/state-rules\.json: .*; delete the file") as raised:
        last.read()
    assert "\n" not in str(raised.value)
    last.keep(RULES)
    assert_same(last.read(), RULES)
