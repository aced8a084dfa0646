"""The reference of all commands and options, from click."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import click

from knotless.cli.help import sections
from knotless.cli.main import main

HEAD = """# Commands

`knotless help` says where to begin. Every command has `--help` with an example; where it explains
only the usual options, `--help-all` explains all, as this page does, under the same headings. Most
commands have `--json` for programs ([what they print](json.md)). The exit status is 0 only on
success. Wrong input gives one line that says what is wrong, and exit status 2. SPEC is a [fabric
spec](fabric-specs.md) or a [fabric file](../fabric-files.md).

This page is generated from the program.
"""
_EXAMPLE = re.compile(r"^Example: (.*)$", re.DOTALL)


def page() -> str:
    """Return the page."""
    return "\n".join([HEAD, *_sections(main, click.Context(main, info_name="knotless"), 2)])


def all_commands() -> Iterator[tuple[str, click.Command]]:
    """Yield every command that does something, with its full name."""
    yield from _below(main, "knotless")


def _below(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command)
    for inner in command.list_commands(context):
        found = command.get_command(context, inner)
        if found is not None and not found.hidden:
            yield from _below(found, f"{name} {inner}")


def command_pages() -> Iterator[click.Context]:
    """Yield the context of the command itself, of all groups and of all commands."""
    waiting = [click.Context(main, info_name="knotless")]
    while waiting:
        context = waiting.pop(0)
        yield context
        group = context.command
        if isinstance(group, click.Group):
            for name in group.list_commands(context):
                inner = group.get_command(context, name)
                if inner is not None and not inner.hidden:
                    waiting.append(click.Context(inner, info_name=name, parent=context))


def _sections(group: click.Group, context: click.Context, level: int) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        inner = click.Context(command, info_name=name, parent=context)
        yield f"{'#' * level} {inner.command_path}\n"
        yield from _body(command, inner)
        if isinstance(command, click.Group):
            yield from _sections(command, inner, level + 1)


def _body(command: click.Command, context: click.Context) -> Iterator[str]:
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"```text\n{context.command_path} {usage}\n```\n"
    for paragraph in (command.help or "").split("\n\n"):
        text = " ".join(paragraph.replace("\b", "").split())
        example = _EXAMPLE.match(text)
        yield f"```sh\n{example[1]}\n```\n" if example else f"{escaped(text)}\n"
    by_heading = sections(command, context)
    for heading, options in by_heading.items():
        if len(by_heading) > 1:
            yield f"**{heading}**\n"
        yield "| option | meaning | default |\n|---|---|---|"
        yield "\n".join(_row(option, context) for option in options) + "\n"


def _row(option: click.Option, context: click.Context) -> str:
    flags = ", ".join([*option.opts, *option.secondary_opts])
    metavar = "" if option.is_flag or option.count else f" {option.make_metavar()}"
    default: Any = option.get_default(context)
    plain = isinstance(default, str | int | float) and not isinstance(default, bool)
    code = f"`{flags}{metavar}`".replace("|", "\\|")
    text = escaped(" ".join((option.help or "").split())).replace("|", "\\|")
    return f"| {code} | {text} | {f'`{default}`' if plain and default != '' else ''} |"


def escaped(text: str) -> str:
    """Return plain text such that Markdown shows it as it is."""
    return re.sub(r"([*_<\[\]`])", r"\\\1", text)
