"""Rules in text: those of the core and those of Python are the same, damaged or not."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from knotless._core.forwarding import Switch
from knotless.base.errors import RuleError
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.directory import read_dir, write_dir
from knotless.forwarding.openflow.ofctl_parser import parse
from knotless.forwarding.openflow.ofctl_writer import write
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.forwarding.openflow.rules import FabricRules, Output
from knotless.routing.plan import make_plan
from knotless.topologies import Fabric, load
from knotless.verification.check import verdict_of
from tests.support.random_fabrics import seeded

PLANS = [
    ("fattree3,4", "fattree"),
    ("torus,4,4", "dor"),
    ("torus,5,5", "lash"),
    ("random,8,degree=3,hosts=3,seed=4", "updown"),
    ("lsft,3", "lsft"),
]
DAMAGED_TEXTS = 400
ALPHABET = "0123456789abcdefx:/,=-> _\n#\rgroutp"


def rules_of(spec: str, engine: str) -> tuple[Fabric, FabricRules]:
    """Return a fabric and its rules."""
    fabric = load(spec)
    return fabric, compile_rules(make_plan(fabric, engine))


@pytest.mark.parametrize(("spec", "engine"), PLANS)
def test_all_that_is_written_is_read(spec: str, engine: str) -> None:
    _, rules = rules_of(spec, engine)
    for held in rules.values():
        flows, groups = write(held)
        switch = Switch.written(flows, groups)
        assert switch.equals(held.parsed)
        lines = flows.splitlines(keepends=True)
        assert switch.equals(Switch.written("".join(reversed(lines)), groups))
        assert not switch.equals(Switch.written("".join(lines[1:]), groups))


def damaged(text: str, rng: random.Random) -> str:
    """Return a text in which something was replaced, removed, added, or moved."""
    start = rng.randrange(len(text))
    end = min(len(text), start + rng.choice([0, 1, 1, 2, 8]))
    lines = text.splitlines(keepends=True)
    match rng.randrange(5):
        case 0:
            return text[:start] + rng.choice(ALPHABET) + text[start + 1 :]
        case 1:
            return text[:start] + text[end:]
        case 2:
            return text[:start] + rng.choice(ALPHABET) + text[start:]
        case 3:
            lines[rng.randrange(len(lines))] = rng.choice(lines)
            return "".join(lines)
        case _:
            parts = rng.choice(lines).replace(" ", ",").split(",")
            return text.replace(rng.choice(parts), rng.choice(parts), 1)


@pytest.mark.parametrize(("spec", "engine"), PLANS)
def test_damaged_text_is_refused_or_read_alike(spec: str, engine: str) -> None:
    ((_, rng),) = seeded([1])
    _, rules = rules_of(spec, engine)
    texts = [write(held) for held in rules.values()]
    read = 0
    for _ in range(DAMAGED_TEXTS):
        flows, groups = rng.choice(texts)
        if groups and rng.random() < 0.3:
            groups = damaged(groups, rng)
        else:
            flows = damaged(flows, rng)
        try:
            held = parse(flows, groups)
        except RuleError as error:
            with pytest.raises(ValueError, match=re.escape(str(error))):
                Switch.written(flows, groups)
        else:
            assert parse(*write(held)) == held
            assert Switch.written(flows, groups).equals(held.parsed), (flows, groups)
            read += 1
    assert 0 < read < DAMAGED_TEXTS


@pytest.mark.parametrize(("to", "floods"), [("4294967291", True), ("ALL", True), ("4", False)])
def test_rules_that_send_to_all_ports_name_those_of_the_fabric(
    to: str, floods: bool, tmp_path: Path
) -> None:
    fabric = load("ring,3")
    write_dir(fabric, {}, tmp_path)
    text = f"priority=1 actions=output:{to}\n"
    (tmp_path / "s1.flows").write_text(text)
    assert Switch.written(text, "").floods == floods
    state = state_of_rules(*read_dir(tmp_path))
    assert len(state.dependencies) == 0
    _, written = read_dir(tmp_path)
    flooding = written["s1"].flooding((1, 2, 3)).rules[0].actions
    assert flooding == ((Output(1), Output(2), Output(3)) if floods else (Output(4),))


def test_a_damaged_line_of_a_file_is_found(tmp_path: Path) -> None:
    ((_, rng),) = seeded([2])
    fabric, rules = rules_of("torus,4,4", "dor")
    write_dir(fabric, rules, tmp_path)
    assert verdict_of(state_of_rules(*read_dir(tmp_path))).ok
    for _ in range(12):
        file = tmp_path / f"{rng.choice(fabric.switches).name}.flows"
        intact = file.read_text()
        lines = intact.splitlines(keepends=True)
        used = [i for i, line in enumerate(lines) if "table=1,priority=200" in line]
        lines[rng.choice(used)] = ""
        file.write_text("".join(lines))
        _, held = read_dir(tmp_path)
        again = dict(held)
        assert list(again) == [switch.name for switch in fabric.switches]
        verdict = verdict_of(state_of_rules(fabric, held))
        assert not verdict.ok
        assert verdict == verdict_of(state_of_rules(fabric, again))
        file.write_text(intact)


def test_an_invalid_line_of_a_file_is_named(tmp_path: Path) -> None:
    write_dir(*rules_of("ring,4", "updown"), tmp_path)
    file = tmp_path / "s2.flows"
    file.write_text(file.read_text() + "table=300 actions=drop\n")
    with pytest.raises(RuleError, match="s2: flow line .*above the maximum"):
        read_dir(tmp_path)


def test_rules_that_have_changed_since_they_were_read_are_not_mixed_with_others(
    tmp_path: Path,
) -> None:
    fabric, rules = rules_of("ring,4", "updown")
    write_dir(fabric, rules, tmp_path)
    _, written = read_dir(tmp_path)
    assert written["s1"] == rules["s1"]
    file = tmp_path / "s2.flows"
    file.write_text(file.read_text() + "priority=7 actions=drop\n")
    with pytest.raises(RuleError, match="s2: the rules have changed since they were read"):
        written["s2"]
