"""Verdicts with bubbles: rings are computed from routes, and each condition can be missed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from knotless.base.errors import KnotlessError
from knotless.cli.main import main
from knotless.forwarding.from_plan import state_of_plan
from knotless.forwarding.state import ForwardingState
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.traffic.endpoint_presets import endpoints_named
from knotless.verification.bubbles import AS_PROVEN, Bubbles, rings_of
from knotless.verification.check import verdict_of
from knotless.verification.checked_plan import CheckedPlan
from knotless.verification.dependencies import edges_of
from knotless.verification.endpoint_verdict import verdict_with_endpoints
from knotless.verification.verdict_parts import ACYCLIC, BUBBLE


def state_of(spec: str, engine: str = "dor", **options: Any) -> ForwardingState:
    return state_of_plan(make_plan(load(spec), engine, **{"vcs": 1, **options}))


@pytest.mark.parametrize(
    ("spec", "options", "lengths"),
    [
        ("ring,5", {}, [5, 5]),
        ("ring,8", {}, [8, 8]),
        ("torus,4,4", {"select": "low-port"}, [4] * 8),
        ("torus,5,5", {}, [5] * 20),
        ("torus,3,5,5", {}, [5] * 60),
    ],
)
def test_rings_and_tori_with_one_virtual_channel_are_safe_with_bubbles_alone(
    spec: str, options: dict[str, Any], lengths: list[int]
) -> None:
    state = state_of(spec, **options)
    rings, tangled = rings_of(edges_of(state))
    assert [len(ring) for ring in rings] == lengths
    assert not len(tangled)
    assert not verdict_of(state, "credits").safe
    verdict = verdict_of(state, "bubble")
    assert (verdict.safe, verdict.acyclic, verdict.theorem) == (True, False, BUBBLE)
    assert verdict.text == "cannot deadlock under credits with bubbles"
    named = "\n".join([*verdict.assumes, *verdict.notes])
    for needed in ("two longest frames", "queue of their own", "the longest frame", "starve"):
        assert needed in named


def test_without_a_cycle_nothing_is_assumed_of_bubbles() -> None:
    verdict = verdict_of(state_of("mesh,3,3"), "bubble")
    assert (verdict.safe, verdict.theorem, verdict.notes) == (True, ACYCLIC, [])
    assert not any("bubbles" in line for line in verdict.assumes)


@pytest.mark.parametrize(
    ("bubbles", "named"),
    [
        (Bubbles(entry_units=1), "a frame enters a ring with credit for 1, and can take its last"),
        (Bubbles(apart=False), "frames that enter a ring have no second queue"),
        (Bubbles(unit_bytes=64, frame_bytes=1522), "frames of 1522 bytes are longer than the unit"),
        (Bubbles(unit_bytes=1522, buffer_bytes=3043), "no room for two units of 1522"),
    ],
)
def test_each_planted_fault_is_named(bubbles: Bubbles, named: str) -> None:
    verdict = verdict_of(state_of("ring,4", select="low-port"), "bubble", bubbles)
    assert not verdict.safe
    assert verdict.cycle == verdict.blocked
    assert len(verdict.cycle) == len(verdict.witnesses) == 4
    assert [named in note for note in verdict.notes] == [True]


@pytest.mark.parametrize("engine", ["minimal", "dor"])
def test_cycles_that_are_no_rings_stay_unsafe(engine: str) -> None:
    """Minimal routes cross the rings of a torus in any order; a turn back closes another cycle."""
    state = state_of("torus,5,5", engine)
    edges = edges_of(state)
    if engine == "dor":
        (first, *_), (second, *_) = rings_of(edges).rings[:2]
        edges = np.concatenate([edges, [(first, second), (second, first)]])
    rings, tangled = rings_of(edges)
    assert len(tangled)
    assert len(rings) == (18 if engine == "dor" else 0)
    if engine == "minimal":
        verdict = verdict_of(state, "bubble")
        assert (verdict.safe, verdict.theorem) == (False, None)
        assert verdict.cycle == verdict.blocked
        assert "is in cycles that are no ring" in verdict.notes[0]


def test_edges_make_rings_only_if_each_waits_for_one_other_of_them() -> None:
    ring = [(16, 32), (32, 48), (48, 16)]
    outside = [(0, 16), (48, 64), (64, 80)]
    assert rings_of(np.array([*outside, *ring])).rings == [[16, 32, 48]]
    # A shortcut, a virtual channel that waits for itself, and one that leaves and comes back.
    for more in ([(16, 48)], [(32, 32)], [(48, 64), (64, 16)]):
        rings, tangled = rings_of(np.array(ring + more))
        assert rings == []
        assert set(map(tuple, tangled.tolist())) == {*ring, *more}
    assert rings_of(np.array([(16, 16)])).rings == []
    assert AS_PROVEN.faults == []


Buffers = tuple[tuple[int, ...], ...]
"""For each channel of a ring the frames in its buffer: how many channels each still takes."""


def all_states(length: int, most_hops: int, units: int, entry_units: int) -> tuple[int, int]:
    """Return how many states of a ring are reached, and in how many frames are that cannot move.

    Hosts send frames of one unit at any time, by up to ``most_hops`` channels of the ring.
    """
    waiting: list[Buffers] = [((),) * length]
    seen, deadlocked = {*waiting}, 0
    while waiting:
        buffers = waiting.pop()
        moved, begun = list[Buffers](), list[Buffers]()
        for number, frames in enumerate(buffers):
            after = (number + 1) % length
            if frames and (frames[0] == 0 or len(buffers[after]) < units):
                left = [*buffers]
                left[number] = frames[1:]
                if frames[0]:
                    left[after] = (*left[after], frames[0] - 1)
                moved.append(tuple(left))
            if len(frames) + entry_units <= units:
                for more in range(most_hops):
                    entered = (*frames, more)
                    begun.append((*buffers[:number], entered, *buffers[number + 1 :]))
        deadlocked += any(buffers) and not moved
        new = {*moved, *begun} - seen
        seen |= new
        waiting += new
    return len(seen), deadlocked


@pytest.mark.parametrize(
    ("length", "most_hops", "units"), [(3, 2, 2), (3, 2, 3), (4, 2, 2), (4, 3, 2)]
)
def test_no_state_of_a_ring_with_bubbles_is_a_deadlock(
    length: int, most_hops: int, units: int
) -> None:
    """All states are followed; without room for another frame some are deadlocks."""
    with_bubbles, none = all_states(length, most_hops, units, AS_PROVEN.entry_units)
    without, deadlocked = all_states(length, most_hops, units, entry_units=1)
    assert none == 0 < deadlocked
    assert 1 < with_bubbles < without


def test_what_knows_nothing_of_bubbles_refuses_them() -> None:
    protected = {"flow_control": "bubble", "protection": "fast-failover"}
    with pytest.raises(KnotlessError, match="bubbles and backup paths do not go together"):
        CheckedPlan(make_plan(load("ring,4"), "dor", **protected)).summary()
    with pytest.raises(KnotlessError, match="message classes of hosts do not go together"):
        verdict_with_endpoints(state_of("ring,4"), endpoints_named("rdma-read"), "bubble")


def test_commands_plan_and_check_with_bubbles(tmp_path: Path) -> None:
    routes = ["torus,5,5", "--engine", "dor", "--vcs", "1", "--flow-control", "bubble"]

    def answer(*words: str) -> str:
        done = CliRunner().invoke(main, [*words])
        assert done.exit_code == 0, done.output
        return done.output

    text = answer("plan", *routes)
    assert "cannot deadlock under credits with bubbles" in text
    assert "all cycles are rings" in text
    assert "20 rings of 5 virtual channels" in text
    values = json.loads(answer("plan", *routes, "--json"))
    assert (values["flow_control"], values["theorem"]) == ("bubble", BUBBLE)
    folder = str(tmp_path / "rules")
    answer("flows", *routes, "--out", folder)
    checked = answer("check", folder, "--flow-control", "bubble")
    assert "frames that enter a ring can starve" in checked
    proof = CliRunner().invoke(
        main, ["check", folder, "--flow-control", "bubble", "--proof", str(tmp_path / "proof")]
    )
    assert proof.exit_code == 2
    assert "bubbles and proofs do not go together" in proof.output
