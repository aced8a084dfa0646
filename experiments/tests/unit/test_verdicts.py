"""Figures are judged by their effect against the paper's, with 95 % intervals."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from math import isclose

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from experiments.tests.support.experiment_rows import rows_of
from knotless.results import stored
from knotless.results.spread import half_width_95, spread_of
from knotless.results.stored import FOLDER, Stored
from knotless_experiments.framework.experiment import SIMULATION, Common, load
from knotless_experiments.reproduction import one_value, page
from knotless_experiments.reproduction.claim import FITTED, Claim
from knotless_experiments.reproduction.claims import claims
from knotless_experiments.reproduction.headlines import judged, measured
from knotless_experiments.reproduction.rows import condition, is_random, rows
from knotless_experiments.reproduction.verdicts import (
    DATE,
    DIRECTION,
    NOT_ATTEMPTED,
    NOT_REPRODUCED,
    REPRODUCED,
    SHARE,
    effect,
    verdict,
    verdict_before,
)

KNOWN = stored.read(FOLDER)
RATIOS = st.floats(0.01, 10, allow_nan=False)


def claim(theirs: float | str, *, is_effect: bool = True, mark: str = "", digits: int = 2) -> Claim:
    return Claim(
        "000", "", "", theirs, "traffic", lambda _: None, digits=digits, mark=mark, effect=is_effect
    )


def says(theirs: float, *ours: float, is_effect: bool = True) -> str:
    return verdict(claim(theirs, is_effect=is_effect), spread_of(ours))


@pytest.mark.parametrize(
    ("theirs", "ours", "expected"),
    [
        (1.51, [1.45], REPRODUCED),
        (1.51, [1.13], DIRECTION),
        (1.51, [1.01], NOT_REPRODUCED),
        (0.82, [0.97], DIRECTION),
        (1.06, [0.99], NOT_REPRODUCED),
        # No effect at all is within a tenth of a small one, and does not reproduce it.
        (0.948, [1.0], NOT_REPRODUCED),
        (1.024, [1.0], NOT_REPRODUCED),
        (1.15, [1.09], DIRECTION),
        (0.948, [0.928], DIRECTION),
        # The paper shows no effect.
        (1.001, [1.01], REPRODUCED),
        (1.001, [1.05], NOT_REPRODUCED),
        # The interval counts, not its middle.
        (1.5, [1.49, 1.5, 1.51], REPRODUCED),
        (1.5, [1.3, 1.5, 1.7], DIRECTION),
        (1.5, [0.6, 1.5, 2.4], NOT_REPRODUCED),
        (1.001, [0.9, 1.0, 1.1], NOT_REPRODUCED),
    ],
)
def test_ratios_are_judged_by_their_effect(theirs: float, ours: list[float], expected: str) -> None:
    assert says(theirs, *ours) == expected


@pytest.mark.parametrize(
    ("theirs", "ours", "expected"),
    [
        (9.1, [13.7], NOT_REPRODUCED),
        (0.108, [0.1078], REPRODUCED),
        (16, [16], REPRODUCED),
        (0.0, [0.004], REPRODUCED),
        (0.07, [0.0], NOT_REPRODUCED),
        (10.0, [8.0, 10.0, 12.0], NOT_REPRODUCED),
    ],
)
def test_other_figures_must_be_near(theirs: float, ours: list[float], expected: str) -> None:
    assert says(theirs, *ours, is_effect=False) == expected


def test_a_figure_that_was_chosen_is_not_reproduced() -> None:
    assert verdict(claim(1.5), None) == NOT_ATTEMPTED
    assert verdict(claim(0.9, mark=FITTED), spread_of([0.9])) == FITTED
    assert verdict(claim("words"), spread_of([0.9])) == ""


def test_words_are_judged_by_their_limits_and_the_whole_interval() -> None:
    slower = replace(claim("slower"), agrees=lambda _low, high: high < 1)
    assert verdict(slower, spread_of([0.9])) == REPRODUCED
    assert verdict(slower, spread_of([0.9, 0.9])) == REPRODUCED
    assert verdict(slower, spread_of([0.8, 1.0])) == NOT_REPRODUCED


@given(RATIOS, RATIOS)
def test_an_effect_is_the_papers_times_its_part(theirs: float, ours: float) -> None:
    assume(abs(theirs - 1) >= 0.01)
    part = effect(claim(theirs), spread_of([ours]))
    assert part is not None
    assert isclose(1 - ours, part.mean * (1 - theirs), abs_tol=1e-9)
    if says(theirs, ours) == REPRODUCED:
        assert abs((1 - ours) - (1 - theirs)) <= SHARE * abs(1 - theirs) + 1e-9
    assert says(theirs, 1.0) == NOT_REPRODUCED
    assert says(theirs, theirs) == REPRODUCED


@given(RATIOS, st.lists(RATIOS, min_size=2, max_size=6))
def test_repeats_only_make_the_rule_stricter(theirs: float, repeats: list[float]) -> None:
    middle = sum(repeats) / len(repeats)
    order = [NOT_REPRODUCED, DIRECTION, REPRODUCED]
    assert order.index(says(theirs, *repeats)) <= order.index(says(theirs, middle))
    width = half_width_95(repeats)
    assert width is not None
    assert width >= 0


def test_an_effect_that_is_twice_the_papers_is_another_one() -> None:
    assert says(0.9, 0.81) == DIRECTION
    assert says(0.9, 0.79) == NOT_REPRODUCED
    assert says(0.975, 0.0) == NOT_REPRODUCED
    assert verdict_before(claim(0.975), spread_of([0.0])) == DIRECTION
    assert verdict_before(claim(1.5), spread_of([0.9])) == NOT_REPRODUCED
    assert verdict_before(claim(1.5), spread_of([1.5])) == REPRODUCED


def test_the_page_names_every_verdict_that_the_rule_has_changed() -> None:
    text = "\n".join(page.changed_page(KNOWN))
    assert DATE in text
    assert DATE in "\n".join(page.overview(KNOWN))
    judgements = [(one, judged(measured(KNOWN, one))) for one in claims()]
    changed = [
        one.what
        for one, spread in judgements
        if verdict(one, spread) != verdict_before(one, spread)
    ]
    assert len(changed) > 10
    assert all(what in text for what in changed)
    assert text.count("\n| [") == len(changed)


def test_every_printed_figure_has_a_verdict_in_the_table() -> None:
    lines = list(csv.DictReader(io.StringIO(page.table(KNOWN))))
    assert len(lines) == len(claims())
    for line, each in zip(lines, claims(), strict=True):
        assert bool(line["verdict"]) == (
            not isinstance(each.theirs, str)
            or each.agrees is not None
            or not any(line[f"{on}_mean"] for on in ("emulation", "simulation", "analysis"))
            or each.mark == FITTED
        )
        if line["effect"]:
            assert each.effect
            assert float(line["effect_low"]) <= float(line["effect"]) <= float(line["effect_high"])


LINKS = {"rate_mbps": 1000.0, "duration_s": 0.005}
INDEPENDENT = [
    ("traffic", LINKS, {"part": "open-loop", "fabric": ("torus,4,4",), "delay": 1.0}),
    (
        *("traffic", LINKS),
        {"part": "acknowledged", "fabric": ("irregular-a",), "engine": "dl:2", "delay": 1.0},
    ),
    ("hops", LINKS, {"delay": 1.0}),
    ("all-to-all", {"rate_mbps": 1000.0}, {"configuration": "S2", "datagrams": 16, "delay": 1.0}),
]
"""Experiments whose simulated runs are stored with one seed, and small cases of them."""


@pytest.mark.thin(2)
@pytest.mark.parametrize(("name", "common", "options"), INDEPENDENT)
def test_simulations_that_are_stored_with_one_seed_do_not_depend_on_it(
    name: str, common: dict[str, float], options: dict[str, object]
) -> None:
    one, other = (
        rows_of(load(name), Common(on=SIMULATION, seed=seed, **common), **options)  # type: ignore[arg-type]
        for seed in (1, 7)
    )
    assert one
    assert one == other


@pytest.mark.parametrize("name", ["deadlock", "barrier", "nas"])
def test_simulations_that_depend_on_the_seed_are_stored_with_several(name: str) -> None:
    seeds: dict[object, set[int]] = {}
    for each in KNOWN.runs:
        for row in rows(Stored([each]), name, SIMULATION):
            if is_random(row):
                seeds.setdefault(condition(row, ()), set()).add(each["seed"])
    assert len(seeds) > 10
    assert min(map(len, seeds.values())) >= 10


def test_runs_that_were_made_again_have_equal_rows_in_spite_of_their_seed() -> None:
    known = {run["id"]: run for run in KNOWN.runs}
    again = one_value.again()
    for each in again:
        like = known[each["like"]]
        assert one_value.nothing_is_random(like)
        assert one_value.hash_of(like) == each["sha256"]
        assert like["seed"] != each["seed"]
    assert len(again) > 10


def test_a_figure_is_one_value_for_a_reason() -> None:
    for each in claims():
        spread, why = judged(measured(KNOWN, each)), one_value.reason(KNOWN, each)
        if why is None:
            assert spread is None or spread.half_width is not None
        elif spread is not None and spread.half_width:  # the spread of cases, not of repeats
            assert why in (one_value.COUNTED, one_value.SAME)
        # What one run alone could decide was measured again.
        assert why not in (one_value.ONCE, one_value.ALONE)
    assert {one_value.reason(KNOWN, each) for each in claims()} > {None, one_value.SAME}
