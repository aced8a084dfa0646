"""Whatever the names in files of others: one line of the commands of experiments too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knotless.cli.groups import OF_EXPERIMENTS
from tests.property.test_outside_text import one_case
from tests.support.hostile_names import NAMES, names

COMMANDS: dict[str, list[list[str]]] = {
    "sweep": [["SWEEP", "--out", "swept"], ["NAME"]],
    "report": [["RUN"], ["RUN", "RUN"], ["NAME"]],
    "run": [["NAME"], ["deadlock", "--on", "NAME"]],
    "reproduction": [["--stored", "NAME", "--out", "page.md"]],
}
"""Arguments of each command. In capitals: what the test makes, with the name."""
CASES = [(command, words) for command, lines in COMMANDS.items() for words in lines]


def test_no_command_is_forgotten() -> None:
    assert set(COMMANDS) == set(OF_EXPERIMENTS)


@pytest.mark.parametrize("case", range(len(CASES)), ids=[" ".join([a, *b]) for a, b in CASES])
def test_a_name_controls_no_terminal(case: int) -> None:
    for place in range(case, len(NAMES), len(CASES)):
        one_case(*CASES[case], NAMES[place], place * 7 + place // 3)


@pytest.mark.examples(0.1)
@given(st.sampled_from(CASES), names, st.integers(0, 999))
def test_any_name_controls_no_terminal(case: tuple[str, list[str]], name: str, place: int) -> None:
    one_case(*case, name, place)
