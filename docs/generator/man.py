"""Manual pages of the command and its subcommands: ``python -m docs.generator.man FOLDER``.

They are written by ``make dist`` and are part of the wheel and of the source distribution.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from docs.generator.commands import command_pages
from knotless.base.package import version
from knotless.cli.groups import GROUPS
from knotless.cli.help import sections


def write(folder: Path) -> list[Path]:
    """Write a page for each command into ``folder``, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for context in command_pages():
        path = folder / f"{context.command_path.replace(' ', '-')}.1"
        path.write_text("\n".join(_page(context)) + "\n", encoding="utf-8")
        written.append(path)
    return written


def _page(context: click.Context) -> Iterator[str]:
    command, name = context.command, context.command_path
    paragraphs = [
        " ".join(text.replace("\b", "").split())
        for text in f"{command.help or ''}\n\n{command.epilog or ''}".split("\n\n")
        if text.replace("\b", "").strip()
    ]
    yield f'.TH "{name.replace(" ", "-").upper()}" 1 "" "Knotless {version()}"'
    yield ".SH NAME"
    yield f"{_text(name.replace(' ', '-'))} \\- {_text(paragraphs[0].rstrip('.'))}"
    yield ".SH SYNOPSIS"
    yield f".B {_text(name)}"
    yield _text(" ".join(command.collect_usage_pieces(context)))
    yield ".SH DESCRIPTION"
    for paragraph in paragraphs:
        yield f".PP\n{_text(paragraph)}"
    by_heading = sections(command, context)
    yield ".SH OPTIONS"
    for heading, options in by_heading.items():
        if len(by_heading) > 1:
            yield f".SS {_text(heading)}"
        for option, meaning in filter(None, (one.get_help_record(context) for one in options)):
            yield f".TP\n.B {_text(option)}\n{_text(meaning)}"
    if context.parent is None:
        for title, group in GROUPS.items():
            yield f".SH COMMANDS: {title.upper()}"
            for inner, sentence in group.items():
                yield f".TP\n.B {_text(f'{name} {inner}')}\n{_text(sentence)}"


def _text(text: str) -> str:
    """Return plain text as troff: no dot at the start of a line is taken for a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped[:1] in {".", "'"} else escaped


if __name__ == "__main__":
    write(Path(sys.argv[1]))
