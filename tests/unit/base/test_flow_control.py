"""Flow control: one list of choices, what auto means, which channels wait, old names."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np
import pytest

from knotless.base import deprecated_values, engine_name
from knotless.base import flow_control as names
from knotless.base.errors import PlanError
from knotless.base.flow_control import CHOICES, FLOW_CONTROLS, FlowControl
from knotless.results import results, stored
from knotless.routing.flow_control import resolved, waiting
from knotless.routing.request import PlanRequest
from knotless.verification.verdict_text import verdict_text

EDGES = [(16, 33), (17, 32)]
"""From channel 1 to channel 2, in priorities 0 and 1."""


def test_auto_is_pfc_where_there_are_several_virtual_channels() -> None:
    assert [resolved("auto", vcs) for vcs in (1, 2, 8)] == ["pause", "pfc", "pfc"]
    assert [resolved(name, 2) for name in FLOW_CONTROLS] == list(FLOW_CONTROLS)
    assert set(CHOICES) == {"auto", *FLOW_CONTROLS}
    with pytest.raises(PlanError, match="must be one of auto, none, .*, not 'some'"):
        resolved("some", 1)


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("none", set()),
        ("host", set()),
        ("switch", {(16, 32)}),
        ("pause", {(16, 32)}),
        ("pfc", {(16, 33), (17, 32)}),
    ],
)
def test_only_links_between_switches_that_pause_make_channels_wait(
    name: str, left: set[tuple[int, int]]
) -> None:
    flow_control = FlowControl(name)
    assert set(map(tuple, waiting(np.array(EDGES), flow_control).tolist())) == left
    assert flow_control.switch_links.pauses == bool(left)


def test_verdicts_name_their_flow_control() -> None:
    assert verdict_text(FlowControl.NONE, []) == "cannot deadlock without flow control"
    assert verdict_text(FlowControl.SWITCH, []) == "cannot deadlock under PAUSE between switches"
    ring = verdict_text(FlowControl.PAUSE, ["s1:2/0", "s2:2/0"])
    assert ring == "CAN DEADLOCK under PAUSE: s1:2/0 -> s2:2/0 -> s1:2/0"


def test_the_old_name_of_pause_is_accepted_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    deprecated_values._warn_once.cache_clear()
    with caplog.at_level(logging.WARNING, logger="knotless"):
        assert [names.accepted("all"), names.accepted("all"), names.accepted("pfc")] == [
            *("pause", "pause", "pfc")
        ]
    assert [record.getMessage() for record in caplog.records] == [
        "flow control 'all' is deprecated: write 'pause'"
    ]


def test_the_deprecated_engine_is_accepted_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    deprecated_values._warn_once.cache_clear()
    with caplog.at_level(logging.WARNING, logger="knotless"):
        assert PlanRequest.of(engine="native") == PlanRequest()
        assert PlanRequest.from_settings({"engine": "native"}).engine == engine_name.AUTO_ENGINE
    assert [record.getMessage() for record in caplog.records] == [
        "engine 'native' is deprecated: write 'auto'"
    ]


def test_stored_runs_are_read_with_the_current_names(tmp_path: Path) -> None:
    kinds = {"engine": "string", "flow_control": "string"}
    old = {"engine": "native", "flow_control": "all"}
    with results.Results("deadlock", {}, 1, {"row": "int64", **kinds}, tmp_path) as made:
        made.add({**old, "valid": True}, [{"row": 0, **old}])
    run, samples = results.read(made.directory)
    for row in (*run["rows"], *samples):
        assert (row["engine"], row["flow_control"]) == ("auto", "pause")
    file = tmp_path / "deadlock-emulation-1.json"
    stored_run = {**run, "id": "1", "rows": [{"flow_control": "all", "valid": True}]}
    file.write_text(json.dumps(stored_run))
    (found,) = stored.read(tmp_path).rows("deadlock", "emulation")
    assert found["flow_control"] == "pause"
