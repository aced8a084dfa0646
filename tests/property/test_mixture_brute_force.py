"""Mixtures of rules on hundreds of small fabrics, judged by the check and by a slow tracer."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.directory import write_dir
from knotless.forwarding.openflow.reader import Generation, state_of_generations
from knotless.forwarding.openflow.rules import FabricRules, SwitchRules
from knotless.forwarding.state import ForwardingState
from knotless.routing.graphs.channels import VCS_PER_CHANNEL
from knotless.routing.plan import make_plan
from knotless.topologies.fabric import Fabric
from knotless.verification.check import Verdict, check, verdict_of
from knotless.verification.dependencies import edges_of
from tests.support.random_fabrics import seeded, small_fabric
from tests.support.reference_rules import RuleReference

ENGINES = ("updown", "updown", "updown", "lturn", "rturn", "minimal", "dl", "lash", "prefix")


def _rules(fabric: Fabric, rng: random.Random) -> FabricRules:
    """Return the rules of a random engine; sometimes a few of them are missing."""
    engine = rng.choice(ENGINES)
    root = rng.choice(fabric.switches).name if engine == "updown" else None
    rules = dict(compile_rules(make_plan(fabric, engine, root=root)))
    if rng.random() < 0.3:
        name = rng.choice(fabric.switches).name
        held = list(rules[name].rules)
        held.pop(rng.randrange(len(held)))
        rules[name] = SwitchRules(tuple(held), rules[name].groups)
    return rules


def _generations(fabric: Fabric, rng: random.Random, count: int) -> list[FabricRules]:
    generations = [_rules(fabric, rng)]
    while len(generations) < count:
        new = _rules(fabric, rng)
        kept = {s.name for s in fabric.switches if rng.random() < 0.4}
        generations.append({n: generations[-1][n] if n in kept else new[n] for n in new})
    return generations


def _reference(
    fabric: Fabric, generations: list[FabricRules], folder: Path, lags: list[int]
) -> RuleReference:
    folders = [folder / str(number) for number in range(len(generations))]
    for rules, directory in zip(generations, folders, strict=True):
        write_dir(fabric, rules, directory)
    return RuleReference(*folders, lags=lags)


def _pairs(hosts: list[str], bits: bytes) -> set[tuple[str, str]]:
    """Return the pairs of a set of bits."""
    failing = int.from_bytes(bits, "little")
    every = ((source, receiver) for source in hosts for receiver in hosts)
    return {pair for number, pair in enumerate(every) if failing >> number & 1}


def _state(fabric: Fabric, generations: list[FabricRules], lags: list[int]) -> ForwardingState:
    """Return the mixture of generations behind which switches lag by so many."""
    lagging = [Generation(rules, lag=lag) for rules, lag in zip(generations, lags, strict=True)]
    return state_of_generations(fabric, lagging)


def _agree(
    fabric: Fabric, generations: list[FabricRules], folder: Path, lags: list[int] | None = None
) -> Verdict:
    """Compare the mixture's state with the slow tracer: failed pairs, copies, dependencies."""
    lags = lags or [1] * len(generations)
    reference = _reference(fabric, generations, folder, lags)
    state = _state(fabric, generations, lags)
    verdict = verdict_of(state, "pfc")
    hosts = [host.name for host in fabric.hosts]
    failed = {(hosts[a], hosts[b]) for a, b in state.core.failed}
    assert failed == reference.failed_pairs()
    assert len(failed) == verdict.undelivered
    pairs, receivers = (_pairs(hosts, bits) for bits in state.core.failing)
    assert pairs == failed
    wrong, loops = reference.wrong_receivers()
    assert receivers >= wrong
    if loops:
        assert verdict.broadcasts_undelivered > 0
    else:
        assert receivers == wrong
        assert verdict.broadcasts_undelivered == len(wrong)
    channels = state.channels
    number = {
        (channels.names[tail], port): place
        for place, (tail, port) in enumerate(
            zip(channels.tail.tolist(), channels.out_port.tolist(), strict=True)
        )
    }
    walked = {
        tuple(number[switch, port] * VCS_PER_CHANNEL + priority for switch, port, priority in edge)
        for edge in reference.edges
    }
    assert {tuple(edge) for edge in np.unique(edges_of(state), axis=0).tolist()} == walked
    assert verdict.acyclic != reference.has_cycle()
    return verdict


def _edges(fabric: Fabric, generations: list[FabricRules], lags: list[int]) -> set[tuple[int, int]]:
    """Return the dependencies of a mixture."""
    edges = edges_of(_state(fabric, generations, lags)).tolist()
    return {(held, wanted) for held, wanted in edges}


@pytest.mark.thin(2)
@pytest.mark.parametrize("block", range(8))
def test_two_generations(block: int, tmp_path: Path) -> None:
    good = 0
    for seed, rng in seeded(range(block * 40, block * 40 + 40)):
        fabric = small_fabric(rng)
        old, new = _generations(fabric, rng, 2)
        verdict = _agree(fabric, [old, new], tmp_path / str(seed))
        good += verdict.ok
        differ = [name for name in old if old[name] != new[name]][:5]
        for chosen in product((False, True), repeat=len(differ)):
            taken = {name for name, is_new in zip(differ, chosen, strict=True) if is_new}
            mixed = {name: (new if name in taken else old)[name] for name in old}
            each = check(fabric, mixed, flow_control="pfc")
            assert each.undelivered <= verdict.undelivered
            assert each.broadcasts_undelivered <= verdict.broadcasts_undelivered
            assert each.acyclic or not verdict.acyclic
    assert 0 < good < 40


@pytest.mark.thin(1)
@pytest.mark.parametrize("block", range(4))
def test_three_generations_with_barriers(block: int, tmp_path: Path) -> None:
    for seed, rng in seeded(range(1000 + block * 20, 1000 + block * 20 + 20)):
        fabric = small_fabric(rng, most_switches=4, most_hosts=4)
        _agree(fabric, _generations(fabric, rng, 3), tmp_path / str(seed))


@pytest.mark.thin(1)
@pytest.mark.parametrize("block", range(4))
def test_generations_that_are_sent_before_the_last_is_confirmed(block: int, tmp_path: Path) -> None:
    """A switch may hold any of the last three of four when it gets the third, or the last."""
    for seed, rng in seeded(range(2000 + block * 20, 2000 + block * 20 + 20)):
        fabric = small_fabric(rng, most_switches=4, most_hosts=4)
        generations = _generations(fabric, rng, 4)
        confirmed = _agree(fabric, generations, tmp_path / f"{seed}-1")
        lags = rng.choice(([1, 1, 1, 2], [1, 1, 2, 1], [1, 1, 2, 3], [1, 1, 2, 2]))
        lagging = _agree(fabric, generations, tmp_path / f"{seed}-2", lags)
        assert lagging.undelivered >= confirmed.undelivered
        assert confirmed.acyclic or not lagging.acyclic
        assert _edges(fabric, generations, lags) >= _edges(fabric, generations, [1] * 4)
