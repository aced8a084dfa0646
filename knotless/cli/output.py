"""Printing for people; text from outside cannot control the terminal."""

from __future__ import annotations

import click

from knotless.base.printable import json_text, printable


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print lines; characters that are not printable are shown as escape sequences."""
    click.echo("\n".join(map(printable, text.split("\n"))), err=err, nl=nl)


def say_json(value: object, *, indent: int | None = None, allow_nan: bool = True) -> None:
    """Print a value as JSON."""
    click.echo(json_text(value, indent=indent, allow_nan=allow_nan))
