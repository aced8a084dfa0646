"""Flow control: one list of choices, what auto means, which channels wait."""

from __future__ import annotations

import numpy as np
import pytest

from knotless.base.errors import PlanError
from knotless.base.flow_control import CHOICES, FLOW_CONTROLS, FlowControl, resolved, verdict_text
from knotless.routing.graphs.dependencies import waiting

EDGES = [(16, 33), (17, 32)]
"""From channel 1 to channel 2, in priorities 0 and 1."""


def test_auto_is_pfc_where_there_are_several_virtual_channels() -> None:
    assert [resolved("auto", vcs) for vcs in (1, 2, 8)] == ["pause", "pfc", "pfc"]
    assert [resolved(name, 2) for name in FLOW_CONTROLS] == list(FLOW_CONTROLS)
    assert set(CHOICES) == {"auto", *FLOW_CONTROLS}
    with pytest.raises(PlanError, match="flow control 'some' is not one of 'auto', 'none', "):
        resolved("some", 1)


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("none", set()),
        ("host", set()),
        ("switch", {(16, 32)}),
        ("pause", {(16, 32)}),
        ("pfc", {(16, 33), (17, 32)}),
        ("credits", {(16, 33), (17, 32)}),
    ],
)
def test_only_links_between_switches_that_pause_make_channels_wait(
    name: str, left: set[tuple[int, int]]
) -> None:
    flow_control = FlowControl(name)
    assert set(map(tuple, waiting(np.array(EDGES), flow_control).tolist())) == left
    assert flow_control.switch_links.pauses == bool(left)


def test_credits_hold_back_priorities_without_pause_frames() -> None:
    for links in (FlowControl.CREDITS.host_links, FlowControl.CREDITS.switch_links):
        assert (links.by_credits, links.by_priority, links.by_channel) == (True, True, False)
    assert not FlowControl.PFC.switch_links.by_credits
    assert FlowControl.CREDITS.is_lossless


def test_verdicts_name_their_flow_control() -> None:
    assert verdict_text(FlowControl.NONE, []) == "cannot deadlock without flow control"
    assert verdict_text(FlowControl.SWITCH, []) == "cannot deadlock under PAUSE between switches"
    assert verdict_text(FlowControl.CREDITS, []) == "cannot deadlock under credits"
    ring = verdict_text(FlowControl.PAUSE, ["s1:2/0", "s2:2/0"])
    assert ring == "CAN DEADLOCK under PAUSE: s1:2/0 -> s2:2/0 -> s1:2/0"
