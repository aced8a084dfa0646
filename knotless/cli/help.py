"""Help of commands: options under headings, of which ``--help`` explains the usual ones.

``--help-all``, the manual page and the reference explain all, under the same headings.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import click

from knotless.cli.options import HELP_LINES, help_all_option

Function = TypeVar("Function", bound=Callable[..., Any])

MAX_EXAMPLES = 3
"""Examples of ``--help``."""
OTHERS = "Output and other options"
"""The heading of options that are under no other."""
_MAX_OPTION = 28
"""Characters of an option with its value, beside which ``--help`` explains it."""
_EXAMPLE = "Example: "
MAX_LINES = 60
"""Lines of ``--help``."""
_UNLIMITED = 99


def under(
    heading: str, decorator: Callable[[Function], Function], usual: Collection[str] | None = None
) -> Callable[[Function], Function]:
    """Return a decorator that adds the same options under a heading; keeps headings they have.

    ``usual`` are the parameters that ``--help`` explains, None: all. It names the others.
    """

    def decorate(function: Function) -> Function:
        before = len(getattr(function, "__click_params__", ()))
        decorated: Any = decorator(function)
        for parameter in decorated.__click_params__[before:]:
            if getattr(parameter, "heading", None) is None:
                parameter.heading = heading
                parameter.is_usual = usual is None or parameter.name in usual
        return decorated  # type: ignore[no-any-return]

    return decorate


def sections(command: click.Command, context: click.Context) -> dict[str, list[click.Option]]:
    """Return the options of a command by heading, in its order; those under none are last."""
    by_heading: dict[str, list[click.Option]] = {}
    others: list[click.Option] = []
    for parameter in command.get_params(context):
        if isinstance(parameter, click.Option) and not parameter.hidden:
            heading = getattr(parameter, "heading", None)
            (others if heading is None else by_heading.setdefault(heading, [])).append(parameter)
    if not by_heading:
        return {"Options": others}
    return {**by_heading, OTHERS: [*by_heading.get(OTHERS, []), *others]}


class Command(click.Command):
    """A command whose ``--help`` is short: usual options, and the first examples."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        """Make a command, with ``--help-all`` if ``--help`` leaves something out."""
        super().__init__(*args, **attributes)
        if any(not getattr(parameter, "is_usual", True) for parameter in self.params):
            self.params.append(help_all_option)

    def get_help(self, ctx: click.Context) -> str:
        """Return the longest help that is short, or the whole one if that is asked for."""
        if HELP_LINES in ctx.meta:
            return super().get_help(ctx)
        text = ""
        for ctx.meta[HELP_LINES] in (_UNLIMITED, 3, 2, 1):
            text = super().get_help(ctx)
            if text.count("\n") < MAX_LINES:
                break
        del ctx.meta[HELP_LINES]
        return text

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command does, then examples on lines of their own, to be copied."""
        paragraphs = inspect.cleandoc(self.help or "").split("\n\n")
        examples = [
            " ".join(text.split()).removeprefix(_EXAMPLE)
            for text in paragraphs
            if text.startswith(_EXAMPLE)
        ]
        text = "\n\n".join(text for text in paragraphs if not text.startswith(_EXAMPLE))
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(text)
        if examples:
            with formatter.section("Examples"):
                for example in examples[: None if ctx.meta[HELP_LINES] is None else MAX_EXAMPLES]:
                    formatter.write(f"{' ' * formatter.current_indent}{example}\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings."""
        lines = ctx.meta[HELP_LINES]
        for heading, options in sections(self, ctx).items():
            shown = [one for one in options if lines is None or getattr(one, "is_usual", True)]
            records = [record for one in shown if (record := one.get_help_record(ctx)) is not None]
            with formatter.section(heading):
                if records and lines in (None, _UNLIMITED):
                    formatter.write_dl(records)
                elif records:
                    _write_briefly(formatter, records, lines)
                _name(formatter, [option for option in options if option not in shown])


def _write_briefly(
    formatter: click.HelpFormatter, records: Sequence[tuple[str, str]], lines: int
) -> None:
    """Write a few lines for each option; a long list of choices is part of its text."""
    rows = []
    for option, text in records:
        name, _, metavar = option.partition(" ")
        if len(option) > _MAX_OPTION and not name.endswith(","):
            rows.append((name, f"{metavar}: {text}"))
        else:
            rows.append((option, text))
    width = formatter.current_indent + max(len(option) for option, _ in rows) + 2
    for option, text in rows:
        wrapped = textwrap.wrap(
            text,
            max(formatter.width - width, _MAX_OPTION),
            max_lines=lines,
            placeholder=" ...",
            break_on_hyphens=False,
        )
        begin = " " * formatter.current_indent + option
        for line in wrapped or [""]:
            formatter.write(f"{begin:{width}}{line}".rstrip() + "\n")
            begin = ""


def _name(formatter: click.HelpFormatter, options: Sequence[click.Option]) -> None:
    """Name options that are not explained."""
    if options:
        indent = " " * formatter.current_indent
        lines = textwrap.wrap(
            f"also {', '.join(option.opts[0] for option in options)}",
            formatter.width,
            initial_indent=indent,
            subsequent_indent=f"{indent}  ",
            break_on_hyphens=False,
        )
        formatter.write("\n".join(lines) + "\n")
