"""Sentences of the prompt of ``knotless lab`` on paused channels and on a knot."""

from __future__ import annotations

import io
import logging
import sys
from typing import Any, cast

import pytest

from knotless.base.errors import KnotlessError
from knotless.base.flow_control import FlowControl
from knotless.base.printable import protect_logs
from knotless.cli.prompt import COMMANDS, Prompt
from knotless.cli.prompt_texts import MOST_PAUSED, chosen_channels, paused_lines, why_lines
from knotless.emulation.daemon import Counters
from knotless.emulation.emulated_net import EmulatedNet
from knotless.emulation.mn import lg, output
from knotless.emulation.names import names_of
from knotless.emulation.running_fabric import RunningFabric
from knotless.forwarding.from_plan import state_of_plan
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.verification.check import verdict_of
from knotless.verification.dependencies import witnesses_of

WORDS = ("deadlock", "counters", "why", "top", "pause", "flowcontrol", "capture", "stretch", "link")


def reading(now_us: int, **paused_us: tuple[int, ...]) -> Counters:
    """Return counters with these times for the priorities of each channel, s1_2 for s1:2."""
    channels = [
        {
            "channel": name.replace("_", ":"),
            "to": "s9",
            "priorities": [
                {"priority": number, "paused_us": us, "queue_bytes": 100 * number}
                for number, us in enumerate(times)
            ],
        }
        for name, times in paused_us.items()
    ]
    return cast(Counters, {"now_us": now_us, "channels": channels})


def test_top_shows_the_longest_pause_first() -> None:
    before = reading(1000, s1_2=(500, 0), s2_2=(0, 0))
    after = reading(2000, s1_2=(750, 0), s2_2=(0, 1000))
    assert [line.split() for line in paused_lines(before, after)] == [
        ["channel", "to", "paused", "waiting", "bytes"],
        ["s2:2/1", "s9", "100%", "100"],
        ["s1:2/0", "s9", "25%", "0"],
    ]


def test_top_shows_priorities_that_pause_together_once() -> None:
    before, after = reading(0, s1_2=(0, 0, 0)), reading(100, s1_2=(50, 50, 80))
    rows = [line.split() for line in paused_lines(before, after)[1:]]
    assert rows == [["s1:2/2", "s9", "80%", "200"], ["s1:2/0", "s9", "50%", "100"]]


def test_top_without_pauses_and_with_very_many() -> None:
    still = reading(1000, s1_2=(500,))
    assert paused_lines(still, still) == ["no channel was paused"]
    some = {f"s{number}_2": (10,) for number in range(MOST_PAUSED + 5)}
    lines = paused_lines(reading(0), reading(10, **some))
    assert (len(lines), lines[-1]) == (MOST_PAUSED + 2, "and 5 more")


@pytest.fixture
def ring() -> Any:
    return state_of_plan(make_plan(load("ring,4"), "dor", vcs=1, select="low-port"))


def test_why_explains_each_step_of_the_knot(ring: Any) -> None:
    verdict = verdict_of(ring, "pause")
    lines = why_lines(ring, FlowControl.PAUSE, verdict.cycle, verdict)
    assert lines[0] == "4 channels wait for each other under PAUSE:"
    assert lines[1] == (
        "s1:2/0 is paused: the buffer behind it is full of frames that wait for s2:2/0,"
        " as h1 to h3 would."
    )
    assert lines[4].startswith("s4:2/0 is paused: ")
    assert "wait for s1:2/0, as h4 to h2 would." in lines[4]
    assert len(lines) == 6


def test_why_of_a_knot_that_the_rules_do_not_explain(ring: Any) -> None:
    lines = why_lines(
        ring, FlowControl.PAUSE, ["s1:2/0", "s3:2/0"], verdict_of(ring, FlowControl.PAUSE)
    )
    assert lines[1].endswith("frames that wait for s3:2/0.")
    assert witnesses_of(ring, ["s1:2/0", "s3:2/0"], FlowControl.PAUSE) == ()
    assert witnesses_of(ring, ["s1:99/0"], FlowControl.PAUSE) == ()


def test_why_without_a_knot_says_what_the_rules_allow(ring: Any) -> None:
    lines = why_lines(ring, FlowControl.PAUSE, (), verdict_of(ring, FlowControl.PAUSE))
    assert lines[0].startswith("No deadlock now. By the rules in the switches, it CAN DEADLOCK")
    assert lines[1] == "It would be: h1 to h3 holds s1:2/0 while it waits for s2:2/0."
    safe = why_lines(ring, FlowControl.NONE, (), verdict_of(ring, FlowControl.NONE))
    assert safe == [
        "No deadlock now. By the rules in the switches, it cannot deadlock without flow control."
    ]


@pytest.mark.parametrize("word", WORDS)
def test_every_word_has_a_help_text_that_shows_its_use(word: str) -> None:
    text = getattr(Prompt, f"do_{word}").__doc__ or ""
    first = text.splitlines()[0]
    assert len(first) < 100
    assert first.endswith(".")


def owned(*names: str) -> Counters:
    """Return counters of channels with these names."""
    channels = [{"channel": name, "priorities": []} for name in names]
    return cast(Counters, {"now_us": 0, "channels": channels})


def test_counters_are_of_the_switch_that_is_named_and_of_no_other() -> None:
    counters = owned("s1:1", "s1:2", "s10:1", "h1")
    assert names_of_channels(counters, "") == ["s1:1", "s1:2", "s10:1", "h1"]
    assert names_of_channels(counters, "s1") == ["s1:1", "s1:2"]
    assert names_of_channels(counters, "s1:2") == ["s1:2"]
    assert names_of_channels(counters, "h1") == ["h1"]
    for missing in ("s9", "s", "s1:", "s1:3", "h10"):
        with pytest.raises(KnotlessError, match="no switch, host or channel .*: there are s1, s10"):
            chosen_channels(counters, missing)


def names_of_channels(counters: Counters, name: str) -> list[str]:
    return [channel["channel"] for channel in chosen_channels(counters, name)]


class Broken:
    """A running fabric whose parts raise what they like."""

    names = names_of("broken")
    links = "emulated"
    is_running = True

    def __init__(self, problem: Exception) -> None:
        self._problem = problem

    def __getattr__(self, name: str) -> object:
        raise self._problem


def prompted(running: object, *lines: str) -> str:
    """Return what a prompt on such a fabric prints at these lines, none of which ends it."""
    prompt = Prompt.__new__(Prompt)
    net = EmulatedNet(controller=None, build=False)
    prompt.mn, prompt._fabric, prompt.stdout = net, cast(RunningFabric, running), io.StringIO()
    prompt.locals = {"net": net}
    for line in lines:
        assert not prompt.onecmd(line), line
    return str(prompt.stdout.getvalue())


@pytest.mark.parametrize(
    "problem", [KnotlessError("as it is"), ValueError("odd\nlines"), OSError(5, "pty"), KeyError(1)]
)
@pytest.mark.parametrize(
    "line", ["deadlock", "why", "counters", "top 1", "stretch", "link a b down", "switch s1 stop"]
)
def test_no_exception_of_a_command_ends_the_prompt(line: str, problem: Exception) -> None:
    text = prompted(Broken(problem), line)
    assert text.startswith("knotless: ")
    assert text.count("\n") == 1


@pytest.mark.parametrize(
    "line",
    ["top x", "pause", "capture", "link s1 s2", "switch s1 explode", "cut 's1", "flowcontrol x"],
)
def test_a_mistake_is_one_line(line: str) -> None:
    text = prompted(Broken(AssertionError()), line)
    assert text.startswith("knotless: ")
    assert text.count("\n") == 1


@pytest.mark.parametrize("word", [*WORDS, "switch", "help"])
def test_help_of_our_commands_explains_and_shows_the_usage(word: str) -> None:
    first, *_, last = prompted(Broken(ValueError()), f"help {word}").splitlines()
    assert first[0].isupper()
    assert first.endswith(".")
    assert last.startswith(f"Usage: {word}")


def test_help_lists_all_commands_in_groups() -> None:
    text = prompted(Broken(ValueError()), "help")
    for word in (*WORDS, *COMMANDS, "pingall", "iperf", "xterm"):
        assert f" {word} " in text.replace("\n", " "), word


def test_a_prompt_whose_fabric_has_ended_ends() -> None:
    running = Broken(ValueError())
    running.is_running = False
    prompt = Prompt.__new__(Prompt)
    prompt._fabric, prompt.stdout = cast(RunningFabric, running), io.StringIO()
    assert prompt.onecmd("deadlock") is True
    assert prompt.stdout.getvalue() == "knotless: the fabric 'broken' has ended\n"


def test_what_mininet_prints_is_no_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Logs of the command are protected: each of their lines is an entry of its own."""
    monkeypatch.setattr(logging, "_logRecordFactory", logging.getLogRecordFactory())
    protect_logs()
    (handler,) = lg.handlers
    monkeypatch.setattr(handler, "stream", sys.stdout)
    output("h1 -> h2 \na\tb\n")
    assert capsys.readouterr().out == "h1 -> h2 \na\tb\n"
