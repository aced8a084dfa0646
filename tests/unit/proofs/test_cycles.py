"""Cycles that the verifier replays from the files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.proofs import BUILT, files_of_plan, judge, proof_of_product, write_rules

pytestmark = BUILT


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = files_of_plan("ring,6", engine="minimal")
    return write_rules(tmp_path_factory.mktemp("ring") / "rules", files)


@pytest.mark.parametrize(
    ("spec", "choices", "control"),
    [
        ("ring,6", {"engine": "minimal"}, "pause"),
        ("torus,5,5", {"engine": "dor", "vcs": 1}, "pause"),
        ("torus,5", {"engine": "dor"}, "pause"),  # its two virtual channels wait together
        ("torus,5,4", {"engine": "dor", "vcs": 1}, "pfc"),
    ],
)
def test_a_cycle_is_replayed(
    tmp_path: Path, spec: str, choices: dict[str, object], control: str
) -> None:
    rules = write_rules(tmp_path / "rules", files_of_plan(spec, **choices))
    judgement = judge(rules, proof_of_product(rules, control))
    assert judgement.replayed, judgement.text
    first = judgement.text.splitlines()[0]
    assert first.startswith(f"checked, not proven: under {control.upper()}, frames can wait")
    assert "accepted" not in judgement.text
    assert len(re.findall(r"^  a frame from h\d+ to ", judgement.text, re.MULTILINE)) >= 3


def swapped(lines: list[str]) -> list[str]:
    """Return the waits in another order: they are no cycle then."""
    return [*lines[2:4], *lines[:2], *lines[4:]]


def other_host(lines: list[str]) -> list[str]:
    host = lines[1].split()[1]
    return [line.replace(f" {host} ", " h9 ") for line in lines]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda lines: lines[2:], "the waits do not form a cycle"),
        (lambda lines: [*lines, *lines[:2]], "the waits do not form a cycle"),
        (swapped, "the waits do not form a cycle"),
        (other_host, "there is no channel h9"),
        (
            lambda lines: [re.sub(r"\S+$", "02:00:00:00:09:01", lines[0]), *lines[1:]],
            "sends with its own address",
        ),
        (
            lambda lines: [re.sub(r"\S+ (\S+)$", r"02:00:00:00:09:01 \1", lines[0]), *lines[1:]],
            "rules do not send frames",
        ),
        (
            lambda lines: [re.sub(r"/0 s", "/1 s", lines[0]), *lines[1:]],
            "",
        ),
        (
            lambda lines: [lines[0], re.sub(r"^via h(\d)", "via s1:1", lines[1]), *lines[2:]],
            "there is no channel s1:1",
        ),
        (
            lambda lines: [lines[0], re.sub(r" (s\d:\d) (s\d:\d)$", r" \2", lines[1]), *lines[2:]],
            "rules do not send frames",
        ),
        (
            lambda lines: [lines[0], f"{lines[1]} s1:2", *lines[2:]],
            "",
        ),
    ],
    ids=range(10),
)
def test_a_wait_that_the_files_do_not_show_is_refused(
    folder: Path, change: Callable[[list[str]], list[str]], reason: str
) -> None:
    lines = proof_of_product(folder, "pfc").splitlines()
    start = lines.index("claim cycle") + 1
    assert judge(folder, "\n".join(lines) + "\n").replayed
    changed = [*lines[:start], *change(lines[start:])]
    assert changed != lines
    judgement = judge(folder, "\n".join(changed) + "\n")
    assert judgement.status == 1, judgement
    assert judgement.text.startswith("knotless-verify: refused: ")
    assert reason in judgement.text
