"""``knotless undrain``: use drained links and switches again."""

from __future__ import annotations

import click

from knotless.cli.commands._running import RequestOptions, change_options, perform
from knotless.cli.options import parts_argument

EXAMPLE = """\b
Example: knotless undrain s5 s1-s2
"""


@click.command("undrain", epilog=EXAMPLE)
@parts_argument
@change_options
def command(parts: tuple[str, ...], request: RequestOptions) -> None:
    """Have the routes use each drained PART again: s5, s1-s2, s1:2-s2:3."""
    perform("/undrain", {"parts": list(parts)}, request)
