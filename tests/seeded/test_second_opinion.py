"""The tracer of the proofs' tests, asked about what the judge of seeded runs finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.seeded.judge import Channel, Explorer, Outcome
from tests.seeded.run import Result, run
from tests.seeded.world import Setting, World


def _delivered(outcome: Outcome) -> None:
    outcome.delivered.discard(("h1", "h2"))


def _everybody(outcome: Outcome) -> None:
    outcome.delivered.discard(("h1", "all: h3"))


def _waits(outcome: Outcome) -> None:
    first: Channel = ("s1", 2, 0)
    outcome.waits.setdefault(first, {})[first] = None


def _a_run() -> Result:
    return run(Setting(1), [], seconds=5.0)


@pytest.mark.thin(1)
@pytest.mark.parametrize(
    ("change", "text"),
    [
        (_delivered, "h1 -> h2: [('h2',)]"),
        (_everybody, "broadcasts of h1: ['h2', 'h3', 'h4'] and not ['h2', 'h4']"),
        (_waits, "a cycle: False"),
    ],
)
def test_a_judge_that_is_wrong_is_contradicted(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[Outcome], None], text: str
) -> None:
    right = Explorer._explore

    def wrong(*arguments: object) -> Outcome:
        outcome = right(*arguments)  # type: ignore[arg-type]
        change(outcome)
        return outcome

    assert _a_run().violations == []
    monkeypatch.setattr(Explorer, "_explore", wrong)
    opinions = [each.text for each in _a_run().violations if each.kind == "opinions"]
    assert any(text in each for each in opinions), opinions


def test_a_wait_that_no_mixture_has_is_contradicted(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Explorer.outcome

    def wrong(self: Explorer, states: object, since: object = None) -> Outcome:
        outcome = right(self, states, since)  # type: ignore[arg-type]
        if since is None:
            return outcome
        return Outcome(waits={**outcome.waits, ("s1", 2, 0): {("s3", 2, 0): None}})

    monkeypatch.setattr(Explorer, "outcome", wrong)
    opinions = [each.text for each in _a_run().violations if each.kind == "opinions"]
    assert any("does not find ('s1', 2, 0) -> ('s3', 2, 0)" in each for each in opinions), opinions


def test_what_others_have_changed_and_is_put_right_is_delivered() -> None:
    """Nobody is blamed for it until an update has ended, but frames take the rules there are."""
    world = World(Setting(1))
    with world.running():
        world.hub.sleep_outside(4.0)
        first = world.switches["s1"]
        rules = first.contents.copy()
        first.is_touched = True
        assert world.judge.undelivered() == set()
        first.hold(replace(rules, flows={}), "others")
        assert ("h1", "h2") in world.judge.undelivered()
        first.hold(rules, "others")
        assert world.judge.undelivered() == set()
