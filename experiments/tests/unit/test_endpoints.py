"""The endpoints experiment: which hosts freeze a fabric that is safe, and what counts as frozen."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from experiments.tests.support.experiment_rows import rows_of
from knotless.verification.endpoint_waits import EndpointWaits
from knotless_experiments.framework.experiment import SIMULATION, Common, ExperimentError
from knotless_experiments.studies.endpoints import EXPERIMENT, cases, presentation
from knotless_experiments.studies.endpoints.measure import Look, frozen_cycle, still_since

QUICK = Common(on=SIMULATION, quick=True)
TWO_PRIORITIES = "classes: {request: {sends_before_taking: [reply]}, reply: {priority: 1}}\n"


def test_only_hosts_without_a_reserve_or_a_channel_for_replies_freeze() -> None:
    rows = rows_of(EXPERIMENT, QUICK)
    assert [(row["safe"], row["deadlock"]) for row in rows] == [
        (True, False),
        (True, False),
        (False, True),
        (False, True),
        (True, False),
    ]
    assert all(row["valid"] and min(row["requests"]) > 0 for row in rows)
    case = cases.cases(QUICK, "request-reply")[0]
    waits = EndpointWaits(case.scenario.forwarding, case.endpoints)
    steps = {(waits.name_of(a), waits.name_of(b)) for a, b in waits.edges.tolist()}
    knot = rows[2]["cycle"]
    assert {*pairwise([*knot, knot[0]])} <= steps
    lines = presentation.present({"rows": rows}, [], True).sentences
    assert "sink: called safe; did not freeze in 4 s" in lines[0]
    assert "request-reply: called able to deadlock; froze within" in lines[2]
    assert " ".join(knot) in lines[2]
    assert "replies-apart: called safe; did not freeze in 4 s" in lines[4]
    assert "FROZE" in [*presentation.sentences([rows[2] | {"safe": True}])][-1]


def test_a_cycle_is_one_of_channels_that_were_paused_all_the_time() -> None:
    case = cases.cases(QUICK, "request-reply")[0]
    waits = EndpointWaits(case.scenario.forwarding, case.endpoints)
    first = Look(0, 5, 9, {})
    last = replace(first, at_us=1000, paused_us=dict.fromkeys(case.verdict.blocked, 999))
    cycle = frozen_cycle(waits, first, last)
    assert sorted(cycle) == sorted(case.verdict.blocked)
    assert any(not name.startswith("s") for name in cycle), "that of a host is one of them"
    one = case.verdict.blocked[0]
    assert frozen_cycle(waits, first, replace(last, paused_us={**last.paused_us, one: 900})) == []


@pytest.mark.parametrize(
    ("looks", "since_us"),
    [
        ([(0, 0, 0), (7, 4, 2), (9, 5, 2), (1_000_009, 5, 2)], 9),
        ([(0, 0, 0), (7, 4, 2), (9, 5, 2), (1_000_008, 5, 2)], None),
        ([(0, 0, 0), (7, 4, 2), (1_000_009, 4, 0)], None),
    ],
)
def test_a_fabric_is_frozen_if_frames_in_it_do_not_move(
    looks: list[tuple[int, int, int]], since_us: int | None
) -> None:
    first = still_since([Look(*look, {}) for look in looks])
    assert (None if first is None else first.at_us) == since_us


def test_messages_of_several_priorities_are_refused(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(TWO_PRIORITIES)
    with pytest.raises(ExperimentError, match="messages of several priorities"):
        EXPERIMENT.prepare(QUICK, {"endpoints": str(own)})
