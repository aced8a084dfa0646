"""``knotless drain``: take links and switches of a running fabric out of its routes."""

from __future__ import annotations

import click

from knotless.cli.commands._running import RequestOptions, change_options, perform
from knotless.cli.options import parts_argument

EXAMPLE = """\b
Example: knotless drain s1-s2
         knotless drain s5 --dry-run
         knotless undrain s5
"""


@click.command("drain", epilog=EXAMPLE)
@parts_argument
@change_options
def command(parts: tuple[str, ...], request: RequestOptions) -> None:
    """Have the routes leave each PART, so that it may be touched: s5, s1-s2, s1:2-s2:3.

    The routes change in proven steps; what these drop, of some pairs of hosts for a moment, is said
    (--dry-run: before). No route uses a drained link. A drained switch forwards nothing between its
    neighbours; its own hosts keep one link. The exit status is 0 when no frame is on the part any
    more. It stays drained until knotless undrain, also if the
    controller starts again.
    """
    perform("/drain", {"parts": list(parts)}, request)
