"""Numbers that people write: one type for all options, with or without units."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from knotless.base.errors import KnotlessError
from knotless.base.quantities import (
    BYTES,
    MBPS,
    MICROSECONDS,
    PLAIN,
    SECONDS,
    SHARE,
    Unit,
    number,
)
from knotless.cli.main import main
from knotless.cli.numbers import Number, Whole


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        *(("1s", MICROSECONDS, 1e6), ("10ms", MICROSECONDS, 1e4), ("250us", MICROSECONDS, 250)),
        *(("250us", SECONDS, 0.00025), ("2min", SECONDS, 120), ("1.5", SECONDS, 1.5)),
        *(
            ("10G", MBPS, 1e4),
            ("10 Gbit/s", MBPS, 1e4),
            ("10Gbps", MBPS, 1e4),
            ("64k", MBPS, 0.064),
        ),
        *(
            ("400", MBPS, 400),
            ("1.5MB", BYTES, 1.5e6),
            ("64KiB", BYTES, 65536),
            ("9kB", BYTES, 9e3),
        ),
        *(("57%", SHARE, 0.57), ("1 %", SHARE, 0.01), (".5", SHARE, 0.5), ("1e-3", SHARE, 1e-3)),
        *(("-3", PLAIN, -3), ("+2.", PLAIN, 2), ("1E3", PLAIN, 1000)),
    ],
)
def test_units_are_those_that_people_write(text: str, unit: Unit, value: float) -> None:
    assert number(text, unit) == value


@pytest.mark.parametrize("text", ["", "fast", "nan", "inf", "1e999", "1_0", "0x1", "%", "1 0", "٤"])
@pytest.mark.parametrize("unit", [SECONDS, MBPS, BYTES, SHARE, PLAIN])
def test_what_is_no_number_is_refused_in_one_line(text: str, unit: Unit) -> None:
    with pytest.raises(KnotlessError, match=f"^'.*' is no {unit.what}") as refused:
        number(text, unit)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            ("simulate", "ring,4", "--duration", "1G"),
            "'1G' is no time: write it as 10ms, or as a number of us",
        ),
        (("simulate", "ring,4", "--rate", "fast"), "'fast' is no rate: write it as 10G, or as a"),
        (("simulate", "ring,4", "--rate", "1e99"), "1e99 is not at most 1,000,000 Mbit/s (see "),
        (("simulate", "ring,4", "--seed", "-1"), "-1 is not at least 0 (see "),
        (("simulate", "ring,4", "--seed", "abc"), "'abc' is no whole number (see "),
        (("simulate", "ring,4", "--xoff", "1.5B"), "1.5B is no whole number"),
        (("plan", "ring,4", "--vcs", "two"), "'two' is no whole number"),
        (("up", "ring,4", "--port", "80000"), "80000 is not at most 65,535 (see "),
        (("up", "ring,4", "--delay", "1 week"), "'1 week' is no time"),
    ],
)
def test_mistakes_say_what_may_be_written(words: tuple[str, ...], complaint: str) -> None:
    done = CliRunner(mix_stderr=False).invoke(main, words, prog_name="knotless")
    assert (done.exit_code, done.stdout) == (2, "")
    assert complaint in done.stderr
    assert done.stderr.count("\n") == 1


def test_units_give_what_bare_numbers_give() -> None:
    def simulated(*words: str) -> str:
        command = ("simulate", "ring,4", "--pattern", "shift:2", "--json", *words)
        return CliRunner().invoke(main, command).output.partition('"result_sha256"')[2].split()[1]

    bare = simulated("--duration", "2000", "--rate", "100", "--xoff", "32000")
    assert simulated("--duration", "2ms", "--rate", "100Mbit/s", "--xoff", "32kB") == bare
    assert simulated("--duration", "3ms", "--rate", "100", "--xoff", "32000") != bare


def _options(group: click.Group) -> Iterator[tuple[str, click.Parameter]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _options(command)
        else:
            yield from ((f"{name} {option.opts[0]}", option) for option in command.params)


def test_every_option_that_is_a_number_has_this_type() -> None:
    numbers = [
        name
        for name, option in _options(main)
        if isinstance(option.type, click.FloatRange | click.IntRange)
        or option.type in (click.INT, click.FLOAT)
        if not isinstance(option.type, Number | Whole)
    ]
    assert numbers == []


def test_the_help_has_the_placeholder_of_the_unit_with_each_version_of_click() -> None:
    option = click.Option(["--rate"], type=Number(unit=MBPS))
    context = click.Context(click.Command("x"))
    assert Number(unit=MBPS).get_metavar(option) == MBPS.placeholder
    assert Number(unit=MBPS).get_metavar(param=option, ctx=context) == MBPS.placeholder
