"""Texts about lines, and what reaches the emulator of the lines of a fabric."""

from __future__ import annotations

from dataclasses import replace

import pytest
from click.testing import CliRunner

from knotless.base.errors import KnotlessError
from knotless.base.flow_control import FlowControl
from knotless.cli.main import main
from knotless.emulation.lines import fault_text, line_text, share
from knotless.emulation.names import names_of
from knotless.emulation.wiring import emulator_config, wire
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
}


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0), ("0%", 0), ("1%", 0.01), ("1", 1), (".5", 0.5), ("1e-3", 0.001)]
)
def test_shares_are_percentages_or_numbers(text: str, value: float) -> None:
    assert share(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "2", "101%", "-1", "nan", "inf", "1 %", "%", "0x1", "1e999"])
def test_what_is_no_share_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(KnotlessError, match="is no share of frames: write 1%, or 0.01") as refused:
        share(text)
    assert "\n" not in str(refused.value)


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
    config = emulator_config(wire(lossy), names_of("lab"), flow_control=FlowControl.PAUSE)
    faults = {link["name"]: link.get("faults") for link in config["links"]}
    assert faults.pop(ring.links[0].name) == {"loss": 0.01}
    assert faults.pop("h1") == {"jitter_us": 7.0}
    assert set(faults.values()) == {None}


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--loss", "7", "'7' is no share of frames"),
        ("--rate", "0", "0.001<=x<=400000"),
        ("--delay", "nan", "nan"),
    ],
)
def test_the_command_refuses_impossible_lines(option: str, value: str, message: str) -> None:
    done = CliRunner().invoke(main, ["link", "s1-s2", option, value])
    assert done.exit_code == 2
    assert message in done.output
