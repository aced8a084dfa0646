"""What commands print for people; text from outside cannot control the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from knotless.base.printable import printable

if TYPE_CHECKING:
    from rich.text import Text


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print lines; characters that are not printable are shown as escape sequences."""
    click.echo("\n".join(map(printable, text.split("\n"))), err=err, nl=nl)


def cell(text: str, style: str = "") -> Text:
    """Return the content of a table's cell or title, whose characters are no markup of Rich."""
    from rich.text import Text  # only tables need it

    return Text(printable(text), style)
