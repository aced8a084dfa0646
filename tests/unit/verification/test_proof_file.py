"""Proof files: their form, their ranks, the frames of a cycle, and what is refused."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from knotless.base.errors import ProofError
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.directory import dir_files
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.forwarding.openflow.rules import (
    CONTROLLER,
    FabricRules,
    Field,
    Group,
    Output,
    Rule,
    SwitchRules,
    ToGroup,
)
from knotless.routing.plan import make_plan
from knotless.topologies import Fabric, load
from knotless.verification.check import verdict_of
from knotless.verification.dependencies import longest_chain
from knotless.verification.proof_file import flow_control_lines, proof_text, ranks
from tests.support.proofs import BUILT, judge, write_rules

ADDRESS = r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}"
CUBE = rf"{ADDRESS}/{ADDRESS}"
QUEUE = r"s\d+:\d+/[0-7]"
SAFE = re.compile(
    r"knotless-proof 3\nflow-control (?:pause|pfc|credits)\n"
    r"(?:tags any\nsources any\n)?"
    r"(?:file [\w.]+ [0-9a-f]{64}\n)+claim safe\nbound \d+\n"
    rf"(?:rank {QUEUE} \d+\n)*(?:class {CUBE}(?: but(?: {CUBE})+)?\n)+"
)
CYCLE = re.compile(
    r"knotless-proof 3\nflow-control (?:pause|pfc|credits)\n"
    r"(?:file [\w.]+ [0-9a-f]{64}\n)+claim cycle\n"
    rf"(?:wait {QUEUE} {QUEUE} h\d+ {ADDRESS} {ADDRESS}\nvia h\d+(?: s\d+:\d+)+\n)+"
)
CYCLIC: tuple[str, str, Mapping[str, Any]] = ("ring,4", "dor", {"vcs": 1, "select": "low-port"})


def proof_of(
    spec: str, engine: str, choices: Mapping[str, Any] = MappingProxyType({}), control: str = "auto"
) -> tuple[str, dict[str, bytes]]:
    plan = make_plan(load(spec), engine, **choices)
    return proof_of_rules(plan.fabric, compile_rules(plan), control)


def proof_of_rules(
    fabric: Fabric, rules: FabricRules, control: str = "auto"
) -> tuple[str, dict[str, bytes]]:
    files = {name: text.encode() for name, text in dir_files(fabric, rules).items()}
    state = state_of_rules(fabric, rules)
    return proof_text(files, state, rules, verdict_of(state, control)), files


@pytest.mark.parametrize(
    ("spec", "engine", "control"),
    [
        ("ring,4", "updown", "pause"),
        ("torus,5,5", "dor", "pfc"),
        ("fattree3,4", "fattree", "credits"),
    ],
)
def test_a_safe_fabric_has_ranks_and_classes(spec: str, engine: str, control: str) -> None:
    text, files = proof_of(spec, engine, control=control)
    assert SAFE.fullmatch(text)
    assert text.splitlines()[1] == f"flow-control {control}"
    named = [line.split()[1:] for line in text.splitlines() if line.startswith("file ")]
    assert named == [
        [name, hashlib.sha256(content).hexdigest()] for name, content in sorted(files.items())
    ]
    assert proof_of(spec, engine, control=control)[0] == text


def test_a_cyclic_fabric_has_a_frame_for_each_wait_of_a_cycle() -> None:
    text, _ = proof_of(*CYCLIC)
    assert CYCLE.fullmatch(text)
    assert text.splitlines()[-8:-4] == [
        "wait s1:2/0 s2:2/0 h1 02:00:00:00:03:01 02:00:00:00:01:01",
        "via h1 s1:2 s2:2",
        "wait s2:2/0 s3:2/0 h2 02:00:00:00:04:01 02:00:00:00:02:01",
        "via h2 s2:2 s3:2",
    ]


@pytest.mark.parametrize(
    ("spec", "engine", "choices", "control"),
    [
        (*CYCLIC, "pfc"),
        ("torus,5,5", "dor", {"vcs": 1}, "pause"),
        ("slimfly,5", "sbp", {}, "pause"),
        ("random,16,degree=3,seed=2", "dfsssp", {}, "pause"),
    ],
)
def test_each_frame_of_a_cycle_comes_by_connected_channels_to_its_wait(
    spec: str, engine: str, choices: Mapping[str, Any], control: str
) -> None:
    text, _ = proof_of(spec, engine, choices, control)
    fabric = load(spec)
    lines = text[text.index("claim cycle\n") :].splitlines()[1:]
    waits = [line.split()[1:] for line in lines[::2]]
    for (_, requests, *_), (holds, *_) in pairwise([*waits, waits[0]]):
        assert requests == holds
    for (holds, requests, sender, *_), via in zip(waits, lines[1::2], strict=True):
        _, host, *ends = via.split()
        assert host == sender
        assert [f"{end}/" for end in ends[-2:]] == [
            name.removesuffix(name.rpartition("/")[2]) for name in (holds, requests)
        ]
        place = fabric.hosts[fabric.host_index[host]].switch
        for switch, port in (end.split(":") for end in ends):
            assert switch == place
            place, _ = fabric.neighbours[switch][int(port)]


@pytest.mark.seeds(100, gate=20)
def test_ranks_rise_along_each_edge_and_are_no_higher_than_the_longest_chain(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable
    nodes = rng.sample(range(1000), rng.randint(2, 40))
    pairs = [sorted(rng.sample(range(len(nodes)), 2)) for _ in range(rng.randint(1, 120))]
    edges = np.array([[nodes[a], nodes[b]] for a, b in pairs], dtype=np.int64)
    numbers, rank = ranks(edges)
    rank_of = dict(zip(numbers.tolist(), rank.tolist(), strict=True))
    assert set(rank_of) == {*edges.ravel().tolist()}
    assert all(rank_of[a] < rank_of[b] for a, b in edges.tolist())
    assert max(rank_of.values()) == longest_chain(edges)


def test_priorities_that_share_a_queue_are_named() -> None:
    assert [*flow_control_lines("pause", [0] * 8)] == ["flow-control pause"]
    assert [*flow_control_lines("pfc", range(8))] == ["flow-control pfc"]
    shared = [*flow_control_lines("pfc", [0, 1, 1, 3, 4, 4, 4, 7])]
    assert shared == ["flow-control pfc", "group 1-2", "group 4-6"]
    with pytest.raises(ProofError, match="priorities 0 and 2 that share a queue"):
        list(flow_control_lines("pfc", [0, 1, 0, 3, 4, 5, 6, 7]))


RING = make_plan(load("ring,4"), "updown")
RULES = compile_rules(RING)


def with_rule(rule: Rule, *groups: Group) -> FabricRules:
    """Return the rules of a ring, with one more in s2."""
    rows = tuple(sorted((*RULES["s2"].rules, rule), key=lambda each: each.order))
    return {**RULES, "s2": SwitchRules(rows, (*RULES["s2"].groups, *groups))}


UNUSED = Field("eth_dst", 0x0200_0000_7701)


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (with_rule(Rule(1, 9, (Field("in_phy_port", 2), UNUSED))), "matches of in_phy_port"),
        (with_rule(Rule(1, 9, (UNUSED,), (Output(CONTROLLER),))), "the action CONTROLLER"),
        (with_rule(Rule(1, 9, (Field("metadata", 1 << 62),))), "the match metadata="),
    ],
)
def test_what_the_specification_does_not_have_is_named(rules: FabricRules, said: str) -> None:
    with pytest.raises(ProofError) as raised:
        proof_of_rules(RING.fabric, rules)
    assert str(raised.value).startswith(f"proofs do not cover {said}")
    assert str(raised.value).endswith(", which s2 has")


@BUILT
def test_frames_that_switches_choose_for_are_covered(tmp_path: Path) -> None:
    """What s2 sends to the host of s4 goes on around the ring, or is dropped."""
    plan = make_plan(load("ring,4"), "dor", vcs=1, select="low-port")
    cyclic = compile_rules(plan)
    direct = Field("eth_dst", 0x0200_0000_0401)
    rules = {
        **cyclic,
        "s2": SwitchRules(
            tuple(
                sorted(
                    (*cyclic["s2"].rules, Rule(1, 999, (direct,), (ToGroup(9),))),
                    key=lambda rule: rule.order,
                )
            ),
            (*cyclic["s2"].groups, Group(9, ((), (Output(2),)), selects=True)),
        ),
    }
    text, files = proof_of_rules(plan.fabric, rules, "pause")
    assert CYCLE.fullmatch(text)
    assert b"type=select" in files["s2.groups"]
    folder = write_rules(tmp_path / "rules", {name: b.decode() for name, b in files.items()})
    assert judge(folder, text).replayed


def test_other_verdicts_have_no_proof() -> None:
    with pytest.raises(ProofError, match="do not cover no flow control, with which full buffers"):
        proof_of_rules(RING.fabric, RULES, "none")
    with pytest.raises(ProofError, match="PAUSE between switches, with which full buffers lose"):
        proof_of_rules(RING.fabric, RULES, "switch")
    with pytest.raises(ProofError, match="proofs need rules of all switches, and s3 has none"):
        proof_of_rules(RING.fabric, {name: RULES[name] for name in ("s1", "s2", "s4")})
    lossy = with_rule(Rule(1, 999, (Field("eth_dst", 0x0200_0000_0301),)))
    with pytest.raises(ProofError, match="says that all is delivered, and not all is"):
        proof_of_rules(RING.fabric, lossy)
