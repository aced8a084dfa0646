"""Settings of switches: what a file says, what a port inherits, and what is refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from knotless.base import switch_settings
from knotless.base.errors import SwitchSettingsError
from knotless.base.switch_settings import PauseFrames, SwitchFile, read

EXAMPLE = (switch_settings.__doc__ or "").split("::\n", 1)[1].split("\nWhat a file", 1)[0]


def written(folder: Path, text: str) -> Path:
    path = folder / "switch.yaml"
    path.write_text(text)
    return path


def test_the_example_is_read(tmp_path: Path) -> None:
    settings = read(written(tmp_path, EXAMPLE))
    (group,) = settings.ingress or ()
    assert (group.alpha, group.pool, settings.pools["lossless"].side) == (
        0.125,
        "lossless",
        "ingress",
    )
    assert settings.of_port(5).lossless == ()
    assert settings.of_port(5).ecn == settings.ecn
    assert settings.of_port("1").lossless == (3, 4)
    assert settings.of_switch("s9").lossless == (3,)
    assert settings.of_switch("s9").ecn is None
    assert settings.of_switch("s1") is settings


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    assert read(written(tmp_path, "")) == SwitchFile()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("lossless: [8]", "lossless.0: 8 is not below 8"),
        ("lossless: [3, 3]", "lossless: priority 3 occurs 2 times"),
        ("ingress: [{priorities: [3], alpha: 1}]", "alpha needs a pool"),
        ("ingress: [{priorities: [3], pool: p}]", "ingress: there is no pool 'p'"),
        (
            "pools: {p: {side: egress, bytes: 1}}\ningress: [{priorities: [3], pool: p}]",
            "ingress: pool 'p' is of the egress",
        ),
        (
            "pools: {p: {side: egress, bytes: 1}}\n"
            "egress: [{priorities: [3], pool: p, alpha: 1, limit_bytes: 2}]",
            "alpha and limit_bytes exclude each other",
        ),
        ("scheduler: [{priorities: [3]}]", "give either strict: true or a weight"),
        ("scheduler: [{priorities: [3], strict: true, weight: 2}]", "give either strict: true"),
        ("ecn: [{priorities: [3], kmin_bytes: 2, kmax_bytes: 1}]", "kmin_bytes exceeds kmax_bytes"),
        ("ecn: [{priorities: [3], kmin_bytes: 0, kmax_bytes: 1, pmax: 0}]", "0 is not above 0"),
        ("egress: [{priorities: [1]}, {priorities: [1]}]", "egress: priority 1 occurs 2 times"),
        ("pauses: {}", "unknown key 'pauses'"),
        ("- 3", "input should be a valid dictionary"),
    ],
)
def test_what_is_not_possible_is_refused_in_one_line(
    tmp_path: Path, text: str, problem: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(SwitchSettingsError) as error:
        read(path)
    message = str(error.value)
    assert message.startswith(str(path))
    assert problem in message
    assert "\n" not in message


def test_pause_frames_may_be_just_true(tmp_path: Path) -> None:
    assert read(written(tmp_path, "pause_frames: true")).pause_frames == PauseFrames()
    assert read(written(tmp_path, "pause_frames: false")).pause_frames is None
    assert read(written(tmp_path, "pause_frames: {quanta: 9}")).pause_frames == PauseFrames(
        quanta=9
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("lossless: [3]", False),
        ("watchdog: {detection_us: 9}", True),
        ("ports: {'2': {watchdog: {detection_us: 9}}}", True),
        ("switches: {s1: {ports: {'2': {watchdog: {detection_us: 9}}}}}", True),
    ],
)
def test_a_file_tells_whether_it_has_a_watchdog(tmp_path: Path, text: str, found: bool) -> None:
    assert read(written(tmp_path, text)).has_watchdog is found
