"""Mistakes in the words of a command line, each in one line that says what would be right."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

import click

from knotless.cli.groups import OF_EXPERIMENTS

_OTHER_WORDS: Mapping[str, tuple[str, ...]] = {
    "--format": ("--json", "--out"),
    "--output": ("--json", "--out"),
    "-o": ("--out", "--json"),
    "-v": ("--details",),
    "--verbose": ("--details",),
    "-V": ("--version",),
    "--fast": ("--quick",),
    "--seconds": ("--duration",),
    "--time": ("--duration",),
}
"""Options of other programs, and what has their meaning here, best first."""
_EXTRA = re.compile(r"Got unexpected extra arguments? \((.*)\)")


def one_line(error: click.ClickException, program: click.Command, words: Sequence[str]) -> str:
    """Return what is wrong with a command line, what would be right, and where its help is.

    ``words`` are those of the command line, without the program.
    """
    text = " ".join(error.format_message().split()).rstrip(".")
    if not isinstance(error, click.UsageError):
        return text
    context = error.ctx or _context_of(program, words)
    if isinstance(error, click.NoSuchOption):
        text = f"No such option: {error.option_name}{_instead(error, context, words)}"
    elif isinstance(error, click.MissingParameter) or (
        isinstance(error, click.BadParameter) and isinstance(error.param, click.Argument)
    ):
        example = _example(context.command)
        if example and not isinstance(getattr(error.param, "type", None), click.Choice):
            text += f", as in '{example}'"
    elif isinstance(error, click.BadOptionUsage):
        text += _usage(context.command, error.option_name)
    elif extra := _EXTRA.fullmatch(text):
        text += _place(context.command, extra[1])
    elif text.startswith("No such command") and isinstance(context.command, click.Group):
        text += _command_first(context, words)
    return f"{text} (see {context.command_path} --help)"


def _context_of(program: click.Command, words: Sequence[str]) -> click.Context:
    """Return the context of the command of a command line; some errors of click have none."""
    context = click.Context(program, info_name="knotless")
    for word in words:
        command = context.command
        inner = command.get_command(context, word) if isinstance(command, click.Group) else None
        if inner is None:
            break
        context = click.Context(inner, context, info_name=word)
    return context


def _instead(error: click.NoSuchOption, context: click.Context, words: Sequence[str]) -> str:
    """Return what to write instead of an option that the command does not have."""
    option, command = error.option_name, context.command
    own = _options(command)
    if isinstance(command, click.Group):
        later = [word for word in words if word in command.list_commands(context)]
        if later:
            return f"; options follow the command: {context.command_path} {later[0]} ... {option}"
    for other in _OTHER_WORDS.get(option, ()):
        if other in own:
            return f"; the option here is {other}"
    if others := _commands_with(context).get(option):
        return f"; it is an option of {', '.join(others)}"
    close = get_close_matches(option, own, n=2)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def _options(command: click.Command) -> list[str]:
    """Return all names of the options of a command, and ``--help``."""
    names = [name for parameter in command.params for name in parameter.opts]
    return ["--help", *(name for name in names if name[0] == "-")]


def _commands_with(context: click.Context) -> Mapping[str, list[str]]:
    """Return the commands that have each option; this loads them all."""
    root = context.find_root()
    group = root.command
    by_option: dict[str, list[str]] = {}
    if isinstance(group, click.Group):
        for name in group.list_commands(root):
            command = None if name in OF_EXPERIMENTS else group.get_command(root, name)
            for option in () if command is None else _options(command)[1:]:
                by_option.setdefault(option, []).append(name)
    return by_option


def _example(command: click.Command) -> str:
    """Return the first example in the help of a command, or nothing."""
    for text in (command.help, command.epilog):
        for line in (text or "").splitlines():
            words = line.strip().removeprefix("Example: ")
            if words.startswith("knotless ") and not words.endswith("\\"):
                return words.split("  ")[0]
    return ""


def _usage(command: click.Command, option: str) -> str:
    """Return how an option with values is written."""
    for parameter in command.params:
        if option in parameter.opts and parameter.nargs:
            value = parameter.metavar or parameter.make_metavar()
            return f": {option} {value}"
    return ""


def _place(command: click.Command, extra: str) -> str:
    """Return where the words belong that a command line has too many of."""
    from knotless.routing.engine import engines  # most mistakes do without
    from knotless.traffic.patterns import patterns

    names = {parameter.name for parameter in command.params}
    options = _options(command)
    if re.fullmatch("[0-9 ]+", extra):
        return "; a SPEC is one word, with commas: torus,4,4"
    if "--pattern" in options and extra.partition(":")[0].lower() in patterns():
        return f"; a pattern is an option: --pattern {extra}"
    if "--engine" in options and extra.lower() in engines():
        return f"; an engine is an option: --engine {extra}"
    if "link" in names:
        return "; a link is one word: s1-s2"
    if "--name" in options and " " not in extra:
        return f"; a running fabric is named by an option: --name {extra}"
    return ""


def _command_first(context: click.Context, words: Sequence[str]) -> str:
    """Return the words with the command first, if they have one elsewhere."""
    group = context.command
    names = group.list_commands(context) if isinstance(group, click.Group) else []
    for place, word in enumerate(words):
        if place and word in names:
            others = [*words[:place], *words[place + 1 :]]
            return f"; the command is first: {shlex.join(['knotless', word, *others])}"
    return ""
