"""Forged packet-ins, requests and kept files: a part of ``make fuzz-border``."""

from __future__ import annotations

import pytest

from tests.fuzz_border import TARGETS, fuzz


@pytest.mark.parametrize("target", TARGETS)
def test_forged_input_is_borne(target: str) -> None:
    assert fuzz(target, seed=1, cases=3000) == []


@pytest.mark.long
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("target", TARGETS)
def test_millions_of_forged_inputs_are_borne(target: str) -> None:
    assert fuzz(target, seed=1_000_000, cases=2_500_000) == []
