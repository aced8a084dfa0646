"""Texts about lines, and what reaches the emulator of the lines of a fabric."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from knotless.base.errors import KnotlessError
from knotless.base.flow_control import FlowControl
from knotless.cli.commands._fabric import checked_plan_of
from knotless.cli.main import main
from knotless.emulation.lines import fault_text, line_text
from knotless.emulation.names import names_of
from knotless.emulation.wiring import emulator_config, wire
from knotless.routing.request import PlanRequest
from knotless.topologies import load

LINE = {
    "channel": "s1:2",
    "rate_mbps": 10.0,
    "delay_us": 500.0,
    "jitter_us": 100.0,
    "loss": 0.001,
    "corrupt": 0.0,
    "duplicate": 0.25,
    "reorder": 0.0,
    "line_errors": 0.0,
}


def test_a_line_says_what_it_does_and_has_done() -> None:
    text = "s1:2: 10 Mbit/s, 500 to 600 us; loses 0.1 %, duplicates 25 %"
    assert line_text(LINE) == text
    assert fault_text({**LINE, "lost_frames": 0, "corrupted_frames": 0}) == text
    done = fault_text({**LINE, "lost_frames": 3, "corrupted_frames": 2})
    assert done == f"{text}; 3 frames lost, 2 frames corrupted so far"


def test_the_emulator_gets_the_faults_of_each_link_and_no_others() -> None:
    ring = load("ring,3")
    lossy = replace(
        ring,
        hosts=(replace(ring.hosts[0], jitter_us=7.0), *ring.hosts[1:]),
        links=(replace(ring.links[0], loss=0.01), *ring.links[1:]),
    )

    def faults_of(**more: Any) -> dict[str, Any]:
        config = emulator_config(
            wire(lossy), names_of("lab"), flow_control=FlowControl.PAUSE, **more
        )
        return {link["name"]: link.get("faults") for link in config["links"]}

    faults = faults_of()
    assert faults.pop(ring.links[0].name) == {"loss": 0.01}
    assert faults.pop("h1") == {"jitter_us": 7.0}
    assert set(faults.values()) == {None}
    errors = {"line_errors": 1e-6, "errors_in_a_row": 3}
    faults = faults_of(line_errors=(1e-6, 3))
    assert faults.pop("h1") == {"jitter_us": 7.0, **errors}
    assert faults["h2"] == errors


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--loss", "7", "7 is not at most 1 (see"),
        ("--rate", "0", "0 is not at least 0.001 Mbit/s"),
        ("--line-errors", "0.1", "0.1 is not at most 0.01"),
        ("--delay", "nan", "'nan' is no time: write it as 10ms, or as a number of us"),
    ],
)
def test_the_command_refuses_impossible_lines(option: str, value: str, message: str) -> None:
    done = CliRunner().invoke(main, ["link", "s1-s2", option, value])
    assert done.exit_code == 2
    assert message in done.output


@pytest.mark.parametrize(("line_errors", "retry"), [(1e-6, None), (0.0, 0)])
def test_plain_links_have_no_errors_and_repeat_nothing(
    line_errors: float, retry: int | None
) -> None:
    options = {"links": "plain", "line_errors": line_errors, "retry": retry}
    with pytest.raises(KnotlessError, match="--line-errors and --retry need emulated links"):
        checked_plan_of("ring,4", PlanRequest(), None, None, options)
