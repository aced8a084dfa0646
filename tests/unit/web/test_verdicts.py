"""The sentence of a verdict on a page; its values are hostile."""

from __future__ import annotations

from typing import Any

import pytest

from knotless.base.errors import KnotlessError
from knotless.web.verdicts import shown_verdict

WITNESSES = [{"source": "h1", "destination": "h2"}]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"flow_control": "pfc", "cycle": []}, "cannot deadlock under PFC"),
        ({"flow_control": "credits", "cycle": ["a", "b"]}, "CAN DEADLOCK under credits: a -> b"),
        ({"flow_control": "pfc", "missing": ["x"]}, "UNKNOWN whether it can deadlock under PFC"),
    ],
)
def test_it_is_that_of_every_command(values: dict[str, Any], text: str) -> None:
    shown = shown_verdict({**values, "witnesses": WITNESSES, "other": 1})
    assert shown["text"].startswith(text)
    assert shown["cycle"] == values.get("cycle", [])
    assert shown["witnesses"] == WITNESSES


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "flow_control"),
        ({"flow_control": "<b>"}, "flow_control"),
        ({"flow_control": "pfc", "cycle": [1]}, "cycle.0"),
        ({"flow_control": "pfc", "cycle": "s1:1/0"}, "cycle"),
    ],
)
def test_what_is_no_verdict_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(KnotlessError, match=f"this is no verdict: {message}"):
        shown_verdict(values)
