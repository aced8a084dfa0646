"""Whole controllers in simulated time: equal runs, seeds that must pass, and planted faults."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable

import pytest

from knotless.forwarding.openflow.compiler import compile_rules
from knotless.routing.plan import make_plan
from knotless.topologies import load
from tests.seeded.aimed import Run
from tests.seeded.faults import KINDS, Fault, drawn, faults_from, faults_to
from tests.seeded.judge import EVERYBODY, Explorer, State
from tests.seeded.known import FIRST_KINDS, LATER_KINDS
from tests.seeded.planted import PLANTED, found
from tests.seeded.run import FAULTS_S, run
from tests.seeded.switch import forwarding_of
from tests.seeded.world import Setting, World
from tests.support import REPOSITORY


def _in_a_process(*words: str, hashseed: str = "0") -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own: nothing that earlier tests have left is there."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", *words],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONHASHSEED": hashseed, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )


def _assert_all_is_well(*words: str) -> None:
    done = _in_a_process("-m", "tests.seeded", *words)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"


def test_equal_seeds_give_equal_runs_in_every_process() -> None:
    code = (
        "from tests.seeded.run import run\nfrom tests.seeded.world import Setting\n"
        "for _ in range(2): print(run(Setting(5), seconds=12).digest)"
    )
    printed = [_in_a_process("-c", code, hashseed=seed).stdout for seed in ("0", "1")]
    digests = "".join(printed).split()
    assert digests == digests[:1] * 4


@pytest.mark.deep
def test_links_that_return_are_counted_in_one_order() -> None:
    """What is kept of their losses came in the order of a set, which differs between these two."""
    code = (
        "from tests.seeded.run import run\nfrom tests.seeded.world import Setting\n"
        "print(run(Setting(9000)).digest)"
    )
    one, other = (_in_a_process("-c", code, hashseed=seed).stdout for seed in ("1", "3"))
    assert one == other != ""


@pytest.mark.deep
def test_other_seeds_give_other_runs() -> None:
    assert run(Setting(5), [], seconds=4).digest != run(Setting(6), [], seconds=4).digest


def test_faults_are_drawn_one_by_one_and_can_be_written() -> None:
    with World(Setting(5)).running() as world:
        faults = drawn(world, tuple(KINDS), 40)
    assert len({fault.kind for fault in faults}) > 5
    assert faults_from(faults_to(faults)) == faults


FORMER, LATER = f" --kinds {FIRST_KINDS}", f" --kinds {LATER_KINDS}"
KEPT = {
    "a link that may carry frames is changed in place": "--seed 7 --kinds silent,cut,stall",
    "a switch takes its rules one by one when it connects": "--seed 101 --kinds cut,disconnect",
    "what links lost before the start is waited for": "--seed 102 --kinds cut,restart,kill",
    "no steps lead from rules that lose broadcasts": "--seed 603 --fabric mesh,3,3" + FORMER,
    "a batch that loses packets by itself is a step": "--seed 614 --fabric mesh,3,3" + FORMER,
    "what older rules lose excuses that newer ones do": "--seed 706" + FORMER,
    "a step sends more broadcasts to a failed link": "--seed 1011 --emulator" + FORMER,
    "probes on their way from a switch show cables of another": "--seed 1795745324098" + LATER,
    "what was read of another switch for a takeover is written to the right one": (
        "--seed 1795754489023 --fabric torus,3,3 --controllers 2 --emulator"
        " --options 'flow_control: pfc'" + LATER + ",state-damaged,state-unwritable"
    ),
    "frames on their way to a switch that is not read count as lost": (
        "--seed 52 --kinds slow-frames,restart,restart-with-rules,flap"
    ),
    "counters that another reading has overtaken count from zero again": "--seed 18",
    "a connection that has ended takes the next for another switch": (
        "--seed 1795752282074 --fabric torus,3,3" + LATER
    ),
    "what was read of another switch replaces what the right one is known to hold": (
        "--seed 2 --options 'settle_s: 0' --events tests/seeded/impersonated.json"
    ),
    "a reload takes away a link that works, as others that work count as failed": (
        "--seed 334 --emulator --events tests/seeded/reloaded.json"
    ),
    "rules that a switch has not confirmed excuse what those before them do not lose": (
        "--seed 1796128919005 --fabric torus,3,3 --options 'flow_control: pfc' --emulator"
        " --events tests/seeded/unconfirmed.json"
    ),
}
"""Faults that were found, of the controller or of its proofs: a run that fails with each again."""


@pytest.mark.thin(1)
@pytest.mark.parametrize("options", KEPT.values(), ids=KEPT.keys())
def test_what_was_found_stays_mended(options: str) -> None:
    _assert_all_is_well(*shlex.split(options))


@pytest.mark.deep
@pytest.mark.parametrize(
    "options",
    [
        "--seed 317 --runs 12",
        "--seed 317 --runs 8 --with-ryu",
        "--seed 330 --runs 4 --emulator",
        "--seed 340 --runs 6 --controllers 2",
        "--seed 2 --runs 2 --fabric torus,3,3",
        "--seed 1 --runs 2 --fabric fattree2,4,hosts=1 --emulator --options 'multipath: ecmp'",
        "--seed 1 --runs 2 --fabric hyperx,S=3x3,hosts=1 --emulator"
        " --options 'engine: updown\nmultipath: ecmp'",
    ],
)
def test_nothing_is_violated(options: str) -> None:
    _assert_all_is_well(*shlex.split(options))


@pytest.mark.thin(1)
@pytest.mark.parametrize("name", sorted(PLANTED))
def test_a_planted_fault_is_found(name: str) -> None:
    number, violation = found(name, range(1, 13))
    assert violation is not None, f"{number} seeds"


@pytest.mark.deep
@pytest.mark.parametrize(
    "aimed", dict.fromkeys(each.aimed for each in PLANTED.values() if each.aimed)
)
def test_an_aimed_run_violates_nothing_without_a_fault(aimed: Callable[[int], Run]) -> None:
    setting, faults = aimed(1)
    result = run(setting, faults, seconds=max(FAULTS_S, *(each.at_s + 10 for each in faults)))
    assert not result.violations, "\n".join(map(str, result.violations))


@pytest.mark.parametrize(("spec", "engine"), [("ring,4", "dor"), ("torus,3,3", "updown")])
def test_the_judge_delivers_what_a_plan_delivers(spec: str, engine: str) -> None:
    fabric = load(spec)
    plan = make_plan(fabric, engine)
    rules = compile_rules(plan)
    held = {name: forwarding_of(switch) for name, switch in rules.items()}
    state = State(1, "plan", 0.0, held, frozenset())
    outcome = Explorer(fabric, shares_buffer=True).outcome([state])
    names = [host.name for host in fabric.hosts]
    pairs = {(a, b) for a in names for b in names if a != b}
    assert outcome.delivered == pairs | {(a, f"{EVERYBODY}: {b}") for a, b in pairs}
    assert not outcome.dropped
    assert not outcome.cut
    assert not outcome.wrong
    assert outcome.cycle() == ()


def test_the_judge_sees_a_cycle() -> None:
    fabric = load("ring,4")
    plan = make_plan(fabric, "minimal")
    held = {name: forwarding_of(switch) for name, switch in compile_rules(plan).items()}
    state = State(1, "plan", 0.0, held, frozenset())
    assert len(Explorer(fabric, shares_buffer=True).outcome([state]).cycle()) == 4


@pytest.mark.parametrize("controllers", [1, 2])
def test_the_first_repair_is_timed_from_its_failure_and_not_from_the_start(
    controllers: int,
) -> None:
    cut = Fault(12.0, "cut", ("s1:2-s2:3",), 5.0)
    result = run(Setting(1, controllers=controllers), [cut], seconds=20)
    taken = [re.search(r"repaired, .* rules changed in (\S+) s$", line) for line in result.lines]
    assert [float(found[1]) < 1 for found in taken if found] == [True]
