"""Help: short, under headings, the same as in the reference and manual pages; where to begin."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from docs.generator import man
from docs.generator.commands import all_commands, command_pages, page
from knotless.cli.commands.help import BEGIN, KINDS, TOPICS
from knotless.cli.groups import commands
from knotless.cli.help import MAX_EXAMPLES, MAX_LINES, Command, sections
from knotless.cli.main import main

SHORT = [name for name, command in all_commands() if isinstance(command, Command)]


def shown(*words: str) -> list[str]:
    done = CliRunner(mix_stderr=False).invoke(main, words, prog_name="knotless", terminal_width=80)
    assert done.exit_code == 0, done.stderr
    return done.stdout.splitlines()


def command_of(name: str) -> tuple[click.Command, click.Context]:
    (context,) = [one for one in command_pages() if one.command_path == name]
    return context.command, context


def test_the_commands_with_many_options_have_a_short_help() -> None:
    assert {"knotless simulate", "knotless up", "knotless check", "knotless plan"} <= {*SHORT}
    for name, _ in all_commands():
        assert len(shown(*name.split()[1:], "--help")) <= MAX_LINES, name


@pytest.mark.parametrize("name", SHORT)
def test_the_help_names_every_option_and_the_whole_one_explains_it(name: str) -> None:
    command, context = command_of(name)
    words = name.split()[1:]
    short, whole = shown(*words, "--help"), shown(*words, "--help-all")
    explained = {word for line in whole if line[:3] == "  -" for word in line.split()[:2]}
    for heading, options in sections(command, context).items():
        assert f"{heading}:" in short
        assert f"{heading}:" in whole
        for option in options:
            flag = option.opts[0]
            assert any(flag in line.replace(",", " ").split() for line in short), flag
            assert explained & {flag, f"{flag},"}, flag
    for examples in (short, whole):
        assert sum(line.startswith("  knotless ") for line in examples) <= (
            MAX_EXAMPLES if examples is short else 99
        )


def test_options_of_a_group_are_under_one_heading_in_help_reference_and_manual() -> None:
    command, context = command_of("knotless simulate")
    by_heading = sections(command, context)
    assert "--pattern" in {option.opts[0] for option in by_heading["Traffic"]}
    reference = page().partition("## knotless simulate\n")[2].partition("\n## ")[0]
    manual = "\n".join(man._page(context))
    for text, mark in ((reference, "**{}**\n"), (manual, ".SS {}\n")):
        parts = [text.index(mark.format(heading)) for heading in by_heading]
        assert parts == sorted(parts)
        traffic = text[parts[list(by_heading).index("Traffic")] :]
        assert traffic.replace("\\", "").index("--pattern") < len(text)


def examples() -> Iterator[tuple[str, str]]:
    """Yield the examples of each command, as they are pasted into a shell."""
    for name, command in all_commands():
        for text in (command.help or "", command.epilog or ""):
            for paragraph in text.replace("\b", "").split("\n\n"):
                if paragraph.strip().startswith("Example:"):
                    yield name, paragraph.strip().removeprefix("Example:")


def test_examples_can_be_pasted() -> None:
    """A shell reads them, and their options exist."""
    shell = ["bash", "-n", "-c", "\n".join(text for _, text in examples())]
    assert subprocess.run(shell, capture_output=True, text=True, check=True).stderr == ""
    tried = 0
    for _, text in examples():
        for line in text.replace("\\\n", " ").splitlines():
            for words in re.split(r"; | && | \| ", line.partition(" #")[0]):
                _, program, arguments = words.partition("knotless ")
                group, context, rest = main, click.Context(main), shlex.split(arguments)
                while program and isinstance(group, click.Group):
                    group = group.get_command(context, rest.pop(0))  # type: ignore[assignment]
                    context = click.Context(group, context, **group.context_settings)
                if program:
                    group.make_parser(context).parse_args(rest)  # raises for an unknown option
                    tried += 1
    assert tried > 80


def test_without_a_topic_the_help_says_where_to_begin() -> None:
    lines = shown("help")
    assert lines[0] == "knotless: begin here"
    asked = [words for questions in BEGIN.values() for words in questions.values()]
    assert all(any(words in line for line in lines) for words in asked)
    assert all(shlex.split(words)[1] in commands() for words in asked)
    assert "knotless help" in " ".join(shown())


def test_the_freeze_that_the_help_promises_happens() -> None:
    (words,) = [line for line in BEGIN["without root"].values() if "simulate" in line]
    assert ": froze" in shown(*shlex.split(words)[1:])[0]


@pytest.mark.parametrize("topic", [*TOPICS, *KINDS])
def test_a_topic_lists_what_there_is(topic: str) -> None:
    first, *lines = shown("help", topic)
    assert first.startswith(f"{topic}: {len(lines)} ")


def test_a_command_is_explained_as_by_itself() -> None:
    assert shown("help", "cut") == shown("cut", "--help")


def test_an_unknown_topic_is_a_mistake_with_the_nearest() -> None:
    done = CliRunner(mix_stderr=False).invoke(main, ["help", "engine"])
    assert (done.exit_code, done.stderr) == (
        2,
        "knotless: there is no topic or command 'engine'; did you mean engines?\n",
    )
